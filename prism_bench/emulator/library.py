"""A built library loaded into this process: launch requests, arguments, buffers, and launches."""

import _ctypes
import ctypes
import os
import shutil
import struct
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from numbers import Integral
from pathlib import Path
from typing import TypedDict

import numpy as np

from prism_bench.compilation.cubin import function_variables
from prism_bench.emulator.build import INCLUDE, RUNTIME
from prism_bench.emulator.report import Access, ArgumentTraffic, LaunchFinding, LaunchReport, Traffic
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec.launch import (
    MAP_BYTES,
    MAP_TYPE,
    SHARED_KB,
    TensorMap,
    beyond_devices,
    beyond_residence,
    most_resident,
)

ORDERS = ("forward", "reverse", "shuffled")
_PATIENCE_SECONDS = 10.0  # CPU time without progress after which a launch ends with a finding
_MOST_SHARED_BYTES = SHARED_KB[90] * 1024  # of a block on sm_90, which the emulator is

Extent = int | tuple[int, ...] | list[int]


class LaunchOptions(TypedDict, total=False):
    """The optional fields of a LaunchRequest."""

    shared_bytes: int
    cooperative: bool
    order: str
    seed: int
    patience: float
    traffic: bool


@dataclass(frozen=True)
class LaunchRequest:
    """A kernel's launch configuration, checked against the device's limits; plain values for a child process."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cooperative: bool = False
    order: str = "forward"
    seed: int = 0
    patience: float = _PATIENCE_SECONDS
    traffic: bool = True  # count it where every access is watched

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise SpecError(f"{self.entry}: order '{self.order}' is none of {', '.join(ORDERS)}")
        problem = beyond_devices(self.grid, self.block)
        if problem:
            raise SpecError(f"{self.entry}: {problem}")
        self.require_shared(0)

    def require_shared(self, static: int) -> None:
        """Raise SpecError where dynamic and `static` bytes of shared memory are more than a block has."""
        if not 0 <= self.shared_bytes + static <= _MOST_SHARED_BYTES:
            parts = f"{self.shared_bytes:,} bytes of dynamic" + (f" and {static:,} of static" if static else "")
            raise SpecError(
                f"{self.entry}: {parts} shared memory; a block has at most {_MOST_SHARED_BYTES:,} (227 KB, on sm_90)"
            )


def three(extent: Extent) -> tuple[int, int, int]:
    """Return a grid or block as three numbers; missing numbers of `256` and `(16, 16)` are 1."""
    sizes = tuple(extent) if isinstance(extent, tuple | list) else (extent,)
    if not all(isinstance(size, Integral) for size in sizes):
        raise SpecError(f"grid and block are whole numbers, or up to three of them; not {extent!r}")
    x, y, z = (int(size) for size in (*sizes, 1, 1)[:3])
    return x, y, z


# The library's tables and structures.

_u32x3 = ctypes.c_uint32 * 3


class Parameter(ctypes.Structure):
    """A parameter of a kernel; kind and bytes of a pointer are those of its target, which has no alignment here."""

    _fields_ = [
        ("kind", ctypes.c_char),
        ("is_pointer", ctypes.c_bool),
        ("is_const", ctypes.c_bool),
        ("alignment", ctypes.c_ubyte),
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


class _Region(ctypes.Structure):
    """A device buffer and the index of its argument."""

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
        ("counts_traffic", ctypes.c_int32),
        ("shared_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("patience_seconds", ctypes.c_double),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("buffers", ctypes.POINTER(_Region)),
    ]


class _RawAccess(ctypes.Structure):
    """One side of a finding; if `file` is empty, its place is an offset into the library."""

    _fields_ = [
        ("block", _u32x3),
        ("thread", _u32x3),
        ("line", ctypes.c_int32),
        ("is_write", ctypes.c_int32),
        ("code", ctypes.c_uint64),
        ("file", ctypes.c_char * 256),
    ]


_NO_OFFSET = -(1 << 63)


class _RawFinding(ctypes.Structure):
    """A finding in the runtime's layout."""

    _fields_ = [
        ("kind", ctypes.c_char * 32),
        ("message", ctypes.c_char * 1024),
        ("offset", ctypes.c_int64),
        ("argument", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("accesses", _RawAccess * 2),
    ]


_TOTALS = ("global_requests", "global_sectors", "shared_requests", "shared_wavefronts", "atomics")


class _Totals(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _TOTALS]


class _ArgumentTraffic(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_int), ("reserved", ctypes.c_int)] + [
        (name, ctypes.c_uint64) for name in ("bytes_read", "bytes_written", "unique_read", "unique_written")
    ]


