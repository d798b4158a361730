"""Compiled peers made ahead: what is compiled, in which order, and that nothing that fails there costs a case."""

from dataclasses import replace
from threading import Event

import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import discover
from prism_bench.io.workers import WorkerDied
from prism_bench.run import job, precompile
from prism_bench.run.job import Run
from prism_bench.run.peers_worker import compile_peer
from prism_bench.run.precompile import PeerCompilation, ahead_tasks, compile_peers, task_parts
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case
from tests.run.conftest import TOYS

CATALOGUE = discover(TOYS)
CASE = CATALOGUE.anywhere("double[n=1000]")


def with_peers(label, **peers):
    return Case(replace(CASE.spec, peers=peers), CASE.workload, label)


@pytest.fixture
def _torch(monkeypatch):
    monkeypatch.setattr("prism_bench.spec.peer.Library.is_installed", lambda self: True)


@pytest.mark.usefixtures("_torch")
def test_torch_peers_are_compiled_the_autotuned_forms_of_large_cases_first():
    small = with_peers("S0", torch=lambda torch, x: x)
    large = with_peers("S2", torch=lambda torch, x: x, torch_tf32=lambda torch, x: x)
    other = with_peers("S1", cupy=lambda cupy, x: x)
    tasks = ahead_tasks([small, other, CASE, large])
    names = ["torch_autotuned", "torch_tf32_autotuned", "torch_compiled", "torch_compiled", "torch_tf32_compiled"]
    assert [(name, CASE.task) for name in names] == [*map(task_parts, tasks)]


@pytest.mark.usefixtures("_torch")
def test_what_cub_builds_comes_after_the_autotuned_forms_one_label_after_the_other():
    cases = [with_peers(label, torch=lambda torch, x: x, cub=lambda cub, x: x) for label in ("S1", "S0")]
    assert ["torch_autotuned", "cub", "cub", "torch_compiled", "torch_compiled"] == [
        task_parts(task)[0] for task in ahead_tasks(cases)
    ]


def test_without_torch_there_is_nothing_to_compile(monkeypatch):
    monkeypatch.setattr("prism_bench.spec.peer.Library.is_installed", lambda self: False)
    assert [] == ahead_tasks([with_peers("S1", torch=lambda torch, x: x)])


@pytest.mark.parametrize(("cores", "tasks", "processes"), [(16, 100, 12), (8, 100, 6), (1, 9, 1), (16, 5, 3)])
def test_as_many_processes_as_there_are_cores_or_work_for(monkeypatch, cores, tasks, processes):
    started = []

    def lanes(order, tasks, lanes, timeout, place):
        started.append((lanes, timeout, place.program))
        yield {"begin": tasks[0]}
        yield WorkerDied(tasks[0], "timed out", "no answer within 120 s")
        yield {"task": tasks[1], "results": []}
        yield {"begin": tasks[1]}

    monkeypatch.setattr(precompile, "side_by_side", lanes)
    monkeypatch.setattr(precompile, "usable_cores", lambda: cores)
    names = [f"compiled {number}" for number in range(tasks)]
    first, death, second = compile_peers({}, names)
    assert (names[0], "timed out", names[1]) == (first, death.status, second)
    assert [(processes, 120.0, "prism_bench.run.peers_worker")] == started


@pytest.fixture
def driven(monkeypatch):
    """The tasks that a run compiles ahead, and the progress that it reports once nothing else is left to do."""

    def drive(timed=True, backend="cuda", work=lambda self, *arguments, **named: None, **settings):
        compiled, seen, at_work = [], [], Event()

        def compile_peers(order, tasks):
            compiled.extend(tasks)
            yield from tasks
            at_work.wait()

        def report(event):
            seen.append((event.done, event.total, event.task))
            at_work.set()

        monkeypatch.setattr(precompile, "compile_peers", compile_peers)
        monkeypatch.setattr(job, "ahead_tasks", lambda cases: [f"compiled {case.task}" for case in cases])
        monkeypatch.setattr(Run, "go_through", work)
        Run(CATALOGUE, backend, Settings(**settings), report).measure([CASE], timed)
        return compiled, seen

    return drive


