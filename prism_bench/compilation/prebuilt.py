"""Existing machine code: a cubin, a fat binary, an object file or a library with GPU code."""

import hashlib
import io
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism_bench.compilation.cubin import Resources, entry_symbols, info_records, symbol_of
from prism_bench.compilation.listing import measured_resources, tool
from prism_bench.errors import BackendUnavailable, CompilationFailed
from prism_bench.io.files import cache_errors, cache_folder, write_atomically


@dataclass(frozen=True)
class Compiled:
    """A compiled source: `path` of the CUBIN, the mangled name of every requested entry, and resources by mangled name.

    `seconds` is the time that the compiler took, now or when the cached file was made.
    """

    path: Path
    lowered: dict[str, str]
    resources: dict[str, Resources]
    log: str
    seconds: float
    cached: bool

    @property
    def cubin(self) -> bytes:
        return self.path.read_bytes()


# Fat binaries: machine code by architecture in a `.fatbin`, an object file or a shared library.

_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")  # magic, version, header's bytes, bytes after it
_PART = struct.Struct("<HHIQIIHHI")  # kind, version, header's bytes, bytes, compressed bytes, options, minor, major, sm
_FLAGS_AT = 40
_PTX, _ELF = 1, 2
_COMPRESSED = 0xA000  # LZ4 or zstd
_CUDA = 190  # e_machine
_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_SECONDS = 60


@dataclass(frozen=True)
class _FatPart:
    """Code for one architecture: `number` is the index of its container in the file."""

    number: int
    architecture: int
    is_ptx: bool
    compressed: bool
    content: bytes


def cubin_architecture(cubin: bytes) -> int | None:
    """Return the architecture of a cubin, 90; None if the file is no cubin."""
    if cubin[:4] != b"\x7fELF" or len(cubin) < 64 or struct.unpack_from("<H", cubin, 18)[0] != _CUDA:
        return None
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return (flags >> 8) & 0xFF if cubin[8] >= 8 else flags & 0xFF


def _containers_of(source: Path) -> list[bytes]:
    """Return the fat binaries in a file; raise CompilationFailed without any."""
    data = source.read_bytes()
    if data[:4] == b"\x7fELF":
        sections = list(_sections(source, data))
        if not sections:
            raise CompilationFailed(f"{source}: it has no section .nv_fatbin: no GPU code was linked into it")
    else:
        sections = [data]
    containers = [container for section in sections for container in _containers(section)]
    if not containers:
        raise CompilationFailed(f"{source}: it holds no fat binary of CUDA")
    return containers


def _sections(source: Path, data: bytes) -> Iterator[bytes]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(data))
        yield from (section.data() for section in file.iter_sections() if section.name in _SECTIONS)
    except ELFError as error:
        raise CompilationFailed(f"{source}: damaged as an ELF file ({error})") from error


def _containers(data: bytes) -> Iterator[bytes]:
    at = 0
    magic = struct.pack("<I", _MAGIC)
    while (at := data.find(magic, at)) >= 0 and at + _CONTAINER.size <= len(data):
        _, _, header, size = _CONTAINER.unpack_from(data, at)
        yield data[at : at + header + size]
        at += header + size


def _parts_of(container: bytes, number: int) -> Iterator[_FatPart]:
    """Yield the parts of one fat binary."""
    at = _CONTAINER.unpack_from(container)[2]
    while at + _FLAGS_AT + 8 <= len(container):
        kind, _, header, size, *_, sm = _PART.unpack_from(container, at)
        (flags,) = struct.unpack_from("<Q", container, at + _FLAGS_AT)
        if kind in (_PTX, _ELF):
            content = container[at + header : at + header + size]
            yield _FatPart(number, sm, kind == _PTX, bool(flags & _COMPRESSED), content)
        at += header + size


