"""A run through real processes: what crashes or hangs takes nothing else with it, and what was measured is kept."""

import os
import shutil
import signal
import sys
from importlib import import_module
from pathlib import Path
from threading import enumerate as threads

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, PrismBenchError, ResultsError
from prism_bench.io import files, workers
from prism_bench.measure import shuffled
from prism_bench.record import store
from prism_bench.run.job import Run
from prism_bench.run.pool import HERE
from tests.run.conftest import scripted

NOISY = """
import os

print('{"results": 7}')


def noisy(x):
    print('{"results": 7}')
    os.write(1, b"raw")
    return 3 * x


"""
TOYS = Path(__file__).parent.parent / "toys"
TIMED = {"double[n=1000]", "double:by_adding[n=1000]", "triple[n=1000]", "nothing[blocks=1]"}
EDGES = {
    "double[n=0]", "double[n=1]", "double[golden 1: n=3]", "double:by_adding[n=0]", "double:by_adding[n=1]",
    "triple[n=1]",
}  # fmt: skip
EDGES |= {edge.name for edge in discover(TOYS).edges() if edge.is_regime}


def statuses(record):
    return {case.name: case.status for case in record.cases}


def test_every_case_and_edge_has_one_result(whole):
    record, _ = whole
    assert dict.fromkeys(TIMED | EDGES, "ok") == statuses(record)
    assert len(record.cases) == len(TIMED | EDGES)
    assert record.complete
    assert ("null", str(TOYS)) == (record.backend, record.catalogue)


def test_only_timed_cases_have_times(whole):
    assert TIMED == {case.name for case in whole[0].cases if case.measurements}


def test_the_samples_stay_grouped_by_process(whole):
    for name in TIMED:
        cold = whole[0].case(name).measurement("cold_time")
        assert [3, 3] == [len(group) for group in cold.processes]
        assert 6 == len(cold.samples)


def test_the_times_are_the_scripted_ones(play):
    record = play({"triple*": {"seconds": 5e-6, "noise": 0, "clock": 1.5e9}}, filters=["triple"])
    cold = record.case("triple[n=1000]").measurement("cold_time")
    assert (5e-6, 1.5e9) == pytest.approx((cold.median, cold.clock))


def test_each_process_takes_the_cases_in_an_order_of_its_own_machine_kernels_first(whole):
    for number in (0, 1):
        tasks = [one.task for one in whole[1] if one.process == number and not one.task.startswith("edges:")]
        others = shuffled(["double[n=1000]", "double:by_adding[n=1000]", "triple[n=1000]"], 4, number)
        assert ["nothing[blocks=1]", *others] == tasks


def test_progress_counts_every_task_once(whole):
    assert list(range(4 + 2 * 4)) == [event.done for event in whole[1]]
    assert {12} == {event.total for event in whole[1]}


def test_a_wrong_kernel_gets_no_time_and_is_not_asked_again(play):
    seen = []
    record = play({"triple[n=1000]": {"wrong": True}}, processes=2, report=seen.append)
    wrong = record.case("triple[n=1000]")
    assert ("wrong", ()) == (wrong.status, wrong.measurements)
    assert 1 == [event.task for event in seen].count("triple[n=1000]")
    assert 3 == len([case for case in record.cases if case.measurements])


def test_a_kernel_with_a_wrong_edge_is_not_timed_and_says_because_of_which(play):
    record = play({"double[n=1]": {"wrong": True}})
    case = record.case("double[n=1000]")
    assert ("wrong", ()) == (case.status, case.measurements)
    assert case.reason.startswith("not timed, because double[n=1] on null: y[0] is ")


def test_a_variant_with_a_wrong_edge_leaves_the_kernel_alone(play):
    record = play({"double:by_adding[n=1]": {"wrong": True}})
    assert "wrong" == record.case("double:by_adding[n=1000]").status
    assert record.case("double[n=1000]").measurements


def test_a_skipped_edge_is_no_reason_not_to_time(play):
    record = play({"double[n=1]": {"memory": True}})
    assert "skipped" == record.case("double[n=1]").status
    assert record.case("double[n=1000]").measurements


def test_a_case_too_large_is_skipped_and_the_run_goes_on(play):
    record = play({"triple[n=1000]": {"memory": True}})
    assert {"skipped": 1, "ok": len(TIMED | EDGES) - 1} == counted(record)
    assert "wants 1 PB, scripted" in record.case("triple[n=1000]").reason


