"""How long a run will take: by a record with the seconds of each case, by one of before, and by none."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.record import store
from prism_bench.record.measurement import Measurement
from prism_bench.run import Settings, forecast, known_code, merge, verification_seconds
from prism_bench.run.forecast import ROUGH, Forecast, ForecastStage, recorded_costs
from prism_bench.run.settings import share
from tests.built_in import CATALOGUE
from tests.report.synthetic import case_result, record_of
from tests.run.conftest import TOYS

RUNS = Path(__file__).parents[2] / "reports" / "runs"
CASES = discover(TOYS).cases(labels=("S0",))
SETTINGS = Settings(processes=2, lanes=4)
SPENT = {"untimed": 2.0, "preparing": 1.0, "kernel": 2.0, "peer:torch": 4.0}


def timed(case, **changes):
    found = case_result(case.spec.name, case.label, variant=case.variant, times={"cold_time": 1e-5})
    return replace(found, **{"name": case.name, "spent": SPENT, **changes})


def edge(case, seconds):
    found = case_result(case.spec.name, "edge", variant=case.variant, workload={"n": 1})
    return replace(found, name=f"{case.kernel}[n=1]", spent={"untimed": seconds})


def record(*cases, **changes):
    facts = {"protocol": {"version": 1, "processes": 2}, "duration": 100.0, "created": "2026-11-22T09:54:34"}
    return replace(record_of(*cases), **{**facts, **changes})


def whole(**changes):
    """A record of all toys: 4 of 8 + 2 s side by side, 28 s of timing in 32, and 5 s of compilation."""
    edges = [edge(case, 0.5) for case in CASES]
    return record(*map(timed, CASES), *edges, spent={"compiling": 5.0, "untimed": 5.0, "timed": 32.0}, **changes)


def seconds(found):
    return [stage.seconds for stage in found.stages]


def test_a_record_with_the_seconds_of_its_cases_gives_back_its_own_stages():
    found = forecast(CASES, SETTINGS, "cuda", [whole()])
    assert [4, 4, 4, 4] == [stage.tasks for stage in found.stages]
    assert [5.0 + 1.0, 4.0, 16.0, 16.0] == pytest.approx(seconds(found))
    assert ("from the record of 2026-11-22", 42.0) == (found.source, pytest.approx(found.seconds))


def test_a_ceiling_of_several_parts_costs_what_it_took_one_of_them():
    ceiling = replace(timed(CASES[0]), ceiling="launch")
    alone = replace(timed(CASES[1]), ceiling="bandwidth", board="GPU-1")
    parts = ({"uuid": "GPU-1", "kernels": []}, {"uuid": "GPU-2", "kernels": []})
    spent = {"compiling": 0.0, "untimed": 4.0, "timed": 20.0}
    found = recorded_costs(record(ceiling, alone, spent=spent, parts=parts), peers=True)
    assert (1.0, 1.75) == (found.untimed[ceiling.name], found.timed[ceiling.name]), "of 2 and 7 s in two processes"
    assert (2.0, 3.5) == (found.untimed[alone.name], found.timed[alone.name]), "one of the boards measured it"
    assert 1.5 == found.start, "6 s next to 14 s of cases, in two processes of two parts"
    readings = tuple({"hertz": 20.0} for _ in range(8))
    found = recorded_costs(record(ceiling, alone, spent=spent, parts=parts, monitor=readings), peers=True)
    assert (4, 0.75) == (found.jobs, found.start), "each of two processes of four jobs left its readings"


def test_without_peers_and_with_more_processes_it_takes_what_these_take():
    found = forecast(CASES, replace(SETTINGS, peers=False, processes=3), "cuda", [whole()])
    assert [6.0, 4.0, 8.0, 8.0, 8.0] == pytest.approx(seconds(found))


def test_in_one_lane_the_first_process_verifies_one_case_after_the_other():
    found = forecast(CASES, replace(SETTINGS, lanes=1), "cuda", [whole()])
    assert [5.0 + 2.0, 16.0 + 8.0, 16.0] == pytest.approx(seconds(found))


def test_a_case_that_the_record_lacks_counts_as_the_mean_of_its_label():
    some = record(*map(timed, CASES[:2]), spent={"untimed": 1.0, "timed": 14.0})
    assert [0.0, 2.0, 14.0, 14.0] == pytest.approx(seconds(forecast(CASES, SETTINGS, "cuda", [some])))


def test_a_record_of_before_gives_its_duration_spread_over_what_it_measured():
    series = Measurement("cold_time", "kernel", ((1e-5,), (1e-5,)))
    old = [timed(case, spent={}, verification=(), measurements=(series,)) for case in CASES]
    found = forecast(CASES, SETTINGS, "cuda", [record(*old)])
    assert 100.0 == pytest.approx(found.seconds)
    assert 150.0 == pytest.approx(forecast(CASES, replace(SETTINGS, processes=3), "cuda", [record(*old)]).seconds)


@pytest.mark.parametrize("other", [
    {"backend": "emulator"}, {"complete": False}, {"duration": 0.0}, {"cases": (timed(CASES[0]),)},
])  # fmt: skip
def test_another_backend_a_run_cut_short_and_too_few_cases_are_passed_over(other):
    unfit, older = replace(whole(), **other), whole(created="2026-11-01T00:00:00")
    assert "from the record of 2026-11-01" == forecast(CASES, SETTINGS, "cuda", [unfit, older]).source
    assert ROUGH == forecast(CASES, SETTINGS, "cuda", [unfit]).source


def test_without_a_record_it_is_rough_and_peers_take_longer():
    found, alone = (forecast(CATALOGUE.cases(["softmax"]), replace(SETTINGS, peers=peers), "cuda") for peers in (1, 0))
    assert ROUGH == found.source
    assert found.seconds > alone.seconds > 0


@pytest.mark.parametrize(
    "name", ["nvidia-h200/20261127T141305Z-03a5d1ab", "nvidia-h100-80gb-hbm3/20261123T072436Z-f63d9242"]
)
def test_a_rough_forecast_is_what_committed_runs_took(name):
    kept = store.read(RUNS / f"{name}.json.gz")
    names = {case.name for case in kept.cases if not case.is_edge}
    cases = [case for case in CATALOGUE.cases() if case.name in names]
    assert len(cases) > 0.9 * len(names)
    rough = forecast(cases, Settings(processes=3, lanes=16), "cuda")
    assert ROUGH == rough.source
    assert 0.8 < rough.seconds / sum(kept.spent.values()) < 1.25


def test_two_parts_take_as_long_as_the_whole():
    cases = CATALOGUE.cases(["relu", "softmax", "matmul"])
    known = record(*map(timed, cases))
    parts = [forecast(share(cases, part), SETTINGS, "cuda", [known]).seconds for part in ("1/2", "2/2")]
    assert forecast(cases, SETTINGS, "cuda", [known]).seconds == pytest.approx(sum(parts))
    assert all(parts)


def test_a_merged_record_keeps_the_seconds_of_both_parts():
    one, other = (replace(part, machine={**part.machine, "uuid": uuid}) for part, uuid in (
        (record(timed(CASES[0]), spent={"untimed": 1.0, "timed": 8.0}), "a"),
        (record(timed(CASES[-1]), spent={"compiling": 2.0, "timed": 9.0}), "b"),
    ))  # fmt: skip
    merged = merge([("1.json", one), ("2.json", other)])
    assert {"untimed": 1.0, "timed": 17.0, "compiling": 2.0} == merged.spent
    assert [SPENT, SPENT] == [case.spent for case in merged.cases]


def test_what_is_left_follows_the_stages_and_then_the_speed_so_far():
    found = Forecast((ForecastStage(10, 10.0), ForecastStage(5, 90.0)), "a test")
    assert (100.0, 97.0, 0.0) == (found.left(0, 0.0), found.left(0, 3.0), found.left(15, 500.0))
    assert 90.0 == pytest.approx(found.left(10, 10.0))
    assert 90.0 < found.left(10, 20.0) < 180.0
    assert found.left(14, 200.0) == pytest.approx(18.0 * (0.18 + 0.82 * 200 / 82))


def test_seconds_of_verification_come_from_the_newest_complete_record_of_the_backend():
    known = record(timed(CASES[0], spent={"untimed": 2.0, "kernel": 1.0}), edge(CASES[0], 0.5))
    expected = {CASES[0].name: 2.0, f"edges:{CASES[0].kernel}": 0.5}
    assert expected == verification_seconds([replace(known, complete=False, cases=()), known], known.backend)
    assert {} == verification_seconds([known], "another") == verification_seconds([], known.backend)


def test_code_is_known_where_a_record_of_the_same_compiler_has_its_first_call():
    first, second, third = CASES[:3]
    call = (Measurement("first_call_time", "kernel", ((0.3,),)),)
    new = record(timed(first, code={"sass": "new"}, measurements=call), timed(second, code={"sass": "b"}))
    old = record(*(timed(case, code={"sass": "old"}, measurements=call) for case in (first, second)))
    other = record(timed(third, code={"sass": "c"}, measurements=call))
    found = [replace(one, software={"nvrtc": version}) for one, version in ((new, "13.0"), (old, "13.0"))]
    assert {first.name: "new", second.name: "old"} == known_code(found, {"software": {"nvrtc": "13.0"}})
    assert {} == known_code([replace(other, software={"nvrtc": "12.9"})], {"software": {"nvrtc": "13.0"}})
    assert {} == known_code([], {})
