"""Files are written whole or not at all; and where a catalogue keeps them."""

import os
import tempfile
from pathlib import Path

GENERATED = "generated"  # kernels/<family>/generated: what the fusion generator writes


def family_folder(source: Path) -> Path:
    """The folder of the family that a kernel's file belongs to."""
    return source.parents[1] if source.parent.name == GENERATED else source.parent


def family_of(source: Path) -> str:
    return family_folder(source).name


def shared_folder(source: Path) -> Path:
    """`include/` beside the family folders of the catalogue that a kernel's file belongs to."""
    return family_folder(source).parent / "include"


def cache_folder(room: str) -> Path:
    """Where `room` keeps what can be made again: below PRISM_BENCH_CACHE, else below the user's cache."""
    return Path(os.environ.get("PRISM_BENCH_CACHE") or Path.home() / ".cache" / "prism_bench") / room


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
