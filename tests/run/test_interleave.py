"""Two builds measured in turn: the order of processes, what is measured, and what one side's fault costs the other."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError
from prism_bench.io import workers
from prism_bench.measure import Criterion
from prism_bench.run import Settings
from prism_bench.run.builds import Build, Growth, interleaved, pair_settings, parts_of
from prism_bench.run.job import Run
from prism_bench.run.measuring import OUT_OF_MEMORY
from prism_bench.run.pool import measuring

pytestmark = pytest.mark.xdist_group("interleaved")  # one worker measures the pair

TOYS = Path(__file__).parent.parent / "toys"
QUICK = dict.fromkeys(("cold_time", "hot_time", "wall_time"), Criterion(min_samples=3, max_samples=3))


def placed(folder, name, script):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(script))
    return measuring(None, {SCRIPT: str(path)})


def played(folder, a=None, b=None, *, processes=1, report=lambda _: None, **more):
    """The records of two builds of the toys on the null backend, each by its own script."""
    found = discover(TOYS)
    cases = tuple(found.cases(["double"], ("S0",)))
    builds = [Build(name, found, cases, placed(folder, name, script or {})) for name, script in (("A", a), ("B", b))]
    settings = pair_settings(Settings(processes=processes, criteria=QUICK, timeout=20.0))
    return interleaved(tuple(builds), "null", settings, report, **more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Both records of a comparison of three processes a side, every process that it started, and its progress."""
    started, seen, places, standing_by = [], [], {}, set()
    start, really = workers.EventWorker.__init__, workers.EventWorker.send

    def init(self, where):
        places[self] = where
        start(self, where)

    def send(self, line):
        order = json.loads(line)
        if "process" in order:
            assert order["process"] == 0 or self in standing_by, "only what verifies is started for its order"
            started.append((Path(places[self].variables[SCRIPT]).stem, order["process"], order["timed"]))
        else:
            standing_by.add(self)
        really(self, line)

    scripts = {"*": {"seconds": 1e-5, "noise": 0}}, {"*": {"seconds": 3e-5, "noise": 0}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers.EventWorker, "__init__", init)
        patch.setattr(workers.EventWorker, "send", send)
        records = played(tmp_path_factory.mktemp("whole"), *scripts, processes=3, report=seen.append)
    return records, started, seen


def test_the_sides_are_verified_and_then_take_turns(whole):
    _, started, _ = whole
    assert [("B", 0, False), ("A", 0, False)] == started[:2]  # at the same time
    timed = [("A", 1), ("B", 1), ("B", 2), ("A", 2), ("A", 3), ("B", 3)]
    assert timed == [(name, number) for name, number, _ in started[2:]]


def test_each_side_has_its_own_times_in_as_many_processes(whole):
    for record, seconds in zip(whole[0], (1e-5, 3e-5), strict=True):
        cold = record.case("double[n=1000]").measurement("cold_time")
        assert (seconds, 3) == (pytest.approx(cold.median), len(cold.processes))


def test_only_the_kernels_device_times_are_taken(whole):
    (a, _), _, _ = whole
    assert {("kernel", "cold_time"), ("kernel", "hot_time"), ("kernel", "launch_time")} == {
        (one.subject, one.metric) for case in a.cases for one in case.measurements
    }


def test_both_records_were_verified_and_measured_by_one_protocol(whole):
    (a, b), _, _ = whole
    assert (1, a.protocol) == (a.protocol["version"], b.protocol)
    assert all(case.verification for record in (a, b) for case in record.cases)


def test_cases_that_are_trusted_are_timed_and_not_verified(tmp_path):
    a, _ = played(tmp_path, processes=2, trusted=("double[n=1000]",))
    cases = [a.case(name) for name in ("double[n=1000]", "double:by_adding[n=1000]")]
    assert [("ok", False), ("ok", True)] == [(case.status, bool(case.verification)) for case in cases]
    assert [2, 2] == [len(case.measurement("cold_time").processes) for case in cases]


def test_what_lacked_memory_next_to_the_other_side_is_verified_again_alone(tmp_path, monkeypatch):
    starved = ["double[n=1000]"]

    def keep(self, task, results):
        if task in starved:
            starved.remove(task)
            results = [replace(one, status="skipped", reason=f"{OUT_OF_MEMORY}: 4 GB") for one in results]
        really(self, task, results)

    really = Run.keep
    monkeypatch.setattr(Run, "keep", keep)
    found = played(tmp_path)
    assert [["ok", "ok"]] * 2 == [[case.status for case in one.cases] for one in found]
    assert [] == starved


def test_the_worker_that_verifies_ahead_ends_with_an_interrupt(tmp_path, monkeypatch):
    started, really = [], workers.EventWorker.__init__

    def init(self, where):
        really(self, where)
        started.append(self)

    def interrupt(event):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers.EventWorker, "__init__", init)
    a, b = played(tmp_path, report=interrupt)
    assert (False, False) == (a.complete, b.complete)
    assert (4, []) == (len(started), [one for one in started if one.is_alive()])


