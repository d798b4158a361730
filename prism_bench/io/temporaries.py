"""Temporary files, from which complete files are made, and folders. A later writer removes files of a killed one.

A writer holds a lock on its temporary file, which the system takes back when the writer ends, however it ends. So a
temporary file without a lock has no writer any more. Windows neither moves nor removes an open file: there the writer
closes it, and has ended where the file is a day old.
"""

import os
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from prism_bench.io import interrupts
from prism_bench.io.locks import lock_now

ENDING = ".prism-tmp"
_LONGEST_PREFIX = 60
_CLOSED = os.name == "nt"  # whether a file is closed before it is moved or removed
_DAY = 86400.0
_cleaned: set[Path] = set()  # folders, by this process


@contextmanager
def written_beside(path: Path, data: bytes | Iterable[bytes]) -> Generator[Path]:
    """Yield a complete temporary file in the folder of `path`; remove it unless it was moved.

    Of `data` in pieces each is written as soon as it is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent not in _cleaned:
        _cleaned.add(path.parent)
        remove_stale(path.parent)
    temporary, file = _locked(path)
    with file:
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
            file.flush()
            os.chmod(temporary, 0o644)
            if _CLOSED:
                file.close()
            yield temporary
        finally:
            if _CLOSED:
                file.close()
            temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(prefix: str, inside: Path | str | None = None) -> Generator[Path]:
    """Yield a new folder `inside` another, by default that of the system; remove it at the end with all that it has.

    A signal waits while the folder is made: who would remove it is known only afterwards.
    """
    made = None
    try:
        with interrupts.held():
            made = tempfile.TemporaryDirectory(prefix=prefix, dir=inside)
        yield Path(made.name)
    finally:
        if made:
            made.cleanup()


def remove_stale(folder: Path) -> None:
    """Remove the temporary files in `folder` whose writers have ended; what cannot be removed stays."""
    for stale in folder.glob(f".*{ENDING}"):
        with suppress(OSError):
            if not _CLOSED:
                _remove_unlocked(stale)
            elif time.time() - stale.stat().st_mtime > _DAY:
                stale.unlink()


def _remove_unlocked(stale: Path) -> None:
    with stale.open("rb") as file:
        lock_now(file.fileno())
        stale.unlink()


def _locked(path: Path) -> tuple[Path, BinaryIO]:
    """Create a file next to `path` and lock it; create another one if a cleaner took it for stale before that."""
    while True:
        prefix = f".{path.name[:_LONGEST_PREFIX]}."
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=ENDING)
        file = os.fdopen(handle, "wb")
        if _CLOSED:
            return Path(name), file
        with suppress(OSError):  # where the file system has no locks nothing is taken for stale either
            lock_now(handle)
        if os.fstat(handle).st_nlink:
            return Path(name), file
        file.close()
