"""Arguments, output and errors of every command; standard output may be closed, full, or lose its reader."""

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, TextIO

from prism_bench.errors import UsageError

EXIT_CODE = 2


class OutputFailed(Exception):
    """Standard output takes no more text. No OSError: libraries have own exit codes for a broken pipe."""


class _Guarded:
    """Standard output whose first failure is kept and raised by all that follows; `stream` is None where it was closed.

    Kept, because libraries try what a stream takes and swallow what comes of it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._reason = "it is closed" if stream is None else None

    def write(self, text: str) -> int:
        return self._tried(lambda stream: stream.write(text))

    def flush(self) -> None:
        if self._stream is not None:  # a command that prints nothing needs no output
            self._tried(lambda stream: stream.flush())

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # not before __init__ has run
            raise AttributeError(name)
        return getattr(self._stream, name)

    def _tried(self, action: Callable[[TextIO], Any]) -> Any:
        if self._reason is None and self._stream is not None:
            try:
                return action(self._stream)
            except OSError as error:
                self._reason = "" if error.errno == errno.EPIPE else error.strerror or str(error)
                _discard(self._stream)
        raise OutputFailed(self._reason)


def _discard(stream: TextIO) -> None:
    """Discard what is still in the stream's buffer, so that Python ends without a message."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def guarded_output() -> Iterator[None]:
    """Run the body; where standard output fails end with exit code 2 and one line, none where its reader has left."""
    stream = sys.stdout
    guarded = _Guarded(stream)
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to fail
    sys.stdout = guarded  # type: ignore[assignment]
    try:
        try:
            yield
        finally:
            guarded.flush()
    except OutputFailed as failed:
        if str(failed):
            complain(f"cannot write to standard output: {failed}")
        sys.exit(EXIT_CODE)
    finally:
        sys.stdout = stream


def complain(message: str) -> None:
    """Print one line of error on standard error, where there is one."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"prism-bench: {message}", file=sys.stderr)


def refuse_empty(arguments: Sequence[str]) -> None:
    """Raise a UsageError for an empty argument: a variable of the shell that was not set, never a name or a path.

    What follows `--` is another program's.
    """
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for place, word in enumerate(ours, 1):
        if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
            raise UsageError(f"argument {place} is empty ('{word}'); give it a value or leave it out")


def os_words(error: OSError) -> str:
    """Return the message of an error of the operating system, with its path."""
    message = error.strerror or str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {message}" if isinstance(error.filename, str | bytes) else message
