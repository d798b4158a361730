"""Backends are found by file name, opened by name, and say in one sentence what is missing."""

import json
import sys

import numpy as np
import pytest

from prism_bench import backends
from prism_bench.backends import null
from prism_bench.backends.cuda import device
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.io import installation
from prism_bench.io.installation import pip_install
from prism_bench.spec.case import Case
from tests.built_in import CATALOGUE

VECTOR = CATALOGUE.case("vector_add[n=100000]")


def test_every_file_of_the_folder_is_a_backend():
    assert ("cuda", "emulator", "null", "numpy_reference") == backends.names()


def test_an_unknown_backend_comes_with_the_nearest_names():
    with pytest.raises(UsageError, match="unknown backend 'numpy'; did you mean numpy_reference"):
        backends.open_backend("numpy")


@pytest.mark.parametrize("name", ["base", "__init__", "../null", ""])
def test_what_is_no_backend_cannot_be_opened(name):
    with pytest.raises(UsageError, match="unknown backend"):
        backends.open_backend(name)


@pytest.mark.parametrize("name", ["null", "numpy_reference"])
def test_a_backend_has_its_files_name_and_facts(name):
    opened = backends.open_backend(name)
    assert name == opened.name
    assert opened.facts()["device"]
    assert np.__version__ == opened.facts()["software"]["numpy"]


def no_driver():
    raise BackendUnavailable("no NVIDIA driver answers; references work without it")


def test_without_a_device_the_default_is_numpy_and_the_sentence_says_why(monkeypatch):
    from prism_bench.backends import cuda

    monkeypatch.setattr(cuda, "open_backend", no_driver)
    opened, sentence = backends.open_default()
    assert "numpy_reference" == opened.name
    assert "backend numpy_reference, because no NVIDIA driver answers; references work without it" == sentence


class Driver:
    """The driver's library: what `cuInit` returns, and the number of devices."""

    def __init__(self, opened, devices):
        self._opened, self._devices = opened, devices

    def cuInit(self, flags):  # noqa: N802 - CUDA's own name
        return self._opened

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = self._devices
        return 0


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, "this machine has no NVIDIA driver; install it"),
        (Driver(100, 0), "the driver finds no GPU; compare nvidia-smi with CUDA_VISIBLE_DEVICES"),
        (Driver(0, 0), "the driver finds no GPU; compare nvidia-smi with CUDA_VISIBLE_DEVICES"),
        (Driver(0, 1), f"CuPy is not installed; {pip_install('cuda13')}"),
    ],
)
def test_without_cupy_the_sentence_has_the_first_cause_and_its_cure(monkeypatch, driver, words):
    def opened(name):
        if driver is None:
            raise OSError(name)
        return driver

    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(installation.ctypes, "CDLL", opened)
    with pytest.raises(BackendUnavailable) as caught:
        device.open_cupy()
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith("work without it")


class Runtime:
    """A CUDA runtime with a driver of that version and so many devices."""

    class CUDARuntimeError(Exception):
        pass

    def __init__(self, driver, devices):
        self._driver, self._devices = driver, devices
        self.cuda = self
        self.runtime = self

    def driverGetVersion(self):  # noqa: N802 - CUDA's own name
        return self._driver

    def getDeviceCount(self):  # noqa: N802
        if self._devices is None:
            raise self.CUDARuntimeError("cudaErrorSystemDriverMismatch")
        return self._devices


@pytest.mark.parametrize(
    ("driver", "devices", "words"),
    [
        (0, 0, "this machine has no NVIDIA driver"),
        (11080, 1, "the driver supports CUDA 11.8, 12.0 is the oldest usable"),
        (13000, 0, "the driver finds no GPU"),
        (13000, None, "the GPU does not answer (cudaErrorSystemDriverMismatch)"),
    ],
)
def test_each_thing_that_can_be_missing_has_its_sentence(monkeypatch, driver, devices, words):
    monkeypatch.setitem(sys.modules, "cupy", Runtime(driver, devices))
    with pytest.raises(BackendUnavailable) as caught:
        device.open_cupy()
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith("work without it")


def test_the_cpu_baseline_computes_and_times_the_reference():
    with NumpyBackend().prepare(VECTOR, VECTOR.inputs(0)) as runnable:
        runnable()
        found = runnable.arrays(["a", "b", "c"])
        once = runnable.timers()["wall_time"]()
        samples = [once() for _ in range(3)]
    assert np.array_equal(found["a"] + found["b"], found["c"])
    assert np.dtype("float32") == found["c"].dtype
    assert all(0 < sample.seconds < 60 for sample in samples)
    assert all(sample.clock is None for sample in samples)


def test_the_cpu_baseline_refuses_what_memory_cannot_hold():
    large = Case(VECTOR.spec, type(VECTOR.workload)(n=1 << 42), "S2")
    with pytest.raises(MemoryError, match="wants .*TB.* free"):
        NumpyBackend().prepare(large, {})


def test_new_inputs_forget_old_outputs():
    with NumpyBackend().prepare(VECTOR, VECTOR.inputs(0)) as runnable:
        runnable()
        runnable.reset(VECTOR.inputs(1))
        with pytest.raises(KeyError):
            runnable.arrays(["c"])


def script(tmp_path, monkeypatch, text):
    path = tmp_path / "script.json"
    path.write_text(text)
    monkeypatch.setenv(null.SCRIPT, str(path))
    return path


@pytest.mark.parametrize("text", ["", "{", "not json"])
def test_a_script_that_is_no_json_is_named(tmp_path, monkeypatch, text):
    path = script(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError, match=f"PRISM_BENCH_NULL={path}: not a readable JSON script"):
        backends.open_backend("null")


@pytest.mark.parametrize("text", ["[]", "7", '{"double*": 7}'])
def test_a_script_that_is_no_table_of_behaviours_is_named(tmp_path, monkeypatch, text):
    path = script(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError, match=f"PRISM_BENCH_NULL={path}: not a readable JSON script"):
        backends.open_backend("null")


def test_a_fault_that_nobody_knows_is_named_and_not_overlooked(tmp_path, monkeypatch):
    script(tmp_path, monkeypatch, '{"*": {"crahs": true}}')
    with pytest.raises(UsageError, match="it scripts crahs; known are seconds, .*crash"):
        backends.open_backend("null")


def test_a_missing_script_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(null.SCRIPT, str(tmp_path / "nowhere.json"))
    with pytest.raises(UsageError, match=r"nowhere.json: not a readable JSON script \(.*No such file"):
        backends.open_backend("null")


def test_the_first_pattern_that_matches_plays(tmp_path, monkeypatch):
    script(tmp_path, monkeypatch, json.dumps({"vector_add[*": {"seconds": 7.0, "noise": 0}, "*": {"seconds": 9.0}}))
    with backends.open_backend("null").prepare(VECTOR, VECTOR.inputs(0)) as runnable:
        assert 7.0 == runnable.timers()["cold_time"]()().seconds


def test_without_a_script_it_behaves(monkeypatch):
    monkeypatch.delenv(null.SCRIPT, raising=False)
    with backends.open_backend("null").prepare(VECTOR, VECTOR.inputs(0)) as runnable:
        runnable()
        assert 1e-6 == pytest.approx(runnable.timers()["cold_time"]()().seconds, rel=0.2)
