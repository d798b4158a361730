"""Processes that this one starts: what they import, how they ended, and that none outlives its parent.

A child is started with `process_group=0`: a terminal's Ctrl-C reaches the parent alone, which decides what becomes of
its children. It calls `end_with`, so that it ends with its parent however that ends, by SIGKILL too.
"""

import multiprocessing
import os
import select
import signal
import sys
import time
from pathlib import Path
from threading import Thread
from typing import BinaryIO

ORPHANED = 2  # what a child exits with whose parent is gone
GRACE_SECONDS = 1.0  # for a child that notices by itself, and ends in order


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


def end_with(descriptor: int) -> None:
    """End this process, whatever it is doing, soon after the other end of the pipe or socket `descriptor` closes.

    Of what can be read from it nothing is taken.
    """
    end = select.poll()
    end.register(descriptor, 0)  # a hang-up is reported whether it is asked for or not

    def wait() -> None:
        end.poll()
        time.sleep(GRACE_SECONDS)
        os._exit(ORPHANED)

    Thread(target=wait, daemon=True).start()


def end_with_parent() -> None:
    """Do the same in a process that `multiprocessing` started, and leave Ctrl-C to the parent: a pool's initializer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None and isinstance(parent.sentinel, int):
        end_with(parent.sentinel)
