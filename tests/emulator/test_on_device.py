"""What asks a GPU the emulator's questions, as far as that can be tried without one."""

from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.compilation import compile_source
from prism_bench.errors import BackendUnavailable
from tests.emulator import documented_errors, test_float_functions, test_integer_functions, test_matrices
from tests.emulator import test_sixteen_bit_floats as sixteen_bit_floats
from tests.emulator import test_warp_functions as warp_functions
from tests.emulator.on_device import DeviceModule, build

SOURCES = {
    "float": (test_float_functions.SOURCE, test_float_functions.ENTRIES),
    "integer": (test_integer_functions.SOURCE, list(test_integer_functions.SIGNATURES)),
    "matrices": (test_matrices.SOURCE, test_matrices.ENTRIES),
    "sixteen bit": (sixteen_bit_floats.SOURCE, sixteen_bit_floats.ENTRIES),
    "warp": (warp_functions.SOURCE, warp_functions.DEVICE_ENTRIES),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_compile_for_the_device(name):
    source, entries = SOURCES[name]
    try:
        compiled = compile_source(source, tuple(entries), "90")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert set(compiled.lowered) == set(entries)


@pytest.fixture(scope="module")
def emulated():
    return build(*SOURCES["float"], "fast")


@pytest.mark.parametrize("name", documented_errors.FUNCTIONS)
def test_emulator_keeps_the_documented_errors_too(emulated, name):
    function, points = test_float_functions.FUNCTIONS[name]
    x = points.astype(np.float32)
    wide = x.astype(np.float64)
    bound = documented_errors.FUNCTIONS[name](wide, function(wide))
    values = test_float_functions.run(emulated, name, [x], np.float32)
    test_float_functions.assert_within(values, function(wide), bound)
    with pytest.raises(AssertionError, match="beyond the documented error"):
        test_float_functions.assert_within(values + 3 * bound, function(wide), bound)


class StandInArray(np.ndarray):
    """A device's array as far as a launch sees it."""

    def get(self):
        return np.array(self)


class Doubling:
    """A device with one kernel: y = 2 x + x[n - 1]."""

    def __init__(self):
        self.launches = []
        self.cuda = SimpleNamespace(runtime=SimpleNamespace(deviceSynchronize=lambda: self.launches.append("waited")))

    def asarray(self, array):
        return array.copy().view(StandInArray)

    def RawModule(self, path, enable_cooperative_groups):  # noqa: N802 - CuPy's name
        return SimpleNamespace(get_function=lambda name: self._kernel)

    def _kernel(self, grid, block, values, shared_mem):
        x, y, n = values
        y[...] = 2 * x + x[n - 1]
        self.launches.append((grid, block, shared_mem))


def device_module(device):
    module = DeviceModule.__new__(DeviceModule)
    module._cupy, module._modules = device, {}
    module._compiled = SimpleNamespace(path="doubling.cubin", lowered={"doubling": "_Z8doubling"})
    return module


def test_a_launch_copies_there_and_back_in_place():
    device = Doubling()
    x, y = np.arange(4.0), np.zeros(4)
    report = device_module(device).launch("doubling", (2, 3), 64, [x, y, np.int32(4)], shared_bytes=16, order="reverse")
    assert report.is_clean
    assert y.tolist() == [3, 5, 7, 9]
    assert x.tolist() == [0, 1, 2, 3]
    assert device.launches == [((2, 3, 1), (64, 1, 1), 16), "waited"]


def test_an_array_passed_twice_is_one_buffer():
    x = np.arange(4.0)
    device_module(Doubling()).launch("doubling", 1, 4, [x, x, np.int32(4)])
    assert x.tolist() == [3, 5, 7, 9]
