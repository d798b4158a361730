"""Child processes: what they import, how they ended, and that none outlives its parent.

A child is started with `process_group=0`: a terminal's Ctrl-C reaches only the parent, which decides what to do with
its children. A child calls `end_with`, so that it ends with its parent however that ends, also by SIGKILL.
"""

import multiprocessing
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO

ORPHANED = 2  # the exit status of a child whose parent is gone
MOST_WORDS = 1 << 20  # bytes of standard error that are read, the last: a stranger's code may write any number
GRACE_SECONDS = 1.0  # for a child that notices by itself, and ends in order


def environment(root: Path | None = None) -> dict[str, str]:
    """Return the environment in which a process imports what this one does, even if `sys.path` was edited.

    What is at `root` is imported first.
    """
    paths = [str(root)] if root else []
    paths += [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def usable_cores() -> int:
    """Return how many cores this process may use: a job of a fleet has a share of its host's."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def ending(code: int | None, words: BinaryIO) -> str:
    """Return how a process ended, from its exit status, None where it has not ended.

    The last line of the file `words`, its standard error, follows: `ended (exit status 1): no memory`.
    """
    words.seek(max(0, words.seek(0, os.SEEK_END) - MOST_WORDS))
    lines = words.read().decode(errors="replace").strip().splitlines()
    how = "still runs" if code is None else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
    return f"ended ({how})" + (f": {lines[-1][:300]}" if lines else "")


def children_of(pid: int) -> set[int]:
    """Return the processes that any thread of a process started and nobody has waited for; nothing without /proc."""
    found: set[int] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended
            found |= set(map(int, thread.read_text().split()))
    return found


def end_with(descriptor: int) -> None:
    """End this process, whatever it is doing, soon after the other end of the pipe or socket `descriptor` closes.

    Nothing is read from it.
    """
    end = select.poll()
    end.register(descriptor, 0)  # a hang-up is reported without being selected

    def wait() -> None:
        end.poll()
        time.sleep(GRACE_SECONDS)
        os._exit(ORPHANED)

    Thread(target=wait, daemon=True).start()


def end_with_parent() -> None:
    """Initialize a pool's process that `multiprocessing` started: it ends with its parent and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_with(parent.sentinel)
