"""Symbols of machine code: which one is the function that a spec names, and what a loader of host code calls."""

import io
import re
import struct
from collections.abc import Sequence
from typing import Any

from prism_bench.compilation.mangling import demangled, function_of, same_function, without_template
from prism_bench.errors import CompilationFailed, SpecError

_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_ENTRY = 0x10  # STO_CUDA_ENTRY in st_other
_MOST_NAMES = 20
_WRITABLE = 1  # SHF_WRITE
# What a loader of host code calls, or runs: by the types of sections, and by the names that linkers gather.
_CALLED_TYPES = ("SHT_INIT_ARRAY", "SHT_FINI_ARRAY", "SHT_PREINIT_ARRAY")
_CALLED_NAMES = re.compile(r"\.(?:preinit_array|init_array|fini_array|ctors|dtors|init|fini)(?:\.|$)")
_INDIRECT = ("STT_LOOS", "STT_GNU_IFUNC")  # functions that a loader calls to find others
_NOT_KEPT = (".nv.shared", ".nv.merc")  # of a block; of debuggers


def entry_symbols(cubin: bytes) -> tuple[str, ...]:
    """Return the symbols of the kernels in a cubin; none where it is no ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        table = file.get_section_by_name(".symtab")
        names = file.get_section_by_name(".strtab").data()
        data = table.data()
    except (ELFError, AttributeError):
        return ()
    found: list[str] = []
    for at in range(0, len(data) - _SYMBOL.size + 1, _SYMBOL.size):
        name, _, other, *_ = _SYMBOL.unpack_from(data, at)
        if other & _ENTRY:
            found.append(names[name : names.index(b"\0", name)].decode())
    return tuple(found)


def undefined_symbols(cubin: bytes) -> tuple[str, ...] | None:
    """Return the functions and variables that a cubin uses and does not have; None where it is no ELF file for a GPU.

    What the compiler reserves (`.nv.`) is left out.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        table: Any = file.get_section_by_name(".symtab")
        names = [symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"]
    except (ELFError, AttributeError, KeyError, ValueError, AssertionError):
        return None
    return tuple(name for name in names if name and not name.startswith(".nv."))


def variable_symbols(cubin: bytes) -> dict[str, int]:
    """Return the variables of a cubin that keep their content from launch to launch, with their bytes.

    What a section has without a name is named like the section. SpecError where it is no ELF file for a GPU.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        kept = {
            number: section for number, section in enumerate(file.iter_sections())
            if section["sh_flags"] & _WRITABLE and section["sh_size"] and not section.name.startswith(_NOT_KEPT)
        }  # fmt: skip
        found = {
            symbol.name: (symbol["st_shndx"], symbol["st_size"])
            for symbol in file.get_section_by_name(".symtab").iter_symbols()
            if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"] and symbol["st_shndx"] in kept
        }
        named = {number for number, _ in found.values()}
        unnamed = {one.name: one["sh_size"] for number, one in kept.items() if number not in named}
        return {name: size for name, (_, size) in found.items()} | unnamed
    except (ELFError, AttributeError, KeyError, ValueError) as error:
        raise SpecError(f"the cubin is no ELF file for a GPU: {error}") from error


def called_by_loaders(code: bytes) -> dict[str, int]:
    """Return what a loader calls of a host object file: pointers (or bytes of code, in words) by section."""
    from elftools.elf.elffile import ELFFile

    file: Any = ELFFile(io.BytesIO(code))
    called: dict[str, int] = {}
    for section in file.iter_sections():
        if section["sh_type"] in _CALLED_TYPES or _CALLED_NAMES.match(section.name):
            words = -(-section["sh_size"] * 8 // file.elfclass)
            called[section.name] = called.get(section.name, 0) + words
    for table in file.iter_sections("SHT_SYMTAB"):
        if indirect := sum(symbol["st_info"]["type"] in _INDIRECT for symbol in table.iter_symbols()):
            called["indirect functions"] = indirect
    return {name: words for name, words in called.items() if words}


def lowered_names(cubin: bytes, entries: Sequence[str], source: str) -> dict[str, str]:
    """Return by entry its symbol in the cubin; raise a CompilationFailed that lists what there is where it has none."""
    symbols = entry_symbols(cubin)
    return {entry: symbol_of(entry, symbols, source) for entry in entries}


def symbol_of(entry: str, symbols: Sequence[str], source: str) -> str:
    """Return the symbol of the function that an entry names, by its symbol, its instance or its plain name."""
    if entry in symbols:
        return entry
    found = [symbol for symbol in symbols if same_function(entry, symbol)]
    if not found:  # a plain name of the only instance, or arguments that are written in another way
        plain = without_template(function_of(entry))
        found = [symbol for symbol in symbols if without_template(function_of(symbol)) == plain]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CompilationFailed(f"{source}: no kernel '{entry}'; it has {_listed(symbols)}")
    raise CompilationFailed(
        f"{source}: '{entry}' can be {_listed(found)}: name one of these with its template arguments, or by its "
        f"symbol, such as {found[0]}"
    )


def _listed(symbols: Sequence[str]) -> str:
    shown = ", ".join(demangled(symbol) for symbol in symbols[:_MOST_NAMES]) or "no kernel at all"
    return f"{shown} and {len(symbols) - _MOST_NAMES} more" if len(symbols) > _MOST_NAMES else shown
