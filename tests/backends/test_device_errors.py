"""The CUDA backend as far as it can be tried without a device: what is copied when, and who says that all is lost."""

from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends import open_backend
from prism_bench.backends.cuda.backend import CudaBackend
from prism_bench.backends.cuda.runnable import CudaRunnable
from prism_bench.backends.cuda.timers import captured
from prism_bench.measure.plausibility import peaks_of
from tests.built_in import CATALOGUE


class Copied:
    """A buffer that tells when it is copied to the host."""

    def __init__(self, log, name):
        self._log, self._name = log, name

    def get(self):
        self._log.append(self._name)
        return np.zeros(3)


@pytest.fixture
def prepared():
    """A runnable of a kernel that works in place, which nothing was launched of, and what is copied of it."""
    log, runnable = [], CudaRunnable.__new__(CudaRunnable)
    runnable.case = CATALOGUE.case("relu:in_place[n=1000]")
    runnable._buffers = {array.name: Copied(log, array.name) for array in runnable.case.spec.arrays}
    runnable._harness, runnable._pristine = SimpleNamespace(stream=None), {"x": None}
    runnable.restore = lambda: log.append("restored")
    return runnable, log


def test_inputs_are_copied_to_the_host_only_for_the_metric_that_wants_them(prepared):
    runnable, log = prepared
    timers = runnable.timers()
    assert [] == log
    timers["end_to_end_time"]()
    assert ["restored", *(array.name for array in runnable.case.spec.inputs)] == log


def test_nothing_is_cleared_while_a_launch_may_still_run(prepared):
    runnable, log = prepared
    runtime = SimpleNamespace(deviceSynchronize=lambda: log.append("idle"))
    runnable._cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    runnable._reset_one = lambda array, inputs: log.append(array.name)
    runnable.reset({})
    assert ["idle", *(array.name for array in runnable.case.spec.arrays), "idle"] == log


class Failure(Exception):
    """CuPy's error of a call into the runtime."""


@pytest.mark.parametrize("lost", [False, True])
def test_a_device_that_gives_its_error_again_answers_no_more(lost):
    def synchronize():
        if lost:
            raise Failure("cudaErrorHardwareStackError")

    runtime = SimpleNamespace(deviceSynchronize=synchronize, CUDARuntimeError=Failure)
    backend = CudaBackend.__new__(CudaBackend)
    backend.xp = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    assert backend.answers() is not lost


class Stream:
    """A stream that logs what is done with it, and the graph that it gives."""

    ptr = 0

    def __init__(self):
        self.log = []

    def __getattr__(self, word):
        return lambda *given: self.log.append(word) or self


def test_a_call_is_captured_as_often_as_it_is_to_run():
    stream, calls = Stream(), []
    replay = captured(stream, lambda: calls.append("call"), 3)
    assert (["call"] * 3, ["synchronize", "begin_capture", "end_capture", "upload"]) == (calls, stream.log)
    replay()
    assert ("launch", 3) == (stream.log[-1], len(calls))


def test_a_call_that_fails_leaves_no_stream_in_its_capture():
    stream = Stream()
    with pytest.raises(ZeroDivisionError):
        captured(stream, lambda: 1 / 0)
    assert "end_capture" == stream.log[-1]


@pytest.mark.gpu
def test_a_device_tells_its_clocks_and_widths():
    backend = open_backend("cuda")
    peaks = peaks_of(backend.facts())
    assert peaks["bandwidth"] == backend.bounds().bus
    assert 0.1e12 < peaks["bandwidth"] < 20e12
    assert 1e12 < peaks["fp32"] < 500e12