def test_a_run_waits_for_the_compilation_before_it_times_and_reports_how_far_it_is(driven):
    task = f"compiled {CASE.task}"
    assert ([task], [(0, 4, f"compiling {task} (0 of 1)")]) == driven()


def test_choices_of_inductor_are_forgotten_when_all_that_is_not_timed_is_done(driven, monkeypatch):
    done = []
    monkeypatch.setattr(job, "forget_choices", lambda: done.append("forgotten"))
    driven(work=lambda self, *rest, timed=True, **named: done.append("timed" if timed else "untimed"))
    assert "forgotten" == done[done.index("timed") - 1]
    assert 1 == done.count("forgotten")


@pytest.mark.parametrize("given", [{"peers": False}, {"timed": False}, {"backend": "null"}], ids=str)
def test_who_times_no_peers_compiles_none(driven, given):
    assert ([], []) == driven(**given)


def test_a_peer_that_takes_too_long_is_left_out_of_the_run_and_one_that_crashes_is_not(monkeypatch):
    late = WorkerDied(f"torch_compiled {CASE.task}", "timed out", "no answer within 120 s")
    crashed = WorkerDied(f"torch_autotuned {CASE.task}", "crashed", "the process ended (killed by signal 9)")
    monkeypatch.setattr(precompile, "compile_peers", lambda order, tasks: iter([late, crashed]))
    monkeypatch.setattr(job, "ahead_tasks", lambda cases: ["torch_compiled x"])
    monkeypatch.setattr(Run, "go_through", lambda self, *arguments, **named: None)
    run = Run(CATALOGUE, "cuda", Settings())
    run.measure([CASE])
    reasons = {"torch_compiled": "it was not compiled within 120 s"}
    assert {CASE.task: reasons} == run._order_for(1, [], timed=True, verifies=False)["avoid"]


def test_an_error_meanwhile_ends_the_compilation(monkeypatch):
    asked, told = [], Event()

    def compile_peers(order, tasks):
        for task in tasks:
            asked.append(task)
            yield task
            told.wait()

    monkeypatch.setattr(precompile, "compile_peers", compile_peers)
    with pytest.raises(KeyboardInterrupt), PeerCompilation({}, ["compiled a", "compiled b", "compiled c"]):
        raise KeyboardInterrupt
    told.set()
    assert len(asked) < 3


class Compiling(NumpyBackend):
    """A backend whose peers are prepared, well or badly."""

    name = "cuda"

    def __init__(self, answering=True, fails=None):
        self.prepared, self._answering, self._fails = [], answering, fails

    def answers(self):
        return self._answering

    def peers(self, case):
        return ("torch", "torch_compiled", "torch_autotuned", "cupy")

    def prepare(self, case, inputs):
        if self._fails == "kernel":
            raise MemoryError("wants 1 PB")
        return super().prepare(case, inputs)

    def prepare_peer(self, case, name, runnable):
        self.prepared.append(name)
        if self._fails == name:
            raise RuntimeError("no such operator")
        return runnable


@pytest.mark.parametrize(("name", "prepared"), [("torch_compiled", ["torch_compiled"]), ("cupy_compiled", [])])
def test_a_form_of_the_case_is_prepared_as_it_will_be_timed(name, prepared):
    backend = Compiling()
    compile_peer(backend, CASE, name)
    assert prepared == backend.prepared


@pytest.mark.parametrize(("fails", "prepared"), [("torch_compiled", ["torch_compiled"]), ("kernel", [])])
def test_what_fails_is_left_to_its_cell(fails, prepared):
    backend = Compiling(fails=fails)
    compile_peer(backend, CASE, "torch_compiled")
    assert prepared == backend.prepared


def test_a_process_whose_device_is_lost_ends_so_that_another_one_goes_on():
    with pytest.raises(RuntimeError):
        compile_peer(Compiling(answering=False, fails="torch_autotuned"), CASE, "torch_autotuned")
