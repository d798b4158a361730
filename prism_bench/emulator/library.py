"""A built library loaded into this process: arguments, buffers, and one launch."""

import _ctypes
import ctypes
import os
import shutil
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import starmap
from numbers import Integral
from pathlib import Path
from typing import TypedDict

import numpy as np

from prism_bench.emulator.build import INCLUDE, RUNTIME
from prism_bench.emulator.report import Access, ArgumentTraffic, LaunchFinding, LaunchReport, Traffic
from prism_bench.errors import BackendUnavailable, SpecError

# The configuration of one launch, as plain values that can be sent to a child process.

ORDERS = ("forward", "reverse", "shuffled")
# A launch that makes no progress for this long (CPU time) ends with a finding.
_PATIENCE_SECONDS = 10.0
_MOST_THREADS = 1024
_MOST_SHARED_BYTES = 227 * 1024


Extent = int | tuple[int, ...] | list[int]


class LaunchOptions(TypedDict, total=False):
    """The optional fields of a LaunchRequest."""

    shared_bytes: int
    cooperative: bool
    order: str
    seed: int
    patience: float


@dataclass(frozen=True)
class LaunchRequest:
    """A kernel's launch configuration, checked against the device's limits."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cooperative: bool = False
    order: str = "forward"
    seed: int = 0
    patience: float = _PATIENCE_SECONDS

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise SpecError(f"{self.entry}: order '{self.order}' is none of {', '.join(ORDERS)}")
        if min(self.grid) < 1 or min(self.block) < 1:
            raise SpecError(
                f"{self.entry}: grid {self.grid} and block {self.block} must be at least 1 in each dimension"
            )
        threads = self.block[0] * self.block[1] * self.block[2]
        if threads > _MOST_THREADS:
            raise SpecError(
                f"{self.entry}: block {self.block} has {threads} threads; a block has at most {_MOST_THREADS}"
            )
        if not 0 <= self.shared_bytes <= _MOST_SHARED_BYTES:
            raise SpecError(
                f"{self.entry}: {self.shared_bytes} bytes of dynamic shared memory; "
                f"a block has at most {_MOST_SHARED_BYTES}"
            )


def three(extent: Extent) -> tuple[int, int, int]:
    """Return a grid or block as three numbers: `256` and `(16, 16)` are filled up with ones."""
    sizes = tuple(extent) if isinstance(extent, tuple | list) else (extent,)
    if not all(isinstance(size, Integral) for size in sizes):
        raise SpecError(f"grid and block are whole numbers, or up to three of them; not {extent!r}")
    x, y, z = (int(size) for size in (*sizes, 1, 1)[:3])
    return x, y, z


# A built library, loaded into this process: its tables, and the one call that launches.

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


_NO_OFFSET = -(1 << 63)


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
            entry=self._numbers[request.entry],
            grid=_u32x3(*request.grid),
            block=_u32x3(*request.block),
            cooperative=request.cooperative,
            order=ORDERS.index(request.order),
            buffer_count=len(regions),
            shared_bytes=request.shared_bytes,
            seed=request.seed,
            patience_seconds=request.patience,
            arguments=arguments,
            buffers=buffers,
        )
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


# Device buffers: exactly sized, 256-byte aligned copies of arrays, with margins that show an overrun.

_ALIGNMENT = 256
# An overrun by less than this lands in the margin: found afterwards, and harmless to others.
_MARGIN_BYTES = 4096
_MARGIN_FILL = 0xA5


class DeviceBuffer:
    """A copy of `array` on the emulated device, which exists as long as this object, for any number of launches."""

    def __init__(self, array: np.ndarray) -> None:
        source = np.ascontiguousarray(array)
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, source.nbytes
        self._memory = np.full(self.bytes + 2 * _MARGIN_BYTES + _ALIGNMENT, _MARGIN_FILL, np.uint8)
        start = self._memory.ctypes.data + _MARGIN_BYTES
        self._first = _MARGIN_BYTES + -start % _ALIGNMENT
        self._content[:] = source.reshape(-1).view(np.uint8)

    @property
    def _content(self) -> np.ndarray:
        return self._memory[self._first : self._first + self.bytes]

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return self._memory.ctypes.data + self._first

    @property
    def array(self) -> np.ndarray:
        """The device's own memory as an array of the original shape and type; writes go through."""
        return self._content.view(self.dtype).reshape(self.shape)

    def to_host(self) -> np.ndarray:
        """Return a copy of the present content."""
        return self.array.copy()

    def overrun(self) -> int:
        """Return how far outside the buffer something was written: 0 not at all, n the nth byte past it, -n before it.

        The margins are clean again afterwards, so that each overrun is reported once.
        """
        before = self._memory[self._first - _MARGIN_BYTES : self._first]
        after = self._memory[self._first + self.bytes : self._first + self.bytes + _MARGIN_BYTES]
        past, early = np.flatnonzero(after != _MARGIN_FILL), np.flatnonzero(before != _MARGIN_FILL)
        before[:], after[:] = _MARGIN_FILL, _MARGIN_FILL
        if past.size:
            return int(past[0]) + 1
        return int(early[-1]) - _MARGIN_BYTES if early.size else 0


