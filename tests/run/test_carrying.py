"""Verification carried over: what is kept, what is verified anew, and what a record says of it."""

import os
import shutil
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.catalogue import Catalogue, discover
from prism_bench.catalogue.project_reference import ProjectReference
from prism_bench.record.measurement import Measurement
from prism_bench.run import Carrier, PassResults, Settings, carrying, run
from prism_bench.run.controls import is_turn
from prism_bench.run.measuring import empty
from prism_bench.run.session import result_of

TOYS = Path(__file__).parent.parent / "toys"
FACTS = {"device": "a GPU", "uuid": "GPU-1", "software": {"driver": "580", "nvrtc": "13.0"}}
TASKS = ("edges:double", "double[n=1000]")


@pytest.fixture
def toys(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    carrying._code_hash.cache_clear()
    yield Path(shutil.copytree(TOYS, tmp_path / "toys"))
    carrying._code_hash.cache_clear()


def due(task, day):
    return is_turn(task, 21, day)


QUIET_DAY = next(day for day in range(21) if not any(due(task, day) for task in TASKS))


def verified(folder, *, facts=FACTS):
    """Return by case of `double` whether a run carried its verification over, on a day when no case has its turn."""
    catalogue = discover(folder)
    cases = [case for case in catalogue.cases(["double"], ["S0"]) if not case.variant]
    carrier = Carrier(catalogue, "null", facts, (0, 1), QUIET_DAY)
    record = run(catalogue, "null", cases, Settings(processes=1, lanes=2, peers=False), carrier=carrier)
    assert {"ok"} == {case.status for case in record.cases}
    assert TASKS[1] in {case.name for case in record.cases}
    return {case.name: case.carried is not None for case in record.cases}


def test_unchanged_kernels_are_carried_over_and_say_since_when(toys):
    first = verified(toys)
    assert {False} == set(first.values())
    again = verified(toys)
    assert first.keys() == again.keys() and {True} == set(again.values())


@pytest.mark.parametrize("file", ["arith/double.cu", "arith/double.py"])
def test_a_changed_file_is_verified_anew(toys, file):
    verified(toys)
    path = toys / file
    path.write_text(path.read_text() + ("// changed\n" if path.suffix == ".cu" else "# changed\n"))
    carrying._code_hash.cache_clear()
    assert {False} == set(verified(toys).values())


def test_other_data_of_the_family_is_verified_anew(toys):
    verified(toys)
    (toys / "arith/expected.npy").write_bytes(b"data")
    carrying._code_hash.cache_clear()
    assert {False} == set(verified(toys).values())


@pytest.mark.parametrize(
    "facts",
    [
        {"device": "another GPU"},
        {"uuid": "GPU-2"},
        {"software": {"driver": "590", "nvrtc": "13.0"}},
        {"software": {"driver": "580", "nvrtc": "13.1"}},
    ],
)
def test_another_driver_board_or_compiler_is_verified_anew(toys, facts):
    verified(toys)
    assert {False} == set(verified(toys, facts={**FACTS, **facts}).values())


def test_another_version_of_a_package_is_verified_anew(toys, monkeypatch):
    verified(toys)
    newer = [*metadata.distributions(), SimpleNamespace(name="triton", version="99")]
    monkeypatch.setattr(carrying.metadata, "distributions", lambda: newer)
    assert {False} == set(verified(toys).values())


def test_a_task_is_verified_anew_when_it_is_its_turn(toys):
    verified(toys)
    carried = [bool(Carrier(discover(toys), "null", FACTS, (0, 1), day).carried(TASKS[0])) for day in range(21)]
    assert [not due(TASKS[0], day) for day in range(21)] == carried
    assert 20 == sum(carried)


def test_a_wrong_kernel_is_not_kept(toys, tmp_path, monkeypatch):
    script = tmp_path / "script.json"
    script.write_text('{"double*": {"wrong": true}}')
    monkeypatch.setenv("PRISM_BENCH_NULL", str(script))
    catalogue = discover(toys)
    carrier = Carrier(catalogue, "null", FACTS, (0, 1), QUIET_DAY)
    cases = catalogue.cases(["double"], ["S0"])
    record = run(catalogue, "null", cases, Settings(processes=1, lanes=2), carrier=carrier)
    assert "wrong" in {case.status for case in record.cases}
    assert [] == carrier.carried(TASKS[0])


def test_a_damaged_file_is_verified_anew(toys, tmp_path):
    verified(toys)
    for path in (tmp_path / "cache" / "verified").glob("*.json"):
        path.write_text(path.read_text()[:40])
    assert {False} == set(verified(toys).values())


@pytest.mark.parametrize(
    "changes", [{"callable": lambda **_: None}, {"reference": ProjectReference("m", "f", Path("double.py"), "m:f")}]
)
def test_code_that_may_be_anywhere_is_never_kept(toys, changes):
    catalogue = discover(toys)
    spec = replace(catalogue.kernels["double"], variants={}, **changes)
    assert Carrier(catalogue, "null", FACTS, (0, 1)).path(TASKS[1]) is not None
    carrier = Carrier(Catalogue(catalogue.folder, {"double": spec}), "null", FACTS, (0, 1))
    assert carrier.path(TASKS[1]) is None


def test_the_record_that_verified_is_named(toys):
    catalogue = discover(toys)
    carriers = [Carrier(catalogue, "null", FACTS, (0, 1), QUIET_DAY) for _ in range(2)]
    cases = [case for case in catalogue.cases(["double"], ["S0"]) if case.name == TASKS[1]]
    for carrier in carriers:
        run(catalogue, "null", cases, Settings(processes=1, lanes=2, peers=False), carrier=carrier)
    results = carriers[1].carried(TASKS[1])
    assert {carriers[0].record} == {entry["carried_from"] for result in results for entry in result.verification}
    assert carriers[0].record.partition("Z-")[2]


def test_a_task_with_peers_is_carried_over_with_its_bad_peers_if_these_were_verified(toys):
    catalogue = discover(toys)
    case = catalogue.case(TASKS[1])
    carrier = Carrier(catalogue, "null", FACTS, (0, 1), QUIET_DAY)
    bad = empty("cold_time", "peer:torch", "its y differs")
    others = [Measurement("cold_time", "kernel", ((1e-6,),)), empty("hot_time", "kernel", "it does not repeat")]
    result = result_of(case, "ok", None, [{"passed": True}], [bad, *others])
    carrier.keep(TASKS[1], [result])
    assert [[], [[]]] == [measured(carrier, peers=True), measured(carrier, peers=False)]
    carrier.keep(TASKS[1], [result], peers=True)
    assert [[[bad]], [[]]] == [measured(carrier, peers=True), measured(carrier, peers=False)]


def measured(carrier, *, peers):
    return [list(result.measurements) for result in carrier.carried(TASKS[1], peers=peers)]


# A pass over a commit that was stopped goes on where it was.

TIMED = Measurement("cold_time", "kernel", ((1e-6, 2e-6),))


def passed(toys, commit="c1", settings=None, chosen=True):
    catalogue = discover(toys)
    carrier = Carrier(catalogue, "null", FACTS, (0, 1), QUIET_DAY)
    return PassResults(carrier, settings or Settings(), commit, [catalogue.case(TASKS[1])] if chosen else [])


def timed(toys):
    return replace(result_of(discover(toys).case(TASKS[1]), "ok", None), measurements=(TIMED,))


def test_the_next_pass_of_a_commit_has_what_a_stopped_one_measured(toys):
    passed(toys).keep(TASKS[1], 1, timed(toys))
    (time,) = passed(toys).result(TASKS[1], 1).measurements
    assert ([2], TIMED.median) == ([len(group) for group in time.processes], pytest.approx(time.median))
    others = [passed(toys, "c2"), passed(toys, settings=Settings(processes=2))]
    assert [None, None] == [other.result(TASKS[1], 1) for other in others]
    assert passed(toys).result(TASKS[1], 0) is None


def test_a_pass_that_ended_is_forgotten_but_not_the_ceilings_of_the_day(toys):
    whole, ceilings = passed(toys), passed(toys, chosen=False)
    whole.keep(TASKS[1], 0, timed(toys))
    ceilings.keep(TASKS[1], 0, timed(toys))
    whole.forget()
    assert whole.result(TASKS[1], 0) is None
    assert passed(toys, "c2", chosen=False).result(TASKS[1], 0)
    for path in whole._folder.glob("*.json"):
        os.utime(path, (path.stat().st_mtime - 2 * 86400,) * 2)
    assert passed(toys, chosen=False).result(TASKS[1], 0) is None


def test_a_stopped_run_goes_on_without_measuring_twice(toys):
    catalogue, settings = discover(toys), Settings(processes=2, lanes=2, peers=False)
    cases = [case for case in catalogue.cases(["double"], ["S0"]) if not case.variant]

    def measure(stop):
        carrier = Carrier(catalogue, "null", FACTS, (0, 1), QUIET_DAY)
        carrier.passed = PassResults(carrier, settings, "c1", cases)
        begun = []

        def report(progress):
            begun.append((progress.process, progress.task))
            if stop and progress.process == 1:
                raise KeyboardInterrupt

        return run(catalogue, "null", cases, settings, report, carrier=carrier), begun

    first, _ = measure(stop=True)
    second, begun = measure(stop=False)
    assert (False, True) == (first.complete, second.complete)
    assert {1} == {process for process, _ in begun}
    assert {2} == {len(case.measurement("cold_time").processes) for case in second.cases if not case.is_edge}
