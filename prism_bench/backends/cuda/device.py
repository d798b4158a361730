"""The device: is one there, what is it, what does it run."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from prism_bench.backends.cuda.clock import bound
from prism_bench.backends.cuda.driver import UUID_BYTES, device_uuids
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install
from prism_bench.spec.case import Device

WITHOUT = "references, the emulator, stored records and reports work without it"
_OLDEST_DRIVER = 12000


@dataclass(frozen=True)
class CudaDevice(Device):
    """The device's limits, as launches and the harness ask for them."""

    l2_bytes: int = 0
    memory_bytes: int = 0
    name: str = ""
    uuid: str = ""


def open_cupy() -> ModuleType:
    """Return CuPy with a device that answers; BackendUnavailable names what is missing otherwise."""
    try:
        import cupy
    except ImportError as error:
        raise BackendUnavailable(f"CuPy is not installed ({error}); {pip_install('cuda13')}; {WITHOUT}") from None
    driver = _driver_version(cupy)
    if driver == 0:
        raise BackendUnavailable(f"no NVIDIA driver answers; {WITHOUT}")
    if driver < _OLDEST_DRIVER:
        raise BackendUnavailable(f"the driver supports CUDA {_dotted(driver)}, 12.0 is the oldest usable; {WITHOUT}")
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise BackendUnavailable(f"the driver finds no GPU; {WITHOUT}")
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendUnavailable(f"the GPU does not answer ({error}); {WITHOUT}") from None
    bound(cupy)  # before a spec is imported, which could replace what the clock calls
    return cupy


def _driver_version(cupy: ModuleType) -> int:
    try:
        return cupy.cuda.runtime.driverGetVersion()
    except Exception:  # a broken runtime library raises several kinds of errors; all mean the same here
        return 0


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def describe(cupy: ModuleType) -> CudaDevice:
    """Describe the current device."""
    number = cupy.cuda.Device().id
    properties = cupy.cuda.runtime.getDeviceProperties(number)
    return CudaDevice(
        sm_count=properties["multiProcessorCount"],
        max_shared_bytes=properties["sharedMemPerBlockOptin"],
        compute_capability=properties["major"] * 10 + properties["minor"],
        l2_bytes=properties["l2CacheSize"],
        memory_bytes=properties["totalGlobalMem"],
        name=properties["name"].decode(),
        uuid=_uuid(properties, number),
    )


def _uuid(properties: Mapping[str, Any], number: int) -> str:
    """Return the UUID in hexadecimal digits, whole or not at all: CuPy's ends before its first byte that is 0."""
    raw = properties.get("uuid", b"")
    raw = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
    if len(raw) < UUID_BYTES:
        raw = next((one for one in device_uuids(number) if one.startswith(raw)), b"")
    return raw[:UUID_BYTES].hex() if any(raw) else ""


def software(cupy: ModuleType) -> dict:
    """Versions of driver, toolkit and libraries."""
    from prism_bench.compilation import nvrtc_version

    return {
        "driver": _driver_text(),
        "driver_cuda": _dotted(cupy.cuda.runtime.driverGetVersion()),
        "runtime": _dotted(cupy.cuda.runtime.runtimeGetVersion()),
        "nvrtc": nvrtc_version(),
        "cupy": cupy.__version__,
    }


def _driver_text() -> str | None:
    try:
        import pynvml

        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else version
    except Exception:  # NVML is a witness here, not a requirement
        return None
