"""Locks on files, which the system takes back when their process ends, however it ends.

`fcntl` has them on POSIX, `msvcrt` on Windows. Nothing else of the package imports one of the two when it is loaded, so
that it can be imported on any system.
"""

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_LOCK_FILE = ".lock"  # in a folder, where folders cannot be opened
_PAUSE = 0.05


def lock_now(descriptor: int) -> None:
    """Lock the open file; raise a BlockingIOError where another one has its lock, an OSError where there are none."""
    if fcntl:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        _lock_first_byte(descriptor)


def lock(descriptor: int) -> None:
    """Lock the open file, and wait for that as long as another one has its lock."""
    is_locked = False
    while not is_locked:
        try:
            if fcntl:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            else:
                _lock_first_byte(descriptor)
            is_locked = True
        except BlockingIOError:
            time.sleep(_PAUSE)


def opened_folder(folder: Path) -> int:
    """Return a descriptor whose lock is the folder's: of the folder itself, or of a file in it on Windows."""
    if fcntl:
        return os.open(folder, os.O_RDONLY)
    return os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT)


def _lock_first_byte(descriptor: int) -> None:
    """Lock the first byte of a file in place of the whole: Windows locks ranges, even beyond the end."""
    windows: Any = import_module("msvcrt")
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    except PermissionError as error:  # that is how it reports a lock of another one
        raise BlockingIOError(*error.args) from error
