"""Temporary files, from which complete files are made. A later writer removes those of one that was killed.

A writer holds a lock on its temporary file, which the system takes back when the writer ends, however it ends. So a
temporary file without a lock has no writer any more.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

ENDING = ".prism-tmp"
_LONGEST_PREFIX = 60
_cleaned: set[Path] = set()  # folders, by this process


@contextmanager
def written_beside(path: Path, data: bytes) -> Generator[Path]:
    """Yield a complete temporary file in the folder of `path`; remove it unless it was moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent not in _cleaned:
        _cleaned.add(path.parent)
        remove_stale(path.parent)
    temporary, file = _locked(path)
    with file:
        try:
            file.write(data)
            file.flush()
            os.chmod(temporary, 0o644)
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


def remove_stale(folder: Path) -> None:
    """Remove the temporary files in `folder` whose writers have ended; what cannot be removed stays."""
    for stale in folder.glob(f".*{ENDING}"):
        with suppress(OSError), stale.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stale.unlink()


def _locked(path: Path) -> tuple[Path, BinaryIO]:
    """Create a file next to `path` and lock it; create another one if a cleaner took it for stale before that."""
    while True:
        prefix = f".{path.name[:_LONGEST_PREFIX]}."
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=ENDING)
        file = os.fdopen(handle, "wb")
        with suppress(OSError):  # where the file system has no locks nothing is taken for stale either
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:
            return Path(name), file
        file.close()
