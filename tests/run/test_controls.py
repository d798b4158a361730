"""Controls: which cases one process measures, when the others follow, and what a record says of them."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT, NullBackend
from prism_bench.catalogue import discover
from prism_bench.measure import Criterion
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import decode, encode
from prism_bench.record.store.records import path_for
from prism_bench.run import Carrier, Settings, carrying, controls_of, forecast, run
from prism_bench.run.controls import Controls, KnownTime, is_turn
from prism_bench.run.measuring import empty
from prism_bench.run.settings import combined
from tests.report.synthetic import case_result

TOYS = Path(__file__).parent.parent / "toys"
FACTS = NullBackend().facts()
NAMES = ("double[n=1000]", "triple[n=1000]")
TASKS = (*NAMES, "edges:double", "edges:triple")
TODAY = datetime.now(UTC).toordinal()
# No name has its turn on this day, neither as a control nor for its verification.
QUIET = next(day for day in range(TODAY, TODAY + 21) if not any(is_turn(n, d, day) for n in TASKS for d in (7, 21)))
SETTINGS = Settings(
    processes=3,
    lanes=2,
    peers=False,
    control_processes=1,
    criteria=dict.fromkeys(("cold_time", "hot_time"), Criterion(min_samples=9, max_samples=9)),
)


@pytest.fixture(scope="module")
def measure(tmp_path_factory):
    """A function that measures two kernels on a quiet day, by a script, leaning on records; it returns the record."""
    place = tmp_path_factory.mktemp("controls")
    folder = Path(shutil.copytree(TOYS, place / "toys"))
    script_path = place / "script.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRISM_BENCH_CACHE", str(place / "cache"))
        patch.setenv(SCRIPT, str(script_path))

        def measured(*records, script=None):
            script_path.write_text(json.dumps({**(script or {}), "*": {"noise": 0.001}}))
            catalogue = discover(folder)
            carrier = carrier_of(catalogue, records)
            record = run(catalogue, "null", chosen(catalogue), SETTINGS, carrier=carrier)
            return replace(decode(encode(record), "record"), created=stamp(QUIET))

        measured.folder = folder
        yield measured


@pytest.fixture(scope="module")
def first(measure):
    return measure()


@pytest.fixture(scope="module")
def night(measure, first):
    return measure(first)


def carrier_of(catalogue, records):
    carrier = Carrier(catalogue, "null", FACTS, SETTINGS.seeds, QUIET)
    carrier.controls = controls_of(records, "null", FACTS, SETTINGS, day=QUIET)
    return carrier


def chosen(catalogue):
    return [case for case in catalogue.cases(["double", "triple"], ["S0"]) if case.name in NAMES]


def processes(record):
    return [len(record.case(name).measurement("cold_time").processes) for name in NAMES]


def controls(record):
    return [record.case(name).control for name in NAMES]


def known(*records, day=QUIET):
    return controls_of(records, "null", FACTS, SETTINGS, day=day).known


def test_an_unchanged_case_is_measured_once_and_names_the_record_with_its_time(first, night):
    name = path_for(first, Path()).name.removesuffix(".json.gz")
    assert ([3, 3], [None, None]) == (processes(first), controls(first))
    assert ([1, 1], [name, name]) == (processes(night), controls(night))
    assert {"cold_time", "launch_time"} == {entry.metric for entry in night.case(NAMES[0]).measurements}
    (verified,) = {entry["carried_from"] for case in night.cases for entry in case.verification if "carried" in entry}
    assert verified.partition("Z-")[2] == name.partition("Z-")[2]


def test_a_control_leans_on_the_record_with_all_processes_not_on_a_control(first, night):
    (name,) = {time.record for time in known(night, first).values()}
    assert [name, name] == controls(night)
    assert {} == known(night)


@pytest.mark.parametrize("change", ["board", "software", "age", "processes", "failed"])
def test_what_may_have_changed_is_no_control(first, change):
    cases = tuple(case for case in first.cases if case.name in NAMES)
    other = {
        "board": {"machine": {**first.machine, "uuid": "GPU-2"}},
        "software": {"software": {**first.software, "numpy": "0.1"}},
        "age": {"created": datetime.fromordinal(QUIET - 7).isoformat()},
        "processes": {"cases": tuple(map(with_two_processes, cases))},
        "failed": {"cases": tuple(replace(case, status="failed", measurements=()) for case in cases)},
    }[change]
    assert set(NAMES) <= known(first).keys()
    assert {} == known(replace(first, **other))


def with_two_processes(case):
    return replace(case, measurements=tuple(replace(m, processes=m.processes[:2]) for m in case.measurements))


def test_a_newer_failure_hides_an_older_time(first):
    failed = replace(first, cases=tuple(replace(case, status="failed", measurements=()) for case in first.cases))
    assert {} == known(failed, first)


def test_other_machine_code_and_unverified_code_are_measured_in_all_processes(measure, first):
    other = replace(first, cases=tuple(replace(case, code={"sass": "other"}) for case in first.cases))
    source = measure.folder / "arith" / "triple.cu"
    text = source.read_text()
    source.write_text(text + "// changed\n")
    carrying._code_hash.cache_clear()
    record = measure(replace(first, cases=(other.case(NAMES[0]), first.case(NAMES[1]))))
    source.write_text(text)
    carrying._code_hash.cache_clear()
    assert ([3, 3], [None, None]) == (processes(record), controls(record))


def test_each_case_has_its_turn_once_a_week(first):
    week = range(QUIET, QUIET + 7)
    for name in NAMES:
        turns = [day for day in week if name not in known(replace(first, created=stamp(day)), day=day)]
        assert [day for day in week if is_turn(name, 7, day)] == turns
        assert 1 == len(turns)


def stamp(day):
    return datetime.fromordinal(day).isoformat(timespec="seconds")


def test_a_deviating_control_is_measured_in_the_other_processes(measure, first):
    record = measure(first, script={"double*": {"seconds": 1.2e-6, "noise": 0.001}})
    assert ([3, 1], [True, False]) == (processes(record), [name is None for name in controls(record)])


def test_a_forecast_knows_controls_and_what_is_carried_over(measure, first):
    catalogue = discover(measure.folder)
    cases, carrier = chosen(catalogue), carrier_of(catalogue, [first])
    whole, less = (forecast(cases, SETTINGS, "null", [first], by).stages for by in (None, carrier))
    assert [2, 2, 2, 2, 2] == [stage.tasks for stage in whole]
    assert [2, 2, 2, 0, 0] == [stage.tasks for stage in less]
    assert 0 == less[1].seconds < whole[1].seconds
    assert less[2].seconds < whole[2].seconds


def test_a_peer_without_a_time_leaves_a_control_what_it_is():
    bad = replace(case_result("k"), measurements=(empty("cold_time", "peer:torch", "its y differs"),))
    control = replace(case_result("k"), control="R", measurements=(cold([[1e-5]]),))
    assert ["R", None] == [
        combined([bad, control]).control,
        combined([control, replace(control, control=None)]).control,
    ]


# Doubt, by made-up times: 40 cases in three processes that differ by half a percent.


def known_times(count=40):
    spread = (0.995, 1.0, 1.005)
    return {f"case{i}": KnownTime("R", "code", cold([[scale * 1e-5] * 9 for scale in spread])) for i in range(count)}


def cold(groups):
    return Measurement("cold_time", "kernel", tuple(map(tuple, groups)))


def results(factor, count=40):
    times = {f"case{i}": cold([[factor(i) * 1e-5] * 9]) for i in range(count)}
    return [replace(case_result(name), name=name, control="R", measurements=(time,)) for name, time in times.items()]


def test_controls_within_the_spread_of_their_processes_are_not_in_doubt():
    assert set() == Controls(known_times()).in_doubt(results(lambda i: 1 + 0.005 * (-1) ** i))


def test_a_control_that_deviates_beyond_the_spread_is_in_doubt():
    assert {"case3"} == Controls(known_times()).in_doubt(results(lambda i: 1.05 if i == 3 else 1.0))


def test_controls_that_move_together_are_all_in_doubt():
    assert {f"case{i}" for i in range(40)} == Controls(known_times()).in_doubt(results(lambda _: 1.03))


def test_a_control_without_a_valid_time_is_in_doubt():
    (first, *others) = results(lambda _: 1.0)
    invalid = replace(first, measurements=(replace(first.measurements[0], valid=False, reason="throttled"),))
    assert {"case0"} == Controls(known_times()).in_doubt([invalid, *others])
