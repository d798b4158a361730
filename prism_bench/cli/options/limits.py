"""A limit for kernels that a command runs in its own process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Annotated

import typer

CASE_SECONDS = 180.0
TOO_LONG = 2  # the exit code: the command could not do its work
TimeoutOption = Annotated[float, typer.Option("--timeout", min=1, help="Give up on a case after this many seconds.")]


@contextmanager
def limited(what: str, seconds: float) -> Iterator[None]:
    """End this process, and name what it was doing, when the block takes longer than `seconds`.

    A kernel that never ends leaves no other way: the call that waits for it does not return.
    """
    timer = Timer(seconds, _end, (f"prism-bench: timed out: {what}: no answer within {seconds:.0f} s",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(sentence: str) -> None:
    sys.stdout.flush()
    print(sentence, file=sys.stderr, flush=True)
    os._exit(TOO_LONG)