class _Unloading:
    """Unloader of libraries between launches: the library that launched last handles the watchdog's signals of all."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may unload a library at any point of this thread
        self._running, self._waiting = 0, deque[int]()

    def unload(self, handle: int) -> None:
        """Unload a library as soon as nothing is running."""
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

    _reporting: Path | None = None  # the library whose crashes this process reports

    def __init__(self, path: Path) -> None:
        self.path = path
        self._so = ctypes.CDLL(str(path))
        # The libraries of a whole catalogue would use up the process's mappings.
        weakref.finalize(self, _UNLOADING.unload, self._so._handle).atexit = False
        for name, kind in (("finding", _RawFinding), ("entry", _Entry), ("symbol", _Symbol)):
            getattr(self._so, f"cuda_cpu_{name}").restype = ctypes.POINTER(kind)
        for name in ("entry_count", "symbol_count", "static_shared"):
            getattr(self._so, f"cuda_cpu_{name}").restype = ctypes.c_size_t
        self.signatures: dict[str, tuple[Parameter, ...]] = {}
        self._numbers: dict[str, int] = {}
        for number in range(self._so.cuda_cpu_entry_count()):
            entry = self._so.cuda_cpu_entry(ctypes.c_size_t(number)).contents
            self._numbers[entry.name.decode()] = number
            self.signatures[entry.name.decode()] = tuple(entry.parameters[: entry.count])
        count = self._so.cuda_cpu_symbol_count()
        symbols = (self._so.cuda_cpu_symbol(ctypes.c_size_t(number)).contents for number in range(count))
        self.symbols = {symbol.name.decode(): (symbol.address, symbol.bytes) for symbol in symbols}

    def report_crashes(self) -> None:
        """From now on report crashes in its kernels on standard error before they end this process.

        The report has only an offset into the library, so the library's path is written first.
        """
        if not hasattr(self._so, "cuda_cpu_tell_crashes"):
            return
        if BuiltSource._reporting != self.path:
            BuiltSource._reporting = self.path
            os.write(2, f"\n{EMULATED}{self.path}\n".encode())
        self._so.cuda_cpu_tell_crashes()

    def set_symbol(self, name: str, content: bytes) -> None:
        """Set a global variable; raise SpecError for an unknown name or another size."""
        address, size = self._symbol(name)
        if len(content) != size:
            raise SpecError(f"{name}: {len(content)} bytes passed, the variable has {size}")
        ctypes.memmove(address, content, size)

    def get_symbol(self, name: str) -> bytes:
        """Return the current content of a global variable; raise SpecError for an unknown name."""
        return ctypes.string_at(*self._symbol(name))

    def _symbol(self, name: str) -> tuple[int, int]:
        """Return address and bytes of a variable; the name may lack the namespace where that is not ambiguous."""
        inside = [known for known in self.symbols if known.endswith(f"::{name}")]
        name = inside[0] if len(inside) == 1 and name not in self.symbols else name
        if name not in self.symbols:
            raise SpecError(f"no variable '{name}' in this module; it has {', '.join(self.symbols) or 'none'}")
        return self.symbols[name]

    @property
    def static_shared_bytes(self) -> int:
        """Return the bytes of static shared memory of all kernels of the source together."""
        return self._so.cuda_cpu_static_shared()

    def require_fitting(self, request: LaunchRequest) -> None:
        """Raise SpecError where an H200 has too little shared memory for a launch, or for a cooperative grid at a time.

        Registers are no limit here: only machine code has them.
        """
        static, threads = self.static_shared_bytes, prod(request.block)
        if static and (request.cooperative or request.shared_bytes + static > _MOST_SHARED_BYTES):
            sizes = function_variables(self.path.read_bytes(), "cuda_cpu_shared")
            static = sizes.get(request.entry, 0)
        request.require_shared(static)
        most = most_resident(threads, request.shared_bytes + static) if request.cooperative else prod(request.grid)
        problem = beyond_residence(request.grid, most)
        if problem:
            raise SpecError(f"{request.entry}: {problem}")

    def launch(self, request: LaunchRequest, addresses: list[int], regions: list[_Region]) -> list[_RawFinding]:
        """Run one launch; `addresses` are the addresses of the arguments' values."""
        arguments = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        buffers = (_Region * max(len(regions), 1))(*regions)
        raw_request = _Request(
            entry=self._numbers[request.entry],
            grid=_u32x3(*request.grid),
            block=_u32x3(*request.block),
            cooperative=request.cooperative,
            order=ORDERS.index(request.order),
            buffer_count=len(regions),
            counts_traffic=request.traffic,
            shared_bytes=request.shared_bytes,
            seed=request.seed,
            patience_seconds=request.patience,
            arguments=arguments,
            buffers=buffers,
        )
        with _UNLOADING.launch():
            count = self._so.cuda_cpu_launch(ctypes.byref(raw_request))
        return [_RawFinding.from_buffer_copy(self._so.cuda_cpu_finding(number).contents) for number in range(count)]

    def traffic(self) -> Traffic | None:
        """Return the traffic of the last launch; None in the modes that do not count it."""
        if not hasattr(self._so, "cuda_cpu_totals"):
            return None
        self._so.cuda_cpu_totals.restype = ctypes.POINTER(_Totals)
        totals = self._so.cuda_cpu_totals().contents
        arguments: list[ArgumentTraffic] = []
        raw, number = _ArgumentTraffic(), 0
        while self._so.cuda_cpu_traffic(ctypes.c_size_t(number), ctypes.byref(raw)):
            number += 1
            if raw.argument >= 0:
                counts = raw.bytes_read, raw.bytes_written, raw.unique_read, raw.unique_written
                arguments.append(ArgumentTraffic(raw.argument, *counts))
        arguments.sort(key=lambda argument: argument.argument)
        return Traffic(tuple(arguments), **{name: getattr(totals, name) for name in _TOTALS})