def test_progress_names_what_is_done(whole):
    stages = [f"{event.stage} {event.task.partition(':')[0]}" for event in whole[2]]
    assert ["verifying A", "verifying B", "pair 1 of 3 A", "pair 1 of 3 B", "pair 2 of 3 B", "pair 2 of 3 A",
            "pair 3 of 3 A", "pair 3 of 3 B"] == list(dict.fromkeys(stages))  # fmt: skip


def test_the_parts_of_a_pair_add_up(whole):
    parts = parts_of(1e3, whole[0])
    assert (["verifying", "timing", "starting"], 1e3) == (list(parts), pytest.approx(sum(parts.values())))
    assert 0 < parts["verifying"] and 0 < parts["timing"]


def test_progress_counts_both_sides(whole):
    assert list(range(16)) == [event.done for event in whole[2]]
    assert {16} == {event.total for event in whole[2]}


def test_only_undecided_cases_are_measured_again(tmp_path):
    """Three pairs for all; then the variant alone, to the next look; then nothing."""
    seen = []

    def undecided(pair):
        counts = {c.name: len(c.measurement("cold_time").processes) for c in pair[1].cases}
        seen.append(counts)
        left = {"double:by_adding[n=1000]"} if len(seen) == 1 else set()
        return left, left

    events = []
    a, b = played(tmp_path, processes=3, verified=False, growth=Growth((3, 5, 9), undecided), report=events.append)
    counts = [{c.name: len(c.measurement("cold_time").processes) for c in one.cases} for one in (a, b)]
    assert [{"double[n=1000]": 3, "double:by_adding[n=1000]": 5}] * 2 == counts
    assert [{"double[n=1000]": 3, "double:by_adding[n=1000]": 3}, counts[0]] == seen
    assert (True, len(events)) == (a.complete, events[-1].total)
    assert list(range(16)) == [event.done for event in events]


def test_a_decided_comparison_ends_with_its_first_look(tmp_path):
    a, _ = played(tmp_path, processes=2, verified=False, growth=Growth((2, 9), lambda pair: ((), ())))
    assert 2 == len(a.case("double[n=1000]").measurement("cold_time").processes)


def test_a_fault_of_one_side_costs_that_case_alone(tmp_path):
    a, b = played(tmp_path, {"double[n=1000]": {"wrong": True}}, {"double:by_adding*": {"crash": True}})
    assert {"double[n=1000]": "wrong", "double:by_adding[n=1000]": "ok"} == {c.name: c.status for c in a.cases}
    assert {"double[n=1000]": "ok", "double:by_adding[n=1000]": "crashed"} == {c.name: c.status for c in b.cases}
    assert [] == [c.name for record in (a, b) for c in record.cases if bool(c.measurements) != (c.status == "ok")]


def test_a_limit_ends_after_the_pair_of_processes_that_fills_it(tmp_path):
    a, _ = played(tmp_path, processes=9, limit=0.01, verified=False)
    case = a.case("double[n=1000]")
    assert (1, ()) == (len(case.measurement("cold_time").processes), case.verification)


def test_ctrl_c_keeps_what_both_sides_had(tmp_path):
    def interrupt(event):
        if event.process == 2:
            raise KeyboardInterrupt

    a, b = played(tmp_path, processes=2, report=interrupt, verified=False)
    assert (False, False) == (a.complete, b.complete)
    assert 1 == len(a.case("double[n=1000]").measurement("cold_time").processes)


def test_what_both_sides_had_is_kept_after_every_pair(tmp_path):
    kept = []
    played(tmp_path, processes=2, verified=False, keep=kept.append)
    counts = [[len(one.case("double[n=1000]").measurement("cold_time").processes) for one in pair] for pair in kept]
    assert ([[1, 1], [2, 2]], {False}) == (counts, {one.complete for pair in kept for one in pair})


def test_nothing_to_compare_is_said():
    nothing = Build("A", discover(TOYS), ())
    with pytest.raises(PrismBenchError, match="no case is left to compare"):
        interleaved((nothing, nothing), "null", Settings())


def test_a_variant_has_no_reference_of_its_own_to_time():
    found = discover(TOYS)
    kernel, variant = (
        Build(word, found, tuple(found.cases([word], ("S0",)))) for word in ("triple", "double:by_adding")
    )
    with pytest.raises(PrismBenchError, match="no case is left to compare"):
        interleaved((kernel, variant), "numpy_reference", Settings())


def test_a_process_of_another_checkout_runs_that_checkouts_package(tmp_path, monkeypatch):
    """Although the current folder holds a package of that name as well."""
    worker = tmp_path / "tree" / "prism_bench" / "workbench" / "worker.py"
    worker.parent.mkdir(parents=True)
    for folder in (worker.parent, worker.parent.parent):
        (folder / "__init__.py").write_text("")
    worker.write_text('import os\nprint(\'{"facts": {"device": "\' + os.environ["WHO"] + \'"}}\\n{"end": true}\')\n')
    monkeypatch.chdir(Path(__file__).parent.parent.parent)
    events = list(workers.work({}, 20.0, measuring(tmp_path / "tree", {"WHO": "theirs"})))
    assert [{"facts": {"device": "theirs"}}, {"end": True}] == events
