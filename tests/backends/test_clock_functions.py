"""The clock calls what was there when CuPy was opened, and says so when something else is there by then."""

import sys
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda import device
from prism_bench.backends.cuda.timers import Harness
from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import call_checks


class Event:
    """An event of a CuPy that is played."""

    def record(self, stream):
        """Nothing to record."""


class Stream:
    """Its stream."""

    ptr = 7

    def synchronize(self):
        """Nothing to wait for."""


Event.__module__ = Stream.__module__ = "cupy.cuda.stream"


def other(*given):
    """What somebody put there instead."""


def of_cupy(value):
    """A function that is not one of Python's, as CuPy's compiled ones are not."""
    return type("compiled", (), {"__module__": "cupy.cuda.stream", "__call__": lambda self, *given: value})()


@pytest.fixture
def cupy(monkeypatch):
    """A CuPy that is played, and originals of which nothing is left afterwards."""
    monkeypatch.setattr(call_checks, "_KEPT", dict(call_checks._KEPT))
    monkeypatch.setattr(call_checks, "_STRANGE", [])
    monkeypatch.setattr(device, "_BOUND", {})
    module = ModuleType("cupy")
    module.RawModule = object
    runtime = SimpleNamespace(
        deviceSynchronize=of_cupy(None), driverGetVersion=lambda: 13000, getDeviceCount=lambda: 1,
        CUDARuntimeError=RuntimeError,
    )  # fmt: skip
    functions = {name: of_cupy(0.018) for name in ("get_elapsed_time", "get_current_stream", "alloc_pinned_memory")}
    module.cuda = SimpleNamespace(Event=Event, Stream=Stream, runtime=runtime, **functions)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def harness(cupy, wall=20e-6):
    """A harness of which only the reading of a sample is real."""
    made = Harness.__new__(Harness)
    made._functions, made.stream, made._flag, made._disagreeing = device.bound(cupy), Stream(), np.zeros(2, int), 0
    made._start = made._stop = Event()
    made._refuse_strange_stream = made._hold = lambda: None
    made._stamp = lambda which: None
    made._stamped = lambda: (1.98e9, wall)
    return made


def test_a_replaced_function_sets_no_time_and_is_reported(cupy):
    """What a spec does when it is imported comes after the device is opened."""
    device.open_cupy()
    assert 18e-6 == pytest.approx(harness(cupy).timed(lambda: None, cold=False).seconds)
    cupy.cuda.get_elapsed_time = lambda start, stop: 1e-3
    assert 0.018 == device.bound(cupy).elapsed(None, None)
    with pytest.raises(MeasurementInvalid, match=r"cupy\.cuda\.get_elapsed_time was replaced"):
        harness(cupy).timed(lambda: None, cold=False)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda cupy, patch: patch.setattr(cupy.cuda, "Event", object), "cupy.cuda.Event"),
        (lambda cupy, patch: patch.setattr(Event, "record", other), "cupy.cuda.Event.record"),
        (lambda cupy, patch: patch.setattr(Stream, "synchronize", other), "cupy.cuda.Stream.synchronize"),
        (lambda cupy, patch: patch.setattr(time, "perf_counter", min), "time.perf_counter"),
        (lambda cupy, patch: patch.setattr("statistics.median", min), "statistics.median"),
        (lambda cupy, patch: patch.setattr("prism_bench.measure.sample", min), "prism_bench.measure.sample"),
        (
            lambda cupy, patch: patch.setattr("prism_bench.record.measurement.Measurement.median", 1e-9),
            "Measurement.median",
        ),
        (lambda cupy, patch: patch.setattr(Harness, "timed", min), "Harness.timed"),
        (lambda cupy, patch: patch.setattr("prism_bench.backends.cuda.timers.HotTimer.__call__", min), "HotTimer"),
    ],
)
def test_every_function_between_the_events_and_the_number_is_watched(cupy, monkeypatch, change, name):
    device.open_cupy()
    once = harness(cupy).timed
    change(cupy, monkeypatch)
    with pytest.raises(MeasurementInvalid, match=name.replace(".", r"\.")):
        once(lambda: None, cold=False)


@pytest.mark.parametrize("name", ["get_elapsed_time", "get_current_stream"])
def test_what_is_a_function_of_python_when_the_device_is_opened_is_not_cupys(cupy, name):
    setattr(cupy.cuda, name, lambda *given: 1e-3)
    device.open_cupy()
    with pytest.raises(MeasurementInvalid, match=f"cupy.cuda.{name} was replaced"):
        harness(cupy).timed(lambda: None, cold=False)


def test_events_that_tell_another_time_than_the_device_are_refused(cupy):
    """Three samples in a row: one may be another process's turn on the device between the stamps and the events."""
    made = harness(cupy, wall=320e-6)
    made.timed(lambda: None, cold=False)
    made.timed(lambda: None, cold=False)
    with pytest.raises(MeasurementInvalid, match=r"events measure 18\.00 us and the device's own timer 320\.00 us"):
        made.timed(lambda: None, cold=False)


def test_long_samples_and_devices_without_a_timer_are_not_accused(cupy):
    for wall in (70e-6, None):
        made = harness(cupy, wall=wall)
        for _ in range(9):
            made.timed(lambda: None, cold=False)