class HostBuffer(DeviceBuffer):
    """Host memory that the device sees as it is, without a copy and without margins around it."""

    def __init__(self, array: np.ndarray) -> None:
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, array.nbytes
        self._memory = array.reshape(-1).view(np.uint8)

    @property
    def _content(self) -> np.ndarray:
        return self._memory

    @property
    def address(self) -> int:
        return self._memory.ctypes.data

    def overrun(self) -> int:
        """Return 0: the memory around it has other uses."""
        return 0


class GuardedBuffer(DeviceBuffer):
    """A buffer from the C library's allocator, which the address sanitizer replaces by one with red zones."""

    def __init__(self, array: np.ndarray) -> None:
        source = np.ascontiguousarray(array)
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, source.nbytes
        self._library, place = ctypes.CDLL(None), ctypes.c_void_p()
        if self._library.posix_memalign(ctypes.byref(place), ctypes.c_size_t(_ALIGNMENT), ctypes.c_size_t(self.bytes)):
            raise BackendUnavailable(f"no memory for a buffer of {self.bytes} bytes on the emulator")
        self._place = place
        self._content[:] = source.reshape(-1).view(np.uint8)

    def __del__(self) -> None:
        self._library.free(self._place)

    @property
    def _content(self) -> np.ndarray:
        return np.frombuffer(memoryview((ctypes.c_uint8 * self.bytes).from_address(self.address)), np.uint8)

    @property
    def address(self) -> int:
        return self._place.value or 0

    def overrun(self) -> int:
        """Return 0: the sanitizer reports an overrun itself, and ends the process."""
        return 0


# Arguments of a launch: checked against what the kernel takes, and given their places in memory.

Signature = tuple[Parameter, ...]
_WORDS = {
    "f": "float",
    "i": "int",
    "u": "unsigned int",
    "b": "bool",
    "h": "half",
    "g": "bfloat16",
    "s": "struct",
    "v": "void",
}
# NumPy has no bfloat16: its bits travel as uint16, or as a 2-byte type of another package.
_ACCEPTED = {"f": "fc", "i": "iub", "u": "iub", "b": "iub", "h": "fu", "g": "uV"}


@dataclass(frozen=True)
class NotAnArgument:
    """Placeholder, in a child process, for an argument that no kernel takes."""

    description: str


def check(entry: str, signature: Signature, arguments: Sequence[object]) -> None:
    """Raise SpecError where the arguments do not fit the kernel, naming the argument and what it should be."""
    if len(arguments) != len(signature):
        raise SpecError(f"{entry}: {len(arguments)} argument(s) passed, kernel takes {len(signature)}")
    for index, (parameter, argument) in enumerate(zip(signature, arguments, strict=True)):
        _check(entry, index, parameter, argument)


class Arguments:
    """The arguments of one launch: `addresses` for the launch table, `regions` for the checks."""

    def __init__(
        self,
        entry: str,
        signature: Signature,
        arguments: Sequence[object],
        make_buffer: Callable[[np.ndarray], DeviceBuffer] = DeviceBuffer,
    ) -> None:
        check(entry, signature, arguments)
        self.addresses: list[int] = []
        self.regions: list[Region] = []
        self._kept: list[np.ndarray] = []
        self._make_buffer = make_buffer
        self._buffers: dict[int, DeviceBuffer] = {}
        self._results: list[tuple[DeviceBuffer, np.ndarray]] = []
        for index, (parameter, argument) in enumerate(zip(signature, arguments, strict=True)):
            if isinstance(argument, np.ndarray | DeviceBuffer):
                self._place_buffer(index, parameter, argument)
            else:
                self._keep(np.array(argument))

    def _place_buffer(self, index: int, parameter: Parameter, argument: np.ndarray | DeviceBuffer) -> None:
        # One array passed twice is one buffer, as it is on the device.
        buffer = self._buffers.get(id(argument))
        if buffer is None:
            buffer = argument if isinstance(argument, DeviceBuffer) else self._make_buffer(argument)
            self._buffers[id(argument)] = buffer
            self.regions.append(Region(buffer.address, buffer.bytes, index, 0))
        if not isinstance(argument, DeviceBuffer) and not parameter.is_const:
            self._results.append((buffer, argument))
        self._keep(np.array(buffer.address, np.uint64))

    def _keep(self, value: np.ndarray) -> None:
        self._kept.append(value)
        self.addresses.append(value.ctypes.data)

    def copy_back(self) -> None:
        """Copy what the kernel wrote into the caller's arrays; arrays passed as const stay untouched."""
        for buffer, array in self._results:
            array[...] = buffer.array

    def overruns(self) -> Iterator[tuple[int, int]]:
        """Yield the arguments outside whose buffers something was written, and how far outside."""
        buffers = {buffer.address: buffer for buffer in self._buffers.values()}
        for region in self.regions:
            distance = buffers[region.begin].overrun()
            if distance:
                yield region.argument, distance


