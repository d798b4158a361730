"""A fake NVML for the real pynvml: a small C library that plays what a file says, and that file as a fixture."""

import subprocess
from ctypes import CDLL
from pathlib import Path

import pytest

pynvml = pytest.importorskip("pynvml")

HOPPER = {
    "uuid": "GPU-11111111-2222-3333-4444-555555555555", "name": "NVIDIA H200", "mig": 0, "persistence": 1,
    "temperature": 41, "reasons": 0, "sm_clock": 1980, "memory_clock": 3201, "max_sm_clock": 1980, "utilization": 35,
    "memory_utilization": 12, "memory_total": 150_000_000_000, "memory_used": 30_000_000_000, "energy": 5_000_000,
    "power": 310_500, "power_average": 300_000, "power_limit": 700_000, "power_throttled": 0, "thermal_throttled": 0,
    "ecc_corrected": 0, "ecc_uncorrected": 0, "rows_remapped": 0, "pcie_sent": 1200, "pcie_received": 800,
    "pcie_replays": 0, "sm_active": 82.5, "sm_occupancy": 40, "tensor_active": 0, "dram_active": 61, "processes": "",
    "busy": "", "memory_temperature": 44, "vbios": "96.00.89.00.01",
}  # fmt: skip


class Gpus:
    """The state of the scripted devices; every change is seen by the next call."""

    def __init__(self, path: Path):
        self._path, self._lines = path, {"devices": "0"}

    def add(self, **changes):
        """One more device, a Hopper unless `changes` say otherwise."""
        index = int(self._lines["devices"])
        self._lines["devices"] = str(index + 1)
        self.set(index, **{**HOPPER, **changes})
        return HOPPER["uuid"] if "uuid" not in changes else changes["uuid"]

    def set(self, device, **values):
        """Change quantities of a device; None takes one away, `!4` makes it answer with that code."""
        for quantity, value in values.items():
            self._lines[f"{device}.{quantity}"] = None if value is None else str(value)
        self._write()

    def library(self, **values):
        """Change what the library says of itself."""
        self._lines |= {name: str(value) for name, value in values.items()}
        self._write()

    def _write(self):
        text = "".join(f"{key} {value}\n" for key, value in self._lines.items() if value is not None)
        unfinished = self._path.with_suffix(".new")
        unfinished.write_text(text)
        unfinished.replace(self._path)


def _built(folder, *flags):
    library = folder / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("fake_nvml.c")
    words = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*words, *flags, "-o", str(library), str(source)], check=True)
    return library


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory):
    """The library, built once."""
    return _built(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory):
    """The same of a driver before 535."""
    return _built(tmp_path_factory.mktemp("old-nvml"), "-DOLD")


def _load(monkeypatch, library):
    monkeypatch.setattr(pynvml, "nvmlLib", CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(pynvml, "_nvmlLib_refcount", 0)


@pytest.fixture
def gpus(tmp_path, monkeypatch, fake_library):
    """No devices yet; pynvml in this process speaks to the fake library from here on."""
    path = tmp_path / "gpus"
    monkeypatch.setenv("FAKE_NVML", str(path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    _load(monkeypatch, fake_library)
    found = Gpus(path)
    found.library()
    return found


@pytest.fixture
def gpu(gpus):
    """One device."""
    gpus.add()
    return gpus


@pytest.fixture
def old_gpu(gpu, monkeypatch, old_library):
    """One device behind an old driver."""
    _load(monkeypatch, old_library)
    return gpu


@pytest.fixture
def seen(monkeypatch, fake_library):
    """Makes processes started here load the fake library."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_library.parent))
