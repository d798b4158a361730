"""Machine code that an earlier compilation left in the cache, found by the hash that a run record keeps of it."""

from functools import lru_cache
from pathlib import Path

from prism_bench.compilation.code import sass_hash
from prism_bench.compilation.disassembly import CompiledEntry
from prism_bench.compilation.program import kept_program
from prism_bench.io.files import cache_folder


def kept_entries(source: str, architecture: str, sass: str) -> dict[str, CompiledEntry]:
    """Return the entries of the code with that hash by their texts; empty where the cache does not hold it.

    `source` is the name of the source file without its ending, `architecture` one like `sm_90`.
    """
    found = next((path for path in _cubins(source, architecture) if _hash(path) == sass), None)
    program = kept_program(found) if found else None
    if program is None:
        return {}
    return {
        entry: CompiledEntry(program.path, symbol, program.resources[symbol])
        for entry, symbol in program.lowered.items() if symbol in program.resources
    }  # fmt: skip


def _cubins(source: str, architecture: str) -> list[Path]:
    folder, start = cache_folder("cubin"), f"{source}-{architecture.replace('_', '')}-"
    if not folder.is_dir():
        return []
    return [path for path in _listed(folder, folder.stat().st_mtime_ns) if path.name.startswith(start)]


@lru_cache(2)
def _listed(folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return the cubins of a folder; `_changed` is when it changed, so that a new file is seen."""
    return tuple(sorted(folder.glob("*.cubin")))


def _hash(path: Path) -> str | None:
    """Return the hash of a cubin's instructions; None where the file is not one."""
    from elftools.common.exceptions import ELFError

    try:
        return sass_hash(path.read_bytes())
    except (OSError, ELFError):
        return None
