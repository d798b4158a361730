"""Machine code that exists already: a cubin, a fat binary, an object file or a shared library with GPU code in it."""

import hashlib
import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prism_bench.compilation.code import Resources
from prism_bench.compilation.compiled import Compiled
from prism_bench.compilation.elf import info_records
from prism_bench.compilation.fatbin import FatPart, containers_of, cubin_architecture, parts_of, unpacked
from prism_bench.compilation.mangling import demangled
from prism_bench.compilation.symbols import entry_symbols, symbol_of
from prism_bench.compilation.tools import measured_resources
from prism_bench.errors import CompilationFailed
from prism_bench.io.files import cache_errors, cache_folder, write_atomically

_RESERVED_SHARED = 1024  # bytes of a block's shared memory that are the system's own, from compute capability 9.0 on
_REGISTERS, _FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: symbol, number


def prebuilt_code(source: Path, entries: Sequence[str], architecture: str) -> Compiled:
    """Return the machine code for `architecture` in a file, with the symbols of the entries.

    CompilationFailed where it has none for the architecture, or not the entries; BackendUnavailable where it is
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
    return Compiled(
        path, lowered, _with_spills(cubin_resources(chosen), lowered.values(), chosen), "", 0.0, cached=True
    )


def _with_spills(found: dict[str, Resources], symbols: Iterable[str], code: bytes) -> dict[str, Resources]:
    """Return the resources with the spills of entries that have a stack, where a tool here lists instructions."""
    for symbol in symbols:
        if found[symbol].stack_bytes:
            measured = measured_resources(code, symbol)
            spills = {"spill_stores": measured.spill_stores, "spill_loads": measured.spill_loads}
            found[symbol] = replace(found[symbol], **spills)
    return found


def _has(code: bytes, entries: Sequence[str]) -> bool:
    symbols = entry_symbols(code)
    try:
        return all(symbol_of(entry, symbols, "") for entry in entries)
    except CompilationFailed:
        return False


def _codes(source: Path, wanted: int) -> Iterator[bytes]:
    """Yield the machine code that a device of this architecture runs: for it, or for an older one of its generation."""
    data = source.read_bytes()
    own = cubin_architecture(data)
    if own is not None:
        if not _runs(own, wanted):
            raise CompilationFailed(
                f"{source}: this cubin is for sm_{own}, and the device has sm_{wanted}: build it for that"
            )
        yield data
        return
    containers = containers_of(source)
    parts = [part for number, one in enumerate(containers) for part in parts_of(one, number)]
    fitting = [part for part in parts if not part.is_ptx and _runs(part.architecture, wanted)]
    if not fitting:
        raise CompilationFailed(f"{source}: it has code for {_there(parts)}, none for sm_{wanted}: add "
                        f"-gencode arch=compute_{wanted},code=sm_{wanted} to its build")  # fmt: skip
    best = max(part.architecture for part in fitting)
    for part in fitting:
        if part.architecture == best:
            yield unpacked(part, containers[part.number], source)


def _runs(code: int, device: int) -> bool:
    return code // 10 == device // 10 and code <= device


def _there(parts: Sequence[FatPart]) -> str:
    names = {f"{'compute' if part.is_ptx else 'sm'}_{part.architecture}" for part in parts}
    return ", ".join(sorted(names)) or "no architecture"


def cubin_resources(cubin: bytes) -> dict[str, Resources]:
    """Return by symbol the registers, stack and shared memory that a cubin states of its kernels."""
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
    found: dict[str, Resources] = {}
    for symbol in entry_symbols(cubin):
        shared = file.get_section_by_name(f".nv.shared.{symbol}")
        found[symbol] = Resources(
            registers=numbers.get((_REGISTERS, symbol), 0), stack_bytes=numbers.get((_FRAME, symbol), 0),
            shared_bytes=max(0, shared["sh_size"] - reserved) if shared is not None else 0,
        )  # fmt: skip
    return found


def kernels_in_file(source: Path, architecture: str) -> tuple[str, ...]:
    """Return the kernels for an architecture in a prebuilt file, as C++ writes them."""
    codes = _codes(source, int(architecture.rstrip("af")))
    return tuple(demangled(symbol) for code in codes for symbol in entry_symbols(code))