def counted(record):
    found = list(statuses(record).values())
    return {status: found.count(status) for status in found}


def test_a_crash_marks_its_case_and_the_run_goes_on(play):
    record = play({"triple[n=1000]": {"crash": True}}, processes=2)
    case = record.case("triple[n=1000]")
    assert ("crashed", ()) == (case.status, case.measurements)
    assert "killed by signal 6" in case.reason
    assert {"crashed": 1, "ok": len(TIMED | EDGES) - 1} == counted(record)
    assert 2 == len(record.case("double[n=1000]").measurement("cold_time").processes)


def test_a_crash_on_a_variants_edge_marks_the_variant_and_not_the_kernel(play):
    record = play({"double:by_adding[n=1]": {"crash": True}})
    assert "wrong" == record.case("double:by_adding[n=1000]").status
    assert "killed by signal 6" in record.case("double:by_adding[n=1000]").reason
    assert record.case("double[n=1000]").measurements


def test_a_hang_is_ended_by_the_timeout_and_the_run_goes_on(play):
    record = play({"triple[n=1000]": {"hang": True}}, timeout=2.0)
    case = record.case("triple[n=1000]")
    assert ("timed out", "triple[n=1000]: no answer within 2 s") == (case.status, case.reason)
    assert {"timed out": 1, "ok": len(TIMED | EDGES) - 1} == counted(record)


def interrupt_at(task, process=0):
    def report(event):
        if (event.task, event.process) == (task, process):
            raise KeyboardInterrupt

    return report


def test_ctrl_c_keeps_what_was_measured(play):
    first, second = shuffled(["double[n=1000]", "double:by_adding[n=1000]"], 0, 0)
    record = play(filters=["double"], report=interrupt_at(second))
    assert not record.complete
    assert record.case(first).measurements
    assert record.case(second) is None


def test_ctrl_c_in_a_later_process_keeps_the_earlier_ones(play):
    first = shuffled(["double[n=1000]", "double:by_adding[n=1000]"], 0, 1)[0]
    record = play(filters=["double"], report=interrupt_at(first, process=1), processes=2)
    assert not record.complete
    assert 1 == len(record.case(first).measurement("cold_time").processes)


