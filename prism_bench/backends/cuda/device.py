"""The device: is it there, what is it, what does it run, and the driver calls that CuPy does not offer."""

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import NO_DEVICE, NO_DRIVER, WITHOUT_GPU, why_no_gpu
from prism_bench.measure.call_checks import distrust, keep
from prism_bench.record.measurement import Measurement, Sample
from prism_bench.spec.case import Device

# The functions that the CUDA clock calls, bound when CuPy is opened, which is before a spec is imported.

_CUDA = ("Event", "Stream", "get_elapsed_time", "get_current_stream", "alloc_pinned_memory")
_RUNTIME = ("deviceSynchronize", "streamSynchronize", "eventRecord", "eventSynchronize", "eventElapsedTime")


@dataclass(frozen=True)
class ClockFunctions:
    """CuPy's functions as they were when the device was opened."""

    event: Callable[..., Any]
    elapsed: Callable[[Any, Any], float]
    synchronize: Callable[[], None]
    current_stream: Callable[[], Any]


_BOUND: dict[int, tuple[Any, ClockFunctions]] = {}  # by the id of the CuPy that is kept next to them


def bound(cupy: Any) -> ClockFunctions:
    """Return the functions of this CuPy as they were at the first call."""
    if id(cupy) not in _BOUND:
        _BOUND[id(cupy)] = cupy, _bind(cupy)
    return _BOUND[id(cupy)][1]


def _bind(cupy: Any) -> ClockFunctions:
    cuda = cupy.cuda
    runtime = getattr(cuda, "runtime", None)
    if isinstance(cupy, ModuleType):
        _keep_all(cupy)
    return ClockFunctions(
        cast(Any, getattr(cuda, "Event", None)),
        cast(Any, getattr(cuda, "get_elapsed_time", None)),
        cast(Any, getattr(runtime, "deviceSynchronize", None)),
        cast(Any, getattr(cuda, "get_current_stream", None)),
    )


def _keep_all(cupy: Any) -> None:
    cuda = cupy.cuda
    keep("cupy", cupy, ("RawModule",))
    keep("cupy.cuda", cuda, _CUDA)
    keep("cupy.cuda.runtime", cuda.runtime, _RUNTIME)
    for name in ("Event", "Stream"):
        for owner in getattr(getattr(cuda, name), "__mro__", (object,))[:-1]:
            keep(f"cupy.cuda.{name}", owner)
    for name in _CUDA:
        if _is_strange(getattr(cuda, name)):
            distrust(f"cupy.cuda.{name}")


def _is_strange(value: Any) -> bool:
    """Whether it is not CuPy's own: those are compiled, and a function of Python is not."""
    return isinstance(value, FunctionType) or not (getattr(value, "__module__", None) or "cupy").startswith("cupy")


def _keep_own() -> None:
    keep("time", time, ("perf_counter",))
    keep("statistics", statistics, ("median",))
    keep("numpy", np, ("median", "frombuffer"))
    for owner in (Measurement, Sample):
        keep(f"prism_bench.record.measurement.{owner.__name__}", owner)
    if not isinstance(time.perf_counter, BuiltinFunctionType):
        distrust("time.perf_counter")


_keep_own()


# Calls into the CUDA driver that CuPy does not offer: whole UUIDs, caches that keep lines, graphs under capture.

PERSISTING_LIMIT = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
ACCESS_POLICY = 1  # CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
_ATTRIBUTE_BYTES = 64  # of CUstreamAttrValue
_CAPTURING = 1
_NON_BLOCKING = 1
_UUID_BYTES = 16


