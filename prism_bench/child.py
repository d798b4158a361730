"""Processes that this one starts: what they import, and how they ended."""

import os
import sys
from pathlib import Path
from typing import BinaryIO


def environment(root: Path | None = None) -> dict[str, str]:
    """The environment in which a process imports what this one does, even if its path was edited, as asv does; before
    that what stands at `root`.
    """
    paths = [str(root)] if root else []
    paths += [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def ending(code: int | None, words: BinaryIO) -> str:
    """How a process ended, by its exit status (None where it has not), with the last line of what it said to the file
    `words`: `ended (exit status 1): no memory`.
    """
    words.seek(0)
    said = words.read().decode(errors="replace").strip().splitlines()
    how = "still runs" if code is None else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
    return f"ended ({how})" + (f": {said[-1][:300]}" if said else "")
