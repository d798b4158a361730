"""Launches that overlap the one before them, on a stand-in for the driver: their configuration, and refusals."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda.runnable import LaunchExtents, _Configuration, overlapping_call
from prism_bench.errors import BackendUnavailable


class Driver:
    """Writes down the configuration and the parameters of a launch."""

    def __init__(self, status=0):
        self.status = status

    def cuLaunchKernelEx(self, configuration, function, parameters, extra):  # noqa: N802
        given = ctypes.cast(configuration, ctypes.POINTER(_Configuration)).contents
        attribute = given.attributes[0]
        self.shape = ([*given.grid], [*given.block], given.shared, given.stream, function.value)
        self.attributes = (given.count, attribute.id, attribute.value[0])
        self.parameters = (
            ctypes.c_uint64.from_address(parameters[0]).value,
            ctypes.c_int32.from_address(parameters[1]).value,
            ctypes.c_float.from_address(parameters[2]).value,
        )
        return self.status


VALUES = (SimpleNamespace(data=SimpleNamespace(ptr=4096)), np.int32(-7), np.float32(0.5))


def test_a_launch_may_begin_early_on_the_stream_of_the_moment():
    driver, streams = Driver(), iter((11, 12))
    call = overlapping_call(99, LaunchExtents((4, 2, 1), (64, 1, 1), 512), VALUES, lambda: next(streams), driver)
    call()
    assert driver.shape == ([4, 2, 1], [64, 1, 1], 512, 11, 99)
    assert driver.attributes == (1, 6, 1)
    assert driver.parameters == (4096, -7, 0.5)
    call()
    assert driver.shape[3] == 12


def test_a_driver_that_refuses_is_reported():
    call = overlapping_call(99, LaunchExtents((1, 1, 1), (32, 1, 1), 0), VALUES, lambda: 0, Driver(status=1))
    with pytest.raises(BackendUnavailable, match="error 1"):
        call()
