"""Calls into the CUDA driver that CuPy does not offer: whole UUIDs, caches that keep lines, graphs under capture."""

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

PERSISTING_LIMIT = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
ACCESS_POLICY = 1  # CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
_ATTRIBUTE_BYTES = 64  # of CUstreamAttrValue
_CAPTURING = 1
_NON_BLOCKING = 1
UUID_BYTES = 16


@cache
def library() -> Any:
    """Return the driver's library; None where there is none."""
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
        found = ctypes.create_string_buffer(UUID_BYTES)
        if _asked(driver, function, found, device):
            yield found.raw


def captured_nodes(stream: int, driver: Any = None) -> int | None:
    """Return how many nodes the graph has that `stream` is captured into; None where that is not known."""
    driver = driver or library()
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    before, count, nodes = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    results = [ctypes.byref(one) for one in (status, number, graph, before, count)]
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
