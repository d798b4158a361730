"""A run that verifies side by side before it times: the same record as by one process, whatever happens in a lane."""

from dataclasses import replace
from importlib import import_module
from threading import enumerate as threads

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.io import workers
from prism_bench.run import lanes_for
from prism_bench.run.pool import HERE, _lacked_memory, longest_first, sharing_cores, worth

TOYS = ["double[n=1000]", "double:by_adding[n=1000]", "triple[n=1000]", "nothing[blocks=1]"]


@pytest.fixture
def abreast(play, monkeypatch):
    """A run in three lanes however few the tasks are."""
    monkeypatch.setattr("prism_bench.run.pool.WORTH_A_START", 1)
    return lambda script=None, **more: play(script, lanes=3, **more)


def plain(record):
    return {case.name: (case.status, len(case.verification), len(case.measurements)) for case in record.cases}


def test_few_tasks_are_worth_one_lane():
    assert (1, 1, 2, 6) == (worth(6, []), worth(6, ["a"] * 8), worth(6, ["a"] * 9), worth(6, ["a"] * 100))


def test_long_tasks_come_first_and_short_ones_last_and_the_others_keep_their_order():
    seconds = {"a": 5.0, "long": 40.0, "b": 6.0, "longest": 80.0, "tiny": 0.01, "short": 0.1, "c": 5.5}
    tasks = ["tiny", "a", "short", "long", "b@block=128", "c", "longest", "unknown"]
    expected = ["longest", "long", "unknown", "a", "b@block=128", "c", "short", "tiny"]
    assert expected == longest_first(tasks, seconds, 1)
    assert ["y", "x"] == longest_first(["y", "x"], {}, 6)
    assert [] == longest_first([], seconds, 6)


def test_workers_side_by_side_share_the_cores(monkeypatch):
    monkeypatch.setattr("prism_bench.run.pool.usable_cores", lambda: 16)
    assert HERE == sharing_cores(HERE, 1)
    threads = [sharing_cores(HERE, lanes).variables["OPENBLAS_NUM_THREADS"] for lanes in (6, 12, 32)]
    assert ["2", "1", "1"] == threads
    assert "8" == sharing_cores(replace(HERE, variables={"MKL_NUM_THREADS": "8"}), 6).variables["MKL_NUM_THREADS"]


def test_nothing_but_a_device_and_the_emulator_has_more_than_one():
    assert 1 == lanes_for("numpy_reference") == lanes_for("null")
    assert 1 <= lanes_for("cuda") <= 8


def test_the_record_is_that_of_one_lane(abreast, play):
    assert plain(play(processes=2)) == plain(abreast(processes=2))


def test_everything_is_verified_before_anything_is_timed(abreast):
    seen = []
    abreast(report=seen.append, filters=["double", "triple"])
    tasks = [event.task for event in seen]
    assert {"edges:double", "edges:double:by_adding", "edges:triple"} == set(tasks[:3])
    assert set(tasks[3:6]) == set(tasks[6:]) == set(TOYS[:3])
    assert ([6, 7, 8], {9}) == ([event.done for event in seen[6:]], {event.total for event in seen})


def test_what_is_wrong_in_a_lane_is_never_timed(abreast):
    record = abreast({"triple[n=1000]": {"wrong": True}, "double[n=1]": {"wrong": True}})
    assert ("wrong", 2, 0) == plain(record)["triple[n=1000]"]
    assert ("wrong", 0) == (record.case(TOYS[0]).status, len(record.case(TOYS[0]).measurements))
    assert record.case("nothing[blocks=1]").measurements


def test_a_crash_in_a_lane_leaves_the_others_alone(abreast):
    record = abreast({"triple[n=1000]": {"crash": True}})
    assert "crashed" == record.case("triple[n=1000]").status
    assert 3 == len([case for case in record.cases if case.measurements])


def test_a_hang_in_a_lane_is_ended(abreast):
    record = abreast({"triple[n=1]": {"hang": True}}, timeout=2.0)
    assert "timed out" == record.case("triple[n=1]").status
    assert record.case("double[n=1000]").measurements


def test_what_lacked_memory_beside_others_is_tried_again_alone(abreast):
    seen = []
    record = abreast({"triple[n=1000]": {"memory": True}}, report=seen.append)
    assert "skipped" == record.case("triple[n=1000]").status
    assert 2 == [event.task for event in seen].count("triple[n=1000]")
    assert 3 == len([case for case in record.cases if case.measurements])


def test_a_lane_that_never_starts_leaves_its_task_to_the_others(abreast, monkeypatch):
    started, really = [], workers.EventWorker

    def start(place):
        started.append(place)
        return really(replace(place, program="prism_bench.nowhere") if len(started) == 1 else place)

    monkeypatch.setattr("prism_bench.io.workers.EventWorker", start)
    record = abreast()
    assert (True, {"ok"}) == (record.complete, {case.status for case in record.cases})


def test_a_process_that_dies_compiling_ahead_ends_no_run(abreast, monkeypatch):
    really, died = workers.work, []

    def work(order, timeout, place, waiting=None):
        if order["ahead"]:
            died.append(order)
            raise workers.WorkerDied(None, "crashed", "no memory for so many compilers")
        yield from really(order, timeout, place, waiting)

    monkeypatch.setattr(import_module("prism_bench.run.precompile"), "work", work)
    record = abreast(filters=["double"])
    assert (1, True) == (len(died), record.complete)
    assert record.case("double[n=1000]").measurements


def test_where_no_lane_starts_the_run_says_so(abreast, monkeypatch):
    really = workers.EventWorker
    elsewhere = lambda place: really(replace(place, program="prism_bench.nowhere"))  # noqa: E731
    monkeypatch.setattr("prism_bench.io.workers.EventWorker", elsewhere)
    with pytest.raises(BackendUnavailable, match="backend null does not start: the process ended"):
        abreast()


@pytest.mark.parametrize(
    ("status", "reason", "cell", "again"),
    [
        ("skipped", "k: out of memory: wants 9 GB", None, True),
        ("ok", None, "CUDA out of memory. Tried to allocate 2.00 GiB", True),
        ("ok", None, "Out of memory allocating 4,294,967,296 bytes (allocated so far: 8 bytes).", True),
        ("ok", None, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("ok", None, "its y differs from the reference by 0.1", False),
        ("skipped", "k: for compute capability 90, not 80", None, False),
        ("failed", "k: RuntimeError: no luck", None, False),
    ],
)
def test_what_lacked_memory_is_known_by_its_words(status, reason, cell, again):
    cells = [{"reason": cell}] if cell else []
    assert again is _lacked_memory({"results": [{"status": status, "reason": reason, "measurements": cells}]})


def test_ctrl_c_ends_every_lane(abreast):
    def interrupt(event):
        raise KeyboardInterrupt

    before = set(threads())
    record = abreast(report=interrupt)
    assert (False, ()) == (record.complete, record.cases)
    for thread in set(threads()) - before:
        thread.join(10)
    assert before >= set(threads())


def test_the_edge_that_hung_is_named(abreast):
    record = abreast({"double[n=1]": {"hang": True}}, timeout=2.0)
    assert ("timed out", "double[n=1]: no answer within 2 s") == (
        record.case("double[n=1]").status, record.case("double[n=1]").reason
    )  # fmt: skip
