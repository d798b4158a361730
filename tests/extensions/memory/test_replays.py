"""Traces measured by a worker, on an allocator that only counts."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import discover
from prism_bench.extensions.memory import SizeClassPool, replay, trace
from prism_bench.extensions.memory.replay import CountingSource, measure_trace
from prism_bench.extensions.memory.trace import Tracker, random_trace
from prism_bench.run.task_worker import TaskContext
from tests.extensions.memory.fake_device import Held

pytest.importorskip("cupy")

from prism_bench.extensions.memory import cupy_pool  # noqa: E402

TOYS = Path(__file__).resolve().parents[2] / "toys"


@pytest.fixture
def opened(monkeypatch):
    """The size-class pool on a source that counts, and a device that reports the counts."""
    source = CountingSource()
    pool = SizeClassPool(source)
    monkeypatch.setattr(cupy_pool, "device_used", lambda: sum(source.held.values()))
    return cupy_pool.Allocator(
        lambda size: Held(pool, size), lambda: pool.state().live, lambda: pool.state().held, pool.clear
    )


@pytest.fixture
def path(tmp_path):
    return trace.save(random_trace(200), tmp_path / "random.json.gz")


def test_first_process_counts_memory(opened, path):
    result = measure_trace(path, opened, NumpyBackend(), first=True)
    values = {name: entry["value"] for name, entry in result.profile["values"].items()}
    assert ("trace:random", "ok", ()) == (result.name, result.status, result.measurements)
    assert result.bytes == values["peak_asked"] <= values["peak_used"] <= values["peak_held"] == values["peak_device"]
    assert "this allocator does not report it" == result.profile["values"]["external_fragmentation"]["reason"]


def test_later_processes_time_operations(opened, path):
    result = measure_trace(path, opened, NumpyBackend(), first=False)
    assert ["allocation_time", "allocation_tail", "release_time"] == [
        measurement.metric for measurement in result.measurements
    ]
    assert all(seconds > 0 for measurement in result.measurements for seconds in measurement.samples)
    assert {} == result.profile


def test_a_trace_that_does_not_fit_is_skipped(opened, path):
    def refuse(size):
        raise MemoryError("the device has no more")

    full = cupy_pool.Allocator(refuse)
    result = measure_trace(path, full, NumpyBackend(), first=False)
    assert ("skipped", "out of memory: the device has no more") == (result.status, result.reason)


def test_unknown_and_missing_allocators_are_refused(monkeypatch):
    from prism_bench.errors import BackendUnavailable, UsageError

    with pytest.raises(UsageError, match="unknown allocator 'size'; did you mean size_class"):
        cupy_pool.open_allocator("size")
    monkeypatch.setattr(cupy_pool, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match="RMM is not installed here"):
        cupy_pool.open_allocator("rmm")


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """A function that records a catalogue whose first kernel fails with an error, and returns the cases that ran."""
    seen = []

    def record(error):
        def run(backend, case, seeds):
            seen.append(case.name)
            if len(seen) == 1:
                raise error

        monkeypatch.setattr(replay, "verify", run)
        replay.record_catalogue(TaskContext({"label": "S0"}, NumpyBackend(), discover(TOYS)), tmp_path)
        return seen

    recorder = SimpleNamespace(trace=lambda **facts: random_trace(10), tracker=Tracker())
    monkeypatch.setattr(cupy_pool, "recording", lambda name: nullcontext(recorder))
    return record


def test_a_kernel_that_fails_does_not_end_the_recording(recorded, tmp_path):
    assert len(recorded(ValueError("no such function in this library"))) > 1
    assert 10 == trace.read(tmp_path / "random.json.gz").allocations


def test_sticky_device_error_ends_the_recording(recorded, monkeypatch):
    monkeypatch.setattr(replay, "is_sticky", lambda backend, error: True)
    with pytest.raises(RuntimeError, match="illegal"):
        recorded(RuntimeError("illegal address"))
