"""Whether machine code that somebody sent can be read at all."""

from prism_bench.compilation.code import sass_hash
from prism_bench.compilation.elf import elf_entries
from prism_bench.compilation.symbols import entry_symbols, undefined_symbols


def why_unreadable(cubin: bytes) -> str:
    """Return why the tables of a cubin cannot be read; nothing where they can."""
    try:
        _ = undefined_symbols(cubin), entry_symbols(cubin), sass_hash(cubin), elf_entries(cubin)
    except Exception as error:  # whatever a reader raises is about the bytes
        return f"{type(error).__name__}: {error}"
    return ""