def test_what_ends_a_run_before_anything_writes_no_record(play, tmp_path):
    place = store.RecordPlace(tmp_path)
    with pytest.raises(ResultsError, match="nothing was measured: no record is written"):
        place.save(play(filters=["double"], report=interrupt_at("edges:double")))
    with pytest.raises(ZeroDivisionError):
        play(filters=["double"], report=lambda event: 1 // 0, keep=place.save)
    assert [] == list(tmp_path.rglob("*.gz"))


def test_what_was_measured_is_kept_along_the_way(play, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_SAVE_SECONDS", "0")
    kept = []
    record = play(filters=["double"], processes=2, keep=kept.append)
    assert {False} == {one.complete for one in kept}
    assert [len(one.cases) for one in kept] == sorted(len(one.cases) for one in kept)
    last, case = kept[-1], shuffled(["double[n=1000]", "double:by_adding[n=1000]"], 0, 1)[0]
    assert record.case(case).measurements == last.case(case).measurements
    assert (record.created, record.machine) == (last.created, last.machine)


def test_what_was_measured_is_kept_where_an_error_ends_the_run_that_nobody_foresaw(play):
    kept = []

    def stumble(event):
        if event.task == "triple[n=1000]":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play(filters=["triple"], report=stumble, keep=kept.append)
    assert [(False, {"edge"})] == [(one.complete, {case.label for case in one.cases}) for one in kept]


def test_a_process_that_is_lost_between_two_tasks_costs_neither(play, monkeypatch):
    lost = []

    def work(order, place):
        for event in workers.work(order, 20.0, place):
            yield event
            if order["timed"] and "results" in event and not lost:
                lost.append(order["tasks"][0])
                raise workers.WorkerDied(lost[0], "crashed", "gone")

    monkeypatch.setattr(import_module("prism_bench.run.pool"), "EventWorker", scripted(work))
    record = play(filters=["double"], processes=1)
    assert lost
    assert {"ok"} == {case.status for case in record.cases}
    assert [1, 1] == [len(case.measurement("cold_time").processes) for case in record.cases if case.measurements]


def test_no_process_and_no_listener_is_left_behind(play):
    before = set(threads())
    play(filters=["triple"], report=interrupt_at("triple[n=1000]"))
    for thread in set(threads()) - before:
        thread.join(10)
    assert before >= set(threads())


def test_a_record_survives_being_written_and_read(play, tmp_path):
    record = play({"double*": {"memory": True}, "triple[n=1000]": {"nan": True}})
    path = store.save(record, store.path_for(record, tmp_path))
    read = store.read(path)
    assert path.parent.name == record.machine["id"]
    assert statuses(record) == statuses(read)
    old, new = (one.case("nothing[blocks=1]").measurement("cold_time") for one in (record, read))
    assert new.samples == pytest.approx(old.samples, rel=5e-4)


def test_a_choice_that_leaves_nothing_says_so(play):
    with pytest.raises(PrismBenchError, match="no case is left to run"):
        play(filters=["triple"], labels=("S2",))


def test_a_process_that_does_not_start_says_which_backend(play, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(BackendUnavailable, match=r"backend null does not start: the process ended \(exit status 1\)"):
        play()


def test_a_process_gone_before_it_read_a_long_order_is_noticed():
    order = {"tasks": ["x" * 1000] * 2000}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(workers.WorkerDied, match="exit status 1"):
            list(workers.work(order, 5.0, HERE))


def test_a_backend_that_no_longer_opens_ends_the_run_and_keeps_what_was_measured(play, monkeypatch):
    def break_it(event):
        if event.process == 0 and event.task.startswith("triple"):
            monkeypatch.setattr(sys, "executable", "/bin/false")

    record = play(filters=["triple"], processes=2, report=break_it)
    assert not record.complete
    assert 1 == len(record.case("triple[n=1000]").measurement("cold_time").processes)


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(TOYS, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__")))


def rewrite(folder, old, new):
    path = folder / "arith" / "triple.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_what_a_spec_prints_does_not_disturb_the_processes_events(play, folder):
    rewrite(folder, "spec = KernelSpec(", NOISY + "spec = KernelSpec(")
    rewrite(folder, "reference=lambda x: 3 * x", "reference=noisy")
    record = play(catalogue=folder, filters=["triple"])
    assert "ok" == record.case("triple[n=1000]").status


def test_a_reference_that_gives_too_much_fails_its_kernel_and_nothing_else(play, folder):
    rewrite(folder, "reference=lambda x: 3 * x", "reference=lambda x: (x, x)")
    record = play(catalogue=folder)
    assert "failed" == record.case("triple[n=1]").status
    assert "reference gives 2 outputs, not 1" in record.case("triple[n=1000]").reason
    assert record.case("double[n=1000]").measurements


def test_a_reference_that_raises_fails_its_kernel_and_nothing_else(play, folder):
    rewrite(folder, "reference=lambda x: 3 * x", "reference=lambda x: x @ x.reshape(2, -1)")
    record = play(catalogue=folder)
    assert "ValueError" in record.case("triple[n=1000]").reason
    assert record.case("double[n=1000]").measurements


def test_a_reference_that_exits_is_a_crash_of_its_case(play, folder):
    rewrite(folder, "reference=lambda x: 3 * x", "reference=lambda x: exit(3)")
    record = play(catalogue=folder)
    assert "exit status 3" in record.case("triple[n=1000]").reason
    assert record.case("double[n=1000]").measurements


class Interrupting(dict):
    """Results during whose first change a signal arrives."""

    def setdefault(self, *arguments):
        value = super().setdefault(*arguments)
        if len(self) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
            sys.intern("a call, before which Python handles signals")
        return value


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_signal_while_a_result_is_kept_costs_no_result(lanes, play, monkeypatch):
    begin = Run.__init__

    def interrupting(self, *arguments, **options):
        begin(self, *arguments, **options)
        self.results = Interrupting()

    monkeypatch.setattr(Run, "__init__", interrupting)
    records = []

    @files.guarded
    def command():
        with files.held():
            records.append(play(filters=["double"], lanes=lanes))

    command()
    (record,) = records
    assert (False, True) == (record.complete, len(record.cases) > 0)