def _unpacked(part: _FatPart, container: bytes, source: Path) -> bytes:
    """Return the machine code of a part; NVIDIA's cuobjdump unpacks compressed code.

    Raise BackendUnavailable if the code is compressed and no cuobjdump is installed.
    """
    if not part.compressed:
        return part.content
    program = tool("cuobjdump")
    if program is None:
        raise BackendUnavailable(
            f"{source}: its code for sm_{part.architecture} is compressed, and no cuobjdump is installed to unpack it: "
            "pip install nvidia-cuda-cuobjdump, or build with nvcc --compress-mode=none"
        )
    with tempfile.TemporaryDirectory(prefix="prism-fatbin-") as folder:
        file = Path(folder) / "packed.fatbin"
        file.write_bytes(container)
        subprocess.run(
            [program, "-xelf", f"sm_{part.architecture}", str(file)],
            cwd=folder,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        codes = [path.read_bytes() for path in sorted(Path(folder).glob("*.cubin"))]
    for code in codes:
        if cubin_architecture(code) == part.architecture:
            return code
    raise CompilationFailed(f"{source}: {program} did not unpack its code for sm_{part.architecture}")


# Entries in the file.

_RESERVED_SHARED = 1024  # bytes of a block's shared memory that are the system's own, from compute capability 9.0 on
_REGISTERS, _FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: symbol, number


def prebuilt_code(source: Path, entries: Sequence[str], architecture: str) -> Compiled:
    """Return the machine code for `architecture` in a file, with the symbols of the entries.

    Raise CompilationFailed if the file lacks the architecture or the entries, BackendUnavailable if the code is
    compressed and there is no program to unpack it.
    """
    wanted = int(architecture.rstrip("af"))
    codes = list(_codes(source, wanted))
    chosen = next((code for code in codes if _has(code, entries)), None)
    if chosen is None:
        symbols = [symbol for code in codes for symbol in entry_symbols(code)]
        for entry in entries:
            symbol_of(entry, symbols, str(source))
        raise CompilationFailed(f"{source}: {', '.join(entries)} are in different parts of it; name one spec for each")
    path = cache_folder("cubin") / f"{source.stem}-sm{architecture}-{hashlib.sha256(chosen).hexdigest()[:20]}.cubin"
    with cache_errors(path.parent):
        write_atomically(path, chosen)
    symbols = entry_symbols(chosen)
    lowered = {entry: symbol_of(entry, symbols, str(source)) for entry in entries}
    resources = cubin_resources(chosen)
    for symbol in lowered.values():
        if resources[symbol].stack_bytes:  # spills are known only if a tool here lists instructions
            measured = measured_resources(chosen, symbol)
            spills = {"spill_stores": measured.spill_stores, "spill_loads": measured.spill_loads}
            resources[symbol] = replace(resources[symbol], **spills)
    return Compiled(path, lowered, resources, "", 0.0, cached=True)


def _has(code: bytes, entries: Sequence[str]) -> bool:
    symbols = entry_symbols(code)
    try:
        return all(symbol_of(entry, symbols, "") for entry in entries)
    except CompilationFailed:
        return False


def _codes(source: Path, wanted: int) -> Iterator[bytes]:
    """Yield the code that a device of this architecture runs: its own, or that of an older one of its generation."""
    data = source.read_bytes()
    of_cubin = cubin_architecture(data)
    if of_cubin is not None:
        if not _runs(of_cubin, wanted):
            raise CompilationFailed(
                f"{source}: this cubin is for sm_{of_cubin}, and the device has sm_{wanted}: build it for that"
            )
        yield data
        return
    containers = _containers_of(source)
    parts = [part for number, container in enumerate(containers) for part in _parts_of(container, number)]
    fitting = [part for part in parts if not part.is_ptx and _runs(part.architecture, wanted)]
    if not fitting:
        names = {f"{'compute' if part.is_ptx else 'sm'}_{part.architecture}" for part in parts}
        raise CompilationFailed(
            f"{source}: it has code for {', '.join(sorted(names)) or 'no architecture'}, none for sm_{wanted}: add "
            f"-gencode arch=compute_{wanted},code=sm_{wanted} to its build"
        )
    best = max(part.architecture for part in fitting)
    for part in fitting:
        if part.architecture == best:
            yield _unpacked(part, containers[part.number], source)


def _runs(code: int, device: int) -> bool:
    return code // 10 == device // 10 and code <= device


def cubin_resources(cubin: bytes) -> dict[str, Resources]:
    """Return the registers, stack and shared memory that a cubin states for its kernels, by symbol."""
    from elftools.elf.elffile import ELFFile

    file: Any = ELFFile(io.BytesIO(cubin))
    table, info = file.get_section_by_name(".symtab"), file.get_section_by_name(".nv.info")
    records = list(info_records(info.data())) if info is not None else []
    names = {number: symbol.name for number, symbol in enumerate(table.iter_symbols())}
    numbers: dict[tuple[int, str], int] = {}
    for attribute, value in records:
        if attribute in (_REGISTERS, _FRAME) and len(value) == 8:
            symbol, number = struct.unpack("<II", value)
            numbers[attribute, names.get(symbol, "")] = number
    reserved = _RESERVED_SHARED if file.get_section_by_name(".nv.shared.reserved.0") is not None else 0
    by_symbol: dict[str, Resources] = {}
    for symbol in entry_symbols(cubin):
        shared = file.get_section_by_name(f".nv.shared.{symbol}")
        by_symbol[symbol] = Resources(
            registers=numbers.get((_REGISTERS, symbol), 0),
            stack_bytes=numbers.get((_FRAME, symbol), 0),
            shared_bytes=max(0, shared["sh_size"] - reserved) if shared is not None else 0,
        )
    return by_symbol