# Device buffers.

_ALIGNMENT = 256
_MARGIN_BYTES = 4096  # an overrun by less lands in the margin: found afterwards, and harmless to other memory
_MARGIN_FILL = 0xA5


class DeviceBuffer:
    """An aligned copy of `array` on the emulated device, with margins that show an overrun, for many launches."""

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
        """Return the address of the first byte."""
        return self._memory.ctypes.data + self._first

    @property
    def array(self) -> np.ndarray:
        """Return the device's memory as an array of the original shape and type; writes change it."""
        return self._content.view(self.dtype).reshape(self.shape)

    def to_host(self) -> np.ndarray:
        """Return a copy of the current content."""
        return self.array.copy()

    def overrun(self) -> int:
        """Return the distance of a write outside the buffer: 0 without one, n for the nth byte past it, -n before it.

        The margins are reset, so that each overrun is reported once.
        """
        before = self._memory[self._first - _MARGIN_BYTES : self._first]
        after = self._memory[self._first + self.bytes : self._first + self.bytes + _MARGIN_BYTES]
        past, early = np.flatnonzero(after != _MARGIN_FILL), np.flatnonzero(before != _MARGIN_FILL)
        before[:], after[:] = _MARGIN_FILL, _MARGIN_FILL
        if past.size:
            return int(past[0]) + 1
        return int(early[-1]) - _MARGIN_BYTES if early.size else 0


class HostBuffer(DeviceBuffer):
    """Host memory that the device uses without a copy and without margins."""

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
        """Return 0: the memory around the buffer has other uses."""
        return 0


class GuardedBuffer(DeviceBuffer):
    """A buffer from the C library's allocator, which the address sanitizer replaces by one with red zones."""

    def __init__(self, array: np.ndarray) -> None:
        source = np.ascontiguousarray(array)
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, source.nbytes
        self._library, address = ctypes.CDLL(None), ctypes.c_void_p()
        sizes = ctypes.c_size_t(_ALIGNMENT), ctypes.c_size_t(self.bytes)
        if self._library.posix_memalign(ctypes.byref(address), *sizes):
            raise BackendUnavailable(f"no memory for a buffer of {self.bytes} bytes on the emulator")
        self._address = address
        self._content[:] = source.reshape(-1).view(np.uint8)

    def __del__(self) -> None:
        self._library.free(self._address)

    @property
    def _content(self) -> np.ndarray:
        return np.frombuffer(memoryview((ctypes.c_uint8 * self.bytes).from_address(self.address)), np.uint8)

    @property
    def address(self) -> int:
        return self._address.value or 0

    def overrun(self) -> int:
        """Return 0: the sanitizer reports an overrun, and ends the process."""
        return 0


# Arguments of a launch.

Signature = tuple[Parameter, ...]
_TYPE_NAMES = {
    "f": "float",
    "i": "int",
    "u": "unsigned int",
    "b": "bool",
    "h": "half",
    "g": "bfloat16",
    "q": "e4m3",
    "r": "e5m2",
    "s": "struct",
    "v": "void",
}
# NumPy has no bfloat16, e4m3 and e5m2: their bits are passed as unsigned integers, or as a type of another package.
_ACCEPTED = {"f": "fc", "i": "iub", "u": "iub", "b": "iub", "h": "fu", "g": "uV", "q": "uV", "r": "uV"}


