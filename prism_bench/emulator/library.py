"""A built library, loaded into this process: its tables, and the one call that launches."""

import _ctypes
import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prism_bench.emulator.report import ArgumentTraffic, Traffic
from prism_bench.emulator.request import ORDERS, LaunchRequest
from prism_bench.errors import SpecError

_u32x3 = ctypes.c_uint32 * 3


class Parameter(ctypes.Structure):
    """One parameter of a kernel; for a pointer, kind and bytes are those of its target."""

    _fields_ = [
        ("kind", ctypes.c_char),
        ("is_pointer", ctypes.c_bool),
        ("is_const", ctypes.c_bool),
        ("padding", ctypes.c_char),
        ("bytes", ctypes.c_uint),
    ]


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("parameters", ctypes.POINTER(Parameter)),
        ("count", ctypes.c_uint),
        ("call", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
    ]


class _Symbol(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Region(ctypes.Structure):
    """A device buffer and the argument that it was passed for."""

    _fields_ = [
        ("begin", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("argument", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_int32),
        ("grid", _u32x3),
        ("block", _u32x3),
        ("cooperative", ctypes.c_int32),
        ("order", ctypes.c_int32),
        ("buffer_count", ctypes.c_int32),
        ("shared_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("patience_seconds", ctypes.c_double),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("buffers", ctypes.POINTER(Region)),
    ]


class RawAccess(ctypes.Structure):
    """One side of a finding; where `file` is empty, its place is an offset into the library."""

    _fields_ = [
        ("block", _u32x3),
        ("thread", _u32x3),
        ("line", ctypes.c_int32),
        ("is_write", ctypes.c_int32),
        ("code", ctypes.c_uint64),
        ("file", ctypes.c_char * 256),
    ]


NO_OFFSET = -(1 << 63)


class RawFinding(ctypes.Structure):
    """A finding in the runtime's own layout."""

    _fields_ = [
        ("kind", ctypes.c_char * 32),
        ("message", ctypes.c_char * 1024),
        ("offset", ctypes.c_int64),
        ("argument", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("accesses", RawAccess * 2),
    ]


_TOTALS = ("global_requests", "global_sectors", "shared_requests", "shared_wavefronts", "atomics")


class _Totals(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _TOTALS]


class _ArgumentTraffic(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_int), ("reserved", ctypes.c_int)] + [
        (name, ctypes.c_uint64) for name in ("bytes_read", "bytes_written", "unique_read", "unique_written")
    ]


class _Unloading:
    """Unloads libraries between launches: the one that launched last handles the watchdog's signals of all."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a library may be collected wherever this thread is
        self._running, self._waiting = 0, deque[int]()

    def unload(self, handle: int) -> None:
        """Unload a library, once nothing is running."""
        with self._lock:
            self._waiting.append(handle)
            self._unload_waiting()

    @contextmanager
    def launch(self) -> Iterator[None]:
        """Keep all libraries loaded inside a `with` block."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._unload_waiting()

    def _unload_waiting(self) -> None:
        while self._waiting and not self._running:
            _ctypes.dlclose(self._waiting.popleft())


_UNLOADING = _Unloading()
EMULATED = "emulated from "  # begins the line on standard error that names the library of a crash


class BuiltSource:
    """The kernels and global variables of one built source."""

    _reporting: Path | None = None  # whose crashes this process reports

    def __init__(self, path: Path) -> None:
        self.path = path
        self._so = ctypes.CDLL(str(path))
        # A catalogue's worth of libraries would use up the process's mappings.
        weakref.finalize(self, _UNLOADING.unload, self._so._handle).atexit = False
        for name, kind in (("finding", RawFinding), ("entry", _Entry), ("symbol", _Symbol)):
            getattr(self._so, f"cuda_cpu_{name}").restype = ctypes.POINTER(kind)
        for name in ("entry_count", "symbol_count", "static_shared"):
            getattr(self._so, f"cuda_cpu_{name}").restype = ctypes.c_size_t
        self.signatures: dict[str, tuple[Parameter, ...]] = {}
        self._numbers: dict[str, int] = {}
        for number in range(self._so.cuda_cpu_entry_count()):
            entry = self._so.cuda_cpu_entry(ctypes.c_size_t(number)).contents
            self._numbers[entry.name.decode()] = number
            self.signatures[entry.name.decode()] = tuple(entry.parameters[: entry.count])
        found = (self._so.cuda_cpu_symbol(ctypes.c_size_t(i)).contents for i in range(self._so.cuda_cpu_symbol_count()))
        self.symbols = {symbol.name.decode(): (symbol.address, symbol.bytes) for symbol in found}

    def report_crashes(self) -> None:
        """Report crashes inside its kernels on standard error, from now on, before they end this process.

        The report has only an offset into the library, so the library's path is written first.
        """
        if not hasattr(self._so, "cuda_cpu_tell_crashes"):
            return
        if BuiltSource._reporting != self.path:
            BuiltSource._reporting = self.path
            os.write(2, f"\n{EMULATED}{self.path}\n".encode())
        self._so.cuda_cpu_tell_crashes()

    def set_symbol(self, name: str, content: bytes) -> None:
        """Set a global variable; SpecError where there is none of that name and size."""
        address, size = self._symbol(name)
        if len(content) != size:
            raise SpecError(f"{name}: {len(content)} bytes passed, the variable has {size}")
        ctypes.memmove(address, content, size)

    def get_symbol(self, name: str) -> bytes:
        """Return the present content of a global variable."""
        return ctypes.string_at(*self._symbol(name))

    def _symbol(self, name: str) -> tuple[int, int]:
        """Return address and size of a global variable; SpecError where there is none of that name."""
        if name not in self.symbols:
            raise SpecError(f"no variable '{name}' in this module; it has {', '.join(self.symbols) or 'none'}")
        return self.symbols[name]

    @property
    def static_shared_bytes(self) -> int:
        """Static shared memory of all kernels of the source together."""
        return self._so.cuda_cpu_static_shared()

    def launch(self, request: LaunchRequest, addresses: list[int], regions: list[Region]) -> list[RawFinding]:
        """Run one launch; `addresses` are those of the arguments' values."""
        arguments = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        buffers = (Region * max(len(regions), 1))(*regions)
        asked = _Request(
            entry=self._numbers[request.entry], grid=_u32x3(*request.grid), block=_u32x3(*request.block),
            cooperative=request.cooperative, order=ORDERS.index(request.order), buffer_count=len(regions),
            shared_bytes=request.shared_bytes, seed=request.seed, patience_seconds=request.patience,
            arguments=arguments, buffers=buffers,
        )  # fmt: skip
        with _UNLOADING.launch():
            count = self._so.cuda_cpu_launch(ctypes.byref(asked))
        return [RawFinding.from_buffer_copy(self._so.cuda_cpu_finding(number).contents) for number in range(count)]

    def traffic(self) -> Traffic | None:
        """Return what the last launch moved; None in the modes that do not count."""
        if not hasattr(self._so, "cuda_cpu_totals"):
            return None
        self._so.cuda_cpu_totals.restype = ctypes.POINTER(_Totals)
        totals = self._so.cuda_cpu_totals().contents
        arguments = sorted(self._arguments_traffic(), key=lambda one: one.argument)
        return Traffic(tuple(arguments), **{name: getattr(totals, name) for name in _TOTALS})

    def _arguments_traffic(self) -> Iterator[ArgumentTraffic]:
        one = _ArgumentTraffic()
        which = 0
        while self._so.cuda_cpu_traffic(ctypes.c_size_t(which), ctypes.byref(one)):
            which += 1
            if one.argument >= 0:
                yield ArgumentTraffic(
                    one.argument, one.bytes_read, one.bytes_written, one.unique_read, one.unique_written
                )