@cache
def library() -> Any:
    """Return the driver's library; None without a driver."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _asked(driver: Any, function: str, *arguments: Any) -> bool:
    """Whether the driver has the function and it succeeded."""
    call = getattr(driver, function, None)
    return call is not None and call(*arguments) == 0


def device_uuids(number: int, driver: Any = None) -> Iterator[bytes]:
    """Yield the UUID of the device with this number in the process: of the slice where it is one, then of the GPU."""
    driver, device = driver or library(), ctypes.c_int()
    if not _asked(driver, "cuDeviceGet", ctypes.byref(device), ctypes.c_int(number)):
        return
    for function in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"):
        uuid = ctypes.create_string_buffer(_UUID_BYTES)
        if _asked(driver, function, uuid, device):
            yield uuid.raw


def captured_nodes(stream: int, driver: Any = None) -> int | None:
    """Return how many nodes the graph has that `stream` is captured into; None where that is not known."""
    driver = driver or library()
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    before, count, nodes = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    results = [ctypes.byref(value) for value in (status, number, graph, before, count)]
    if not _asked(driver, "cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), *results) or status.value != _CAPTURING:
        return None
    return nodes.value if _asked(driver, "cuGraphGetNodes", graph, None, ctypes.byref(nodes)) else None


def is_blocking(stream: int, driver: Any = None) -> bool:
    """Whether a stream is implicitly ordered with the legacy default stream."""
    flags = ctypes.c_uint()
    known = _asked(driver or library(), "cuStreamGetFlags", ctypes.c_void_p(stream), ctypes.byref(flags))
    return known and not flags.value & _NON_BLOCKING


class PersistingCache:
    """Switch off persisting L2 lines inside a `with` block.

    The limit and the stream's window are restored at its end; lines that were pinned before are not.
    """

    def __init__(self, stream: int, driver: Any = None) -> None:
        self._stream, self._driver = ctypes.c_void_p(stream), driver or library()
        self._limit: int | None = None
        self._window: bytes | None = None

    def __enter__(self) -> "PersistingCache":
        self._limit, self._window = self._read_limit(), self._read_window()
        self.forget()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._limit:
            self._write_limit(self._limit)
        if self._window and any(self._window):
            self._write_window(self._window)

    @property
    def is_used(self) -> bool:
        """Whether a part of L2 is set aside again, or the stream has a window."""
        return bool(self._read_limit() or any(self._read_window() or b""))

    def forget(self) -> None:
        """Give back what was set aside since."""
        if self.is_used:
            self._write_limit(0)
            self._write_window(bytes(_ATTRIBUTE_BYTES))
        self.reset()

    def reset(self) -> bool:
        """Make every line an ordinary one; False where the driver does not offer it."""
        return _asked(self._driver, "cuCtxResetPersistingL2Cache")

    def _read_limit(self) -> int | None:
        size = ctypes.c_size_t()
        return size.value if _asked(self._driver, "cuCtxGetLimit", ctypes.byref(size), PERSISTING_LIMIT) else None

    def _write_limit(self, size: int) -> None:
        _asked(self._driver, "cuCtxSetLimit", PERSISTING_LIMIT, ctypes.c_size_t(size))

    def _read_window(self) -> bytes | None:
        value = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
        known = _asked(self._driver, "cuStreamGetAttribute", self._stream, ACCESS_POLICY, value)
        return value.raw if known else None

    def _write_window(self, window: bytes) -> None:
        value = ctypes.create_string_buffer(window, _ATTRIBUTE_BYTES)
        _asked(self._driver, "cuStreamSetAttribute", self._stream, ACCESS_POLICY, value)


# The device: is one there, what is it, what does it run.

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
    except ImportError:
        raise BackendUnavailable(why_no_gpu("CuPy", "cuda13")) from None
    driver = _driver_version(cupy)
    if driver == 0:
        raise BackendUnavailable(f"{NO_DRIVER}; {WITHOUT_GPU}")
    if driver < _OLDEST_DRIVER:
        raise BackendUnavailable(
            f"the driver supports CUDA {_dotted(driver)}, 12.0 is the oldest usable; {WITHOUT_GPU}"
        )
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise BackendUnavailable(f"{NO_DEVICE}; {WITHOUT_GPU}")
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendUnavailable(f"the GPU does not answer ({error}); {WITHOUT_GPU}") from None
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
    if len(raw) < _UUID_BYTES:
        raw = next((uuid for uuid in device_uuids(number) if uuid.startswith(raw)), b"")
    return raw[:_UUID_BYTES].hex() if any(raw) else ""


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


# What a device can do at most, whatever runs on it: bounds that a claimed rate must not exceed.

_L2_BYTES_PER_CLOCK = 128  # that a multiprocessor receives; twice what those of today do
# Operations of a multiprocessor per clock: tensor cores at the narrowest floating-point type, with sparsity.
_OPERATIONS = {
    70: 2048, 75: 2048, 80: 8192, 86: 4096, 87: 8192, 89: 8192, 90: 16384, 100: 65536, 103: 98304, 120: 16384,
}  # fmt: skip
_LATER = 131072
# Fused multiply-adds of a multiprocessor per clock, in float32.
FP32_LANES = {70: 64, 72: 64, 75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128, 100: 128, 103: 128, 120: 128}


@dataclass(frozen=True)
class DeviceBounds:
    """A device's multiprocessors, clock in hertz, cache in bytes, and its memory `bus` in bytes per second if known."""

    sm_count: int
    compute_capability: int
    clock: float
    l2_bytes: int
    bus: float | None

    def operations(self, clock: float | None = None) -> float:
        """Return the operations per second that no program exceeds, at the higher of its clock and `clock`."""
        each = _OPERATIONS.get(self.compute_capability, _LATER)
        return each * self.sm_count * max(self.clock, clock or 0.0)

    def cache_bandwidth(self, clock: float | None = None) -> float:
        """Return the bytes per second that all multiprocessors can receive from L2."""
        return _L2_BYTES_PER_CLOCK * self.sm_count * max(self.clock, clock or 0.0)