@dataclass(frozen=True)
class NotAnArgument:
    """Placeholder in a child process for an argument that no kernel accepts."""

    description: str


def check(entry: str, signature: Signature, arguments: Sequence[object]) -> None:
    """Raise SpecError if the arguments do not fit the kernel, with the argument and the expected type."""
    if len(arguments) != len(signature):
        raise SpecError(f"{entry}: {len(arguments)} argument(s) passed, kernel takes {len(signature)}")
    for index, (parameter, argument) in enumerate(zip(signature, arguments, strict=True)):
        fits = _fits_pointer if parameter.is_pointer else _fits_scalar
        if not fits(parameter, argument):
            expected = _expected(parameter)
            raise SpecError(f"{entry}: argument {index}: {describe(argument)} passed, kernel takes {expected}")


# Tensor maps: what copies by the tensor memory accelerator have to know of a buffer, as `BoxMap` of runtime/state.h.

_BOX_MAP = struct.Struct("<Q Q 5Q 5Q 5I 4B")
_LARGEST_ALIGNMENT = 128  # of a parameter
_MAP_MARK = 0x70616D20786F6221


@dataclass(frozen=True, eq=False)
class MappedBuffer:
    """A buffer that a launch passes as a tensor map, by value."""

    buffer: "np.ndarray | DeviceBuffer"
    wanted: TensorMap

    def box_map(self, address: int) -> np.ndarray:
        """Return the map of the buffer at its address; raise a SpecError where a device has no such map."""
        size = self.buffer.dtype.itemsize
        extents, box = self.wanted.of(self.buffer.shape, size, address)
        rank, is_swizzled = len(extents), box[-1] * size == MAP_BYTES
        pitches = [prod(extents[rank - axis :]) * size for axis in range(rank)]
        numbers = [number for part in (extents[::-1], pitches, box[::-1]) for number in (*part, *[0] * 5)[:5]]
        packed = _BOX_MAP.pack(_MAP_MARK, address, *numbers, size, rank, is_swizzled, self.wanted.tf32)
        return np.frombuffer(packed.ljust(MAP_TYPE.itemsize, b"\0"), MAP_TYPE)


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
        self.regions: list[_Region] = []
        self._kept: list[np.ndarray] = []

        self._buffers: dict[int, DeviceBuffer] = {}
        self._results: list[tuple[DeviceBuffer, np.ndarray]] = []
        for index, (parameter, passed) in enumerate(zip(signature, arguments, strict=True)):
            argument = passed.buffer if isinstance(passed, MappedBuffer) else passed
            if not isinstance(argument, np.ndarray | DeviceBuffer):
                self._keep(np.array(argument))
                continue
            # One array passed twice is one buffer, as it is on the device.
            buffer = self._buffers.get(id(argument))
            if buffer is None:
                buffer = argument if isinstance(argument, DeviceBuffer) else make_buffer(argument)
                self._buffers[id(argument)] = buffer
                self.regions.append(_Region(buffer.address, buffer.bytes, index, 0))
            is_map = isinstance(passed, MappedBuffer)
            if not isinstance(argument, DeviceBuffer) and (is_map or not parameter.is_const):
                self._results.append((buffer, argument))
            self._keep(passed.box_map(buffer.address) if is_map else np.array(buffer.address, np.uint64))

    def _keep(self, value: np.ndarray) -> None:
        if value.nbytes > 16:  # a struct, which may be aligned to more than NumPy's memory is
            memory = np.zeros(value.nbytes + _LARGEST_ALIGNMENT, np.uint8)
            first = -memory.ctypes.data % _LARGEST_ALIGNMENT
            memory[first : first + value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
            value = memory[first:]
        self._kept.append(value)
        self.addresses.append(value.ctypes.data)

    def copy_back(self) -> None:
        """Copy the kernel's results into the caller's arrays; arrays passed as const stay unchanged."""
        for buffer, array in self._results:
            array[...] = buffer.array

    def overruns(self) -> Iterator[tuple[int, int]]:
        """Yield each argument with a write outside of its buffer, and the distance."""
        buffers = {buffer.address: buffer for buffer in self._buffers.values()}
        for region in self.regions:
            distance = buffers[region.begin].overrun()
            if distance:
                yield region.argument, distance


def _fits_pointer(parameter: Parameter, argument: object) -> bool:
    if not isinstance(argument, np.ndarray | DeviceBuffer):
        return False
    return _fits_type(parameter, argument.dtype)


def _fits_scalar(parameter: Parameter, argument: object) -> bool:
    if isinstance(argument, MappedBuffer):
        return parameter.kind == b"s" and parameter.bytes == MAP_TYPE.itemsize
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
    """Return a description of an argument for an error message."""
    if isinstance(argument, NotAnArgument):
        return argument.description
    if isinstance(argument, MappedBuffer):
        return f"tensor map of {argument.buffer.dtype}"
    if isinstance(argument, np.ndarray | DeviceBuffer):
        return f"array of {argument.dtype}"
    if isinstance(argument, np.void):
        fields = argument.dtype.fields or {}
        places = ", ".join(f"{name} at {field[1]}" for name, field in fields.items())
        return f"{argument.nbytes}-byte struct{f' ({places})' if places else ''}"
    if isinstance(argument, np.generic):
        return str(argument.dtype)
    return f"Python {type(argument).__name__} (say its type: np.int32(...), np.float32(...))"


def _expected(parameter: Parameter) -> str:
    kind = parameter.kind.decode()
    type_name = f"{parameter.bytes}-byte {_TYPE_NAMES[kind]}" if kind != "v" else "void"
    if not parameter.is_pointer:
        return f"{type_name} aligned to {parameter.alignment}" if kind == "s" else type_name
    return f"pointer to {'const ' if parameter.is_const else ''}{type_name}"


# Source lines of offsets into a library.


def locate(library: Path, offsets: set[int]) -> dict[int, tuple[str, int]]:
    """Return file and line of each known code offset, without the emulator's inlined frames."""
    ordered = sorted(offsets)
    tool = shutil.which("addr2line") if ordered else None
    if tool is None:
        return {}
    command = [tool, "-a", "-i", "-e", str(library), *map(hex, ordered)]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return dict(_places(lines))


def _places(lines: list[str]) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield each offset with its place; each address line is followed by its frames, innermost first."""
    address, is_located = 0, False
    for line in lines:
        if line.startswith("0x"):
            address, is_located = int(line, 16), False
            continue
        file, _, number = line.rpartition(":")
        number = number.split(" ")[0]
        if is_located or not number.isdigit() or number == "0" or is_of_emulator(file):
            continue
        is_located = True
        yield address, (file, int(number))


def is_of_emulator(file: str) -> bool:
    """Return whether a file is the emulator's, not the kernel author's."""
    return file.startswith((str(INCLUDE), str(RUNTIME))) or file == "launch table"


# Launches.

_reports_crashes = False


def report_crashes() -> None:
    """From now on write the place of a kernel's crash to standard error before the crash ends this process."""
    global _reports_crashes
    _reports_crashes = True


def execute(
    library: BuiltSource,
    request: LaunchRequest,
    arguments: Sequence[object],
    make_buffer: Callable[[np.ndarray], DeviceBuffer] = DeviceBuffer,
) -> LaunchReport:
    """Run the launch on NumPy arrays, DeviceBuffers and NumPy scalars, and copy the kernel's results back."""
    if request.entry not in library.signatures:
        raise SpecError(f"no kernel '{request.entry}' in this module; it has {', '.join(library.signatures)}")
    library.require_fitting(request)
    packed = Arguments(request.entry, library.signatures[request.entry], arguments, make_buffer)
    if _reports_crashes:
        library.report_crashes()
    raw = library.launch(request, packed.addresses, packed.regions)
    packed.copy_back()
    findings = list(_findings(library, raw))
    for argument, distance in packed.overruns():
        where = f"{distance} byte(s) past the end" if distance > 0 else f"{-distance} byte(s) before the beginning"
        message = f"write {where} of argument {argument}"
        findings.append(LaunchFinding("out of bounds", message, argument=argument))
    return LaunchReport(request.entry, tuple(findings), library.traffic() if request.traffic else None)


def _findings(library: BuiltSource, raw: list[_RawFinding]) -> Iterator[LaunchFinding]:
    offsets = {access.code for finding in raw for access in finding.accesses[: finding.count] if access.code}
    # A return address is after the call; the byte before it is inside.
    places = locate(library.path, {offset - 1 for offset in offsets})
    for finding in raw:
        accesses = []
        for access in finding.accesses[: finding.count]:
            file, line = (access.file.decode(), access.line) if access.file else places.get(access.code - 1, ("", 0))
            accesses.append(Access(file, line, tuple(access.block), tuple(access.thread), bool(access.is_write)))
        argument = finding.argument if finding.argument >= 0 else None
        offset = None if finding.offset == _NO_OFFSET else finding.offset
        yield LaunchFinding(finding.kind.decode(), finding.message.decode(), tuple(accesses), argument, offset)