def _check(entry: str, index: int, parameter: Parameter, argument: object) -> None:
    fits = _fits_pointer if parameter.is_pointer else _fits_scalar
    if not fits(parameter, argument):
        raise SpecError(f"{entry}: argument {index}: {describe(argument)} passed, kernel takes {_taken(parameter)}")


def _fits_pointer(parameter: Parameter, argument: object) -> bool:
    if not isinstance(argument, np.ndarray | DeviceBuffer):
        return False
    return _fits_type(parameter, argument.dtype)


def _fits_scalar(parameter: Parameter, argument: object) -> bool:
    if not isinstance(argument, np.generic):
        return False
    if parameter.kind == b"s":
        return argument.nbytes == parameter.bytes
    return argument.dtype.kind != "c" and _fits_type(parameter, argument.dtype)


def _fits_type(parameter: Parameter, dtype: np.dtype) -> bool:
    kind = parameter.kind.decode()
    if kind in "vs":
        return True
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return dtype.kind in _ACCEPTED[kind] and size == parameter.bytes


def describe(argument: object) -> str:
    """Return what was passed, in the words of an error message."""
    if isinstance(argument, NotAnArgument):
        return argument.description
    if isinstance(argument, np.ndarray | DeviceBuffer):
        return f"array of {argument.dtype}"
    if isinstance(argument, np.generic):
        return str(argument.dtype)
    return f"Python {type(argument).__name__} (say its type: np.int32(...), np.float32(...))"


def _taken(parameter: Parameter) -> str:
    kind = parameter.kind.decode()
    word = f"{parameter.bytes}-byte {_WORDS[kind]}" if kind != "v" else "void"
    if not parameter.is_pointer:
        return word
    return f"pointer to {'const ' if parameter.is_const else ''}{word}"


# Lines of a kernel's source for offsets into its built library.


def locate(library: Path, offsets: set[int]) -> dict[int, tuple[str, int]]:
    """Return file and line of each code offset, without the emulator's inlined frames; unknown ones are left out."""
    ordered = sorted(offsets)
    tool = shutil.which("addr2line") if ordered else None
    if tool is None:
        return {}
    command = [tool, "-a", "-i", "-e", str(library), *map(hex, ordered)]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return dict(_places(lines))


def _places(lines: list[str]) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield each offset with its place; each address line is followed by its frames, innermost first."""
    address, found = 0, False
    for line in lines:
        if line.startswith("0x"):
            address, found = int(line, 16), False
            continue
        file, _, number = line.rpartition(":")
        number = number.split(" ")[0]
        if found or not number.isdigit() or number == "0" or is_own(file):
            continue
        found = True
        yield address, (file, int(number))


def is_own(file: str) -> bool:
    """Return whether a file is the emulator's, and not the kernel author's."""
    return file.startswith((str(INCLUDE), str(RUNTIME))) or file == "launch table"


# One launch in this process: pack the arguments, run, read the findings.

_reports_crashes = False


def report_crashes() -> None:
    """Write to standard error, from now on, where a kernel crashed, before the crash ends this process."""
    global _reports_crashes
    _reports_crashes = True


def execute(
    library: BuiltSource,
    request: LaunchRequest,
    arguments: Sequence[object],
    make_buffer: Callable[[np.ndarray], DeviceBuffer] = DeviceBuffer,
) -> LaunchReport:
    """Run the launch on NumPy arrays, DeviceBuffers and NumPy scalars; what the kernel wrote is copied back."""
    if request.entry not in library.signatures:
        raise SpecError(f"no kernel '{request.entry}' in this module; it has {', '.join(library.signatures)}")
    packed = Arguments(request.entry, library.signatures[request.entry], arguments, make_buffer)
    if _reports_crashes:
        library.report_crashes()
    raw = library.launch(request, packed.addresses, packed.regions)
    packed.copy_back()
    findings = (*_findings(library, raw), *starmap(_overrun, packed.overruns()))
    return LaunchReport(request.entry, findings, library.traffic())


def _overrun(argument: int, distance: int) -> LaunchFinding:
    where = f"{distance} byte(s) past the end" if distance > 0 else f"{-distance} byte(s) before the beginning"
    return LaunchFinding("out of bounds", f"write {where} of argument {argument}", argument=argument)


def _findings(library: BuiltSource, raw: list[RawFinding]) -> Iterator[LaunchFinding]:
    offsets = {access.code for finding in raw for access in finding.accesses[: finding.count] if access.code}
    # A return address points behind the call; one byte before it is inside.
    places = locate(library.path, {offset - 1 for offset in offsets})
    for finding in raw:
        accesses = tuple(_access(access, places) for access in finding.accesses[: finding.count])
        argument = finding.argument if finding.argument >= 0 else None
        offset = None if finding.offset == _NO_OFFSET else finding.offset
        yield LaunchFinding(finding.kind.decode(), finding.message.decode(), accesses, argument, offset)


def _access(raw: RawAccess, places: Mapping[int, tuple[str, int]]) -> Access:
    file, line = (raw.file.decode(), raw.line) if raw.file else places.get(raw.code - 1, ("", 0))
    return Access(file, line, tuple(raw.block), tuple(raw.thread), bool(raw.is_write))
