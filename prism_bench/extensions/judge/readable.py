"""Whether machine code that somebody sent can be read at all, and in one way alone."""

import io
from collections import Counter
from typing import Any

from prism_bench.compilation.code import sass_hash
from prism_bench.compilation.elf import elf_entries
from prism_bench.compilation.symbols import entry_symbols, undefined_symbols

_SYMBOLS, _TEXTS = ".symtab", ".strtab"


def why_unreadable(cubin: bytes) -> str:
    """Return why the tables of a cubin cannot be read, or can be in several ways; nothing where they can."""
    try:
        _ = undefined_symbols(cubin), entry_symbols(cubin), sass_hash(cubin), elf_entries(cubin)
        return _ambiguity(cubin)
    except Exception as error:  # whatever a reader raises is about the bytes
        return f"{type(error).__name__}: {error}"


def _ambiguity(cubin: bytes) -> str:
    """Return what a driver, which may go by the kinds of sections, can read otherwise than readers by name."""
    from elftools.elf.elffile import ELFFile

    file: Any = ELFFile(io.BytesIO(cubin))
    sections = list(file.iter_sections())
    doubled = [name for name, count in Counter(one.name for one in sections).items() if count > 1]
    if doubled:
        return f"it has two sections of the name '{doubled[0]}'"
    tables = [one for one in sections if one["sh_type"] == "SHT_SYMTAB"]
    if [_SYMBOLS] != [one.name for one in tables]:
        return f"its tables of symbols are {', '.join(one.name for one in tables) or 'none'}, not {_SYMBOLS} alone"
    texts = sections[tables[0]["sh_link"]].name
    return "" if texts == _TEXTS else f"the names of its symbols are in '{texts}', not in {_TEXTS}"
