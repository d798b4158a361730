"""The measuring step of a nightly run, with parts that end as they are told."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.ci.nightly import (
    NightlyMeasurement,
    NightlyPlan,
    locked,
    measured,
    measured_again,
    measuring,
    new_logs,
)
from prism_bench.extensions.ci.nightly.measuring import grown
from prism_bench.io.workers import environment
from prism_bench.record import store
from tests.report.synthetic import case_result, record_of

# A part: prints how far it is, copies its record, and ends with its code; SLOW makes it wait for SIGTERM.
STUB = """
import os, shutil, signal, sys, time
words = sys.argv[1:]
part = words[words.index("--part") + 1][0] if "--part" in words else "1"
print("4 cases, 1 process: about 1 min", flush=True)
print(f"process 1, {part} of 9: case", file=sys.stderr, flush=True)
if os.environ.get("SLOW"):
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.pause()
source = os.environ.get(f"RECORD{part}")
if source and "--output" in words:
    shutil.copy(source, words[words.index("--output") + 1])
elif source:
    print(f"record: {source}")
sys.exit(int(os.environ.get(f"CODE{part}", "0")))
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """Stand-ins for parts, and one record for each."""
    (tmp_path / "nightly_stub.py").write_text(STUB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(measuring, "_MODULE", "nightly_stub")
    for part, name in ((1, "softmax"), (2, "gelu")):
        case = case_result(name, times={"cold_time": 1e-5})
        path = store.save(
            replace(record_of(case), machine={"id": "box", "uuid": f"GPU-{part}"}), tmp_path / f"{part}.json.gz"
        )
        monkeypatch.setenv(f"RECORD{part}", str(path))
    return tmp_path


def plan_of(folder, gpus=1):
    return NightlyPlan(folder, ("softmax",), gpus, None, folder / "runs", folder / "site", folder / "noise")


def measure(folder, gpus=1, report=lambda states: None):
    return measured(plan_of(folder, gpus), new_logs(folder), report)


def test_one_part_names_its_record(stub):
    found = measure(stub)
    assert (0, stub / "1.json.gz", False, ()) == (found.code, found.record, found.interrupted, found.problems)


def test_several_parts_become_one_record(stub):
    found = measure(stub, 2)
    assert 0 == found.code
    assert ["gelu", "softmax"] == sorted(case.kernel for case in store.read(found.record).cases)
    assert found.record.is_relative_to(stub / "runs")


@pytest.mark.parametrize(
    ("gpus", "codes", "expected"),
    [(1, ["1"], 1), (1, ["2"], 2), (1, ["137"], 2), (2, ["0", "2"], 2), (2, ["1", "3"], 3), (2, ["0", "130"], 2)],
)
def test_the_largest_code_of_the_parts_counts(stub, monkeypatch, gpus, codes, expected):
    for part, code in enumerate(codes, 1):
        monkeypatch.setenv(f"CODE{part}", code)
    assert expected == measure(stub, gpus).code


def test_a_part_that_is_lost_leaves_no_record_and_is_named(stub, monkeypatch):
    monkeypatch.delenv("RECORD2")
    found = measure(stub, 2)
    assert (2, None) == (found.code, found.record)
    (problem,) = found.problems
    assert problem.startswith("run-2 was not measured (") and problem.endswith("process 1, 2 of 9: case")
    assert not (stub / "runs").exists()


def test_every_part_has_its_gpu_and_its_share(stub, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    plan = plan_of(stub, 2)
    assert ["3", "5"] == plan.devices
    words = plan.run_arguments(2, stub / "2.json.gz")
    assert ["--part", "2/2", "--output", str(stub / "2.json.gz")] == words[-4:]
    assert "softmax" in words and "--lanes" in words


def test_fewer_visible_gpus_than_parts_are_refused(stub, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(UsageError, match=r"--workers 2: CUDA_VISIBLE_DEVICES=3 names fewer"):
        plan_of(stub, 2)


def test_how_far_every_part_is_is_reported(stub, monkeypatch):
    """Four GPUs measured for minutes, and nothing was printed."""
    monkeypatch.setenv("SLOW", "1")
    seen = set()

    def report(states):
        seen.update((state.number, state.count, state.line) for state in states)
        if {(1, 2, "process 1, 1 of 9: case"), (2, 2, "process 1, 2 of 9: case")} <= seen:
            raise KeyboardInterrupt

    measure(stub, 2, report)


def test_an_interrupt_keeps_what_was_measured(stub, monkeypatch):
    """One part has a record and one has none: the record of the first is kept, and marked incomplete."""
    monkeypatch.setenv("SLOW", "1")
    monkeypatch.delenv("RECORD2")

    def report(states):
        if all(state.line.startswith("process") for state in states):
            raise KeyboardInterrupt

    found = measure(stub, 2, report)
    assert found.interrupted and found.record
    assert not store.read(found.record).complete
    assert 1 == len(found.problems)


def test_an_error_while_waiting_ends_the_parts(stub, monkeypatch):
    monkeypatch.setenv("SLOW", "1")
    with pytest.raises(RuntimeError):
        measure(stub, 2, lambda states: (_ for _ in ()).throw(RuntimeError))
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(stub) not in listed


def test_a_part_ends_with_a_nightly_run_that_was_killed(tmp_path):
    """Its standard input closes; the command line's guard then keeps what was measured and ends with 2."""
    code = (
        "import prism_bench.extensions.ci.nightly.worker as w, threading, time;"
        "threading.Thread(target=w._end_with_parent, daemon=True).start(); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment())
    assert process.poll() is None
    process.stdin.close()
    assert -signal.SIGTERM == process.wait(30)


def test_two_runs_at_once_are_refused(tmp_path):
    with locked(tmp_path):
        with pytest.raises(UsageError, match=rf"another nightly run is measuring here \(process {os.getpid()}, since"):
            with locked(tmp_path):
                pass
    with locked(tmp_path):
        pass


def test_a_part_does_not_hold_the_lock(stub, monkeypatch):
    """A nightly run of several GPUs ended late, and the next one found its lock taken until then."""
    monkeypatch.setenv("SLOW", "1")
    with locked(stub):
        part = measuring.started(["run"], new_logs(stub) / "run-1", None)
    with locked(stub):
        deadline = time.monotonic() + 30
        while not part.line.startswith("process") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert part.code is None
    assert 0 == part.end()


def test_the_newest_logs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "KEPT_LOGS", 2)
    made = [new_logs(tmp_path) for _ in range(4)]
    assert made[2:] == sorted(made[0].parent.iterdir())
    assert "*\n" == (tmp_path / ".prism-bench/.gitignore").read_text()


@pytest.fixture
def grows(stub, monkeypatch):
    """A first record of two cases, and parts that measure `softmax` again; a function that runs the rounds."""
    first = replace(store.read(stub / "1.json.gz"), protocol={"version": 1})
    path = store.save(first, stub / "runs" / "box" / "first.json.gz")
    plan = replace(plan_of(stub), processes=2)
    told = []

    def rounds(undecided, found=NightlyMeasurement(0, path, False)):  # noqa: B008
        return measured_again(plan, found, new_logs(stub), undecided, lambda states: None, told.append), path, told

    return rounds


def processes_of(path):
    (case,) = store.read(path).cases
    return len(case.measurement("cold_time").processes)


def test_rounds_end_when_all_is_decided(grows, stub):
    """The stand-in measures as many processes as the first record has, whatever it is asked for."""
    answers = iter([{"softmax[n=100]"}, {"softmax[n=100]"}, set()])
    before = processes_of(stub / "1.json.gz")
    found, path, told = grows(lambda _: next(answers))
    assert (0, path, ()) == (found.code, found.record, found.problems)
    assert 3 * before == processes_of(path)
    assert [
        "1 undecided case: measured again in 3 processes",
        "1 undecided case: measured again in 6 processes",
    ] == told
    assert {"version": 1, "looks": 4} == store.read(path).protocol


def test_rounds_are_bounded(grows, monkeypatch):
    found, path, told = grows(lambda _: {"softmax[n=100]"})
    assert 3 == len(told)
    monkeypatch.setattr(measuring, "MOST_SECONDS", -1.0)
    told.clear()
    grows(lambda _: {"softmax[n=100]"})
    assert [] == told


def test_a_part_that_cannot_measure_again_is_a_problem_and_ends_the_rounds(grows, monkeypatch):
    monkeypatch.delenv("RECORD1")
    monkeypatch.setenv("CODE1", "3")
    found, path, told = grows(lambda _: {"softmax[n=100]"})
    assert 3 == found.code and 1 == len(told)
    (problem,) = found.problems
    assert problem.startswith("again-1-1 was not measured")


def test_nothing_is_measured_again_after_an_interrupt(grows):
    interrupted = NightlyMeasurement(2, None, True)
    found, _, told = grows(lambda _: {"softmax[n=100]"}, interrupted)
    assert interrupted == found and [] == told


def test_only_processes_of_the_same_code_and_board_join_a_record():
    case = case_result("softmax", times={"cold_time": 1e-5}, code={"sass": "a"})
    record = replace(record_of(case), machine={"id": "box", "uuid": "GPU-1"})
    other_code = replace(record, cases=(replace(case, code={"sass": "b"}),))
    other_board = replace(record, machine={"id": "box", "uuid": "GPU-2"})
    count = len(case.measurement("cold_time").processes)
    for more, expected in ((record, 2 * count), (other_code, count), (other_board, count)):
        assert expected == len(grown(record, [more]).cases[0].measurement("cold_time").processes)
