"""Groups of GPUs: refused groups, and the common start of the devices of a sample."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from prism_bench.backends.cuda.timers import StreamNotHeld
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.links.groups import CudaCall, CudaGroup
from prism_bench.extensions.links.session import LinkSession
from prism_bench.record.measurement import Sample


def cupy_with(devices, reach=True):
    runtime = SimpleNamespace(getDeviceCount=lambda: devices, deviceCanAccessPeer=lambda number, peer: reach)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


def test_one_gpu_is_a_skipped_case_with_the_reason():
    backend = SimpleNamespace(name="cuda", xp=cupy_with(1))
    result = LinkSession(backend, first=True).task("all_reduce:nccl@small@2")
    assert ("skipped", "2 GPUs of one host are needed, and 1 is visible") == (result.status, result.reason)


def test_gpus_that_do_not_reach_each_other_are_refused():
    with pytest.raises(BackendUnavailable, match="GPU 0 has no access to the memory of GPU 1"):
        CudaGroup(cupy_with(2, reach=False), 2)


class Clock:
    """A harness that notes what happens to it."""

    def __init__(self, log, number, samples):
        self._log, self._number, self._samples = log, number, samples

    def begin(self, cold):
        self._log.append(("begin", self._number, cold))

    def end(self):
        self._log.append(("end", self._number))

    def release(self):
        self._log.append(("release", self._number))

    def finish(self, launch_seconds):
        return self._samples.pop(0)


class Member:
    """A GPU whose harness takes these samples."""

    def __init__(self, log, number, samples):
        self.number, self.harness = number, Clock(log, number, samples)

    @contextmanager
    def current(self):
        yield


class Call(CudaCall):
    """A call that notes when it is enqueued."""

    def __init__(self, log, *samples):
        self.group = SimpleNamespace(members=[Member(log, number, list(taken)) for number, taken in enumerate(samples)])
        self.log = log

    def enqueue(self):
        self.log.append(("enqueue",))


def test_devices_are_released_together_and_the_slowest_counts():
    log = []
    sample = Call(log, [Sample(2e-6)], [Sample(5e-6)], [Sample(3e-6)]).sample()
    assert 5e-6 == sample.seconds
    kinds = [event[0] for event in log]
    assert ["begin"] * 3 + ["enqueue"] + ["end"] * 3 + ["release"] * 3 == kinds
    assert all(event[2] for event in log if event[0] == "begin")


def test_sample_with_an_early_device_is_repeated():
    log = []
    sample = Call(log, [None, Sample(2e-6)], [Sample(9e-6), Sample(3e-6)]).sample()
    assert 3e-6 == sample.seconds
    with pytest.raises(StreamNotHeld):
        Call(log, [None] * 3, [Sample(1e-6)] * 3).sample()


def test_error_while_enqueueing_releases_all_devices():
    log = []
    call = Call(log, [], [])
    call.enqueue = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        call.sample()
    assert {("release", 0), ("release", 1)} <= set(log)
