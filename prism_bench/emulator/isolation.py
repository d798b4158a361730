"""The parent's side of the child processes that kernels run in: questions, answers, and findings about a death.

One process serves many libraries of its kind, with the sanitizers or without, until a finding ends it: to start Python
takes far longer than to run a small kernel. It unloads none of them, because the sanitizer does not survive that.
"""

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import numpy as np

from prism_bench.emulator.compiler import sanitizer_library
from prism_bench.emulator.last_words import read_last_words
from prism_bench.emulator.messages import (
    ANSWERS,
    Answer,
    DoneAnswer,
    EntriesAnswer,
    EntriesQuestion,
    GetSymbolQuestion,
    LaunchAnswer,
    LaunchQuestion,
    LoadQuestion,
    Question,
    SetSymbolQuestion,
    SymbolAnswer,
    pack_arguments,
)
from prism_bench.emulator.report import LaunchFinding, LaunchReport
from prism_bench.emulator.request import LaunchRequest
from prism_bench.errors import BackendUnavailable
from prism_bench.io.workers.frames import Frame, FrameError
from prism_bench.io.workers.handle import FrameWorker, WorkerEnvironment
from prism_bench.io.workers.refusal import Refusal

_SANITIZER = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_ONE_AT_A_TIME = threading.RLock()
_MOST_LIBRARIES = 64  # in one process; each takes some fifty of its 65,530 mappings
_END_SECONDS = 10.0  # for a child that notices that nobody asks it any more
_LARGEST_SYMBOL = 4 << 30  # bytes
_Expected = TypeVar("_Expected", bound=Answer)


class ChildDied(Exception):
    """The child ended over a question, or sent something that is no answer to it."""


class Child:
    """A library in another process. It is loaded with the first question, and again after each finding."""

    def __init__(self, path: Path, guarded: bool) -> None:
        self._path, self._guarded = path, guarded
        self._home: _ChildProcess | None = None
        self._symbols: dict[str, bytes] = {}

    def launch(self, request: LaunchRequest, arguments: Sequence[object]) -> LaunchReport:
        """Launch as `Module.launch` does; a death of the child is a finding, with the place of its crash."""
        places, arrays = pack_arguments(arguments)
        question = LaunchQuestion(str(self._path), request, places)
        with _ONE_AT_A_TIME:
            try:
                frame = self._ask(question, arrays, LaunchAnswer)
                _copy_back(frame, arrays)
            except ChildDied as death:
                return LaunchReport(request.entry, self._last_words(str(death)))
            report = frame.message.report
            return LaunchReport(request.entry, (*report.findings, *self._last_words()), report.traffic)

    @property
    def entries(self) -> tuple[str, ...]:
        """The kernels of the library."""
        return self._require(EntriesQuestion(str(self._path)), EntriesAnswer).message.names

    def set_symbol(self, name: str, content: bytes) -> None:
        """Set a global variable, in this child and in those that follow it."""
        self._require(SetSymbolQuestion(str(self._path), name), DoneAnswer, content)
        self._symbols[name] = content

    def get_symbol(self, name: str) -> bytes:
        """Return the content of a global variable."""
        (content,) = self._require(GetSymbolQuestion(str(self._path), name), SymbolAnswer).arrays
        return content.tobytes()

    def close(self) -> None:
        """Give the library up; the process continues with others."""
        self._home = None

    def _require(self, question: Question, expected: type[_Expected], content: bytes | None = None) -> Frame[_Expected]:
        """Return the answer to a question that no kernel runs for; BackendUnavailable where the child died."""
        arrays = () if content is None else (np.frombuffer(content, np.uint8),)
        with _ONE_AT_A_TIME:
            try:
                return self._ask(question, arrays, expected)
            except ChildDied as death:
                findings = "; ".join(map(str, self._last_words(str(death))))
                raise BackendUnavailable(f"the emulator's process gave no answer: {findings}") from death

    def _ask(self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected]) -> Frame[_Expected]:
        """Return the child's answer; an error that it answers with is raised, ChildDied where there is no answer."""
        try:
            return self._settled().ask(question, arrays, expected)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise ChildDied("") from None
        except FrameError as error:
            raise ChildDied(f"it sent no answer: {error}") from error

    def _settled(self) -> "_ChildProcess":
        """Return the process that has the library loaded; a new one where the last one ended."""
        if self._home is not None and self._home.lives:
            return self._home
        path = str(self._path)
        self._home = _serving(self._guarded)
        self._home.libraries.add(self._path)
        self._home.ask(LoadQuestion(path), (), DoneAnswer)
        for name, content in self._symbols.items():
            self._home.ask(SetSymbolQuestion(path, name), (np.frombuffer(content, np.uint8),), DoneAnswer)
        return self._home

    def _last_words(self, reason: str | None = None) -> tuple[LaunchFinding, ...]:
        """Return what the process wrote about the launch as findings, and end it where there are any.

        With a `reason`, which may be empty, the process died or is of no more use.
        """
        home, died = self._home, reason is not None
        if home is None:
            return ()
        status = home.ended(now=bool(reason)) if died else None
        words = home.worker.stderr_text() + (f"\n{reason}" if reason else "")
        findings = read_last_words(self._path, words, died, status)
        if findings or died:
            home.end()
        return findings


def _copy_back(frame: Frame[LaunchAnswer], arrays: Sequence[np.ndarray]) -> None:
    """Copy the arrays of an answer into those that were sent; ChildDied where they are not the same kind."""
    returned = frame.message.returned
    if len(returned) != len(frame.arrays) or not set(returned) <= set(range(len(arrays))):
        raise ChildDied("it returned other arrays than it was sent")
    pairs = [(arrays[index], result) for index, result in zip(returned, frame.arrays, strict=True)]
    if any((sent.shape, sent.nbytes) != (result.shape, result.nbytes) for sent, result in pairs):
        raise ChildDied("it returned arrays of other shapes or types than it was sent")
    for sent, result in pairs:
        if sent.size:
            sent[...] = result.view(sent.dtype)


# By the process that asks, which may be a fork, by kind, and by the block of `own_children` that it is for.
_SERVING: dict[tuple[int, bool, object], "_ChildProcess"] = {}
_BLOCK: ContextVar[object] = ContextVar("block", default=None)


@contextmanager
def own_children() -> Iterator[None]:
    """Launch what this thread launches in the block in processes that end with it, and that nobody else asks."""
    block = object()
    token = _BLOCK.set(block)
    try:
        yield
    finally:
        _BLOCK.reset(token)
        for key in [key for key in _SERVING if key[2] is block]:
            _SERVING.pop(key).end()


def _serving(guarded: bool) -> "_ChildProcess":
    """Return the process for one more library. A full one ends when nobody asks it any more."""
    key = (os.getpid(), guarded, _BLOCK.get())
    if key not in _SERVING or not _SERVING[key].lives or len(_SERVING[key].libraries) >= _MOST_LIBRARIES:
        _SERVING[key] = _ChildProcess(guarded)
    return _SERVING[key]


class _ChildProcess:
    """A running child and the libraries that it has loaded."""

    def __init__(self, guarded: bool) -> None:
        self.libraries: set[Path] = set()
        self.worker = FrameWorker(_environment(guarded), ["guarded" if guarded else "plain"])
        self._end = weakref.finalize(self, _end, self.worker)

    @property
    def lives(self) -> bool:
        """Whether it has not been ended."""
        return self._end.alive

    def ask(self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected]) -> Frame[_Expected]:
        """Return the answer, which has the expected type and arrays no larger than it may have.

        EOFError, BrokenPipeError or ConnectionResetError where the child has ended, FrameError for other answers.
        """
        largest = _LARGEST_SYMBOL if expected is SymbolAnswer else sum(array.nbytes for array in arrays)
        try:
            self.worker.channel.send(question, arrays)
            frame = self.worker.channel.receive(ANSWERS, largest=largest)
        except KeyboardInterrupt:
            self.worker.kill()  # an answer that comes later would be taken for the next question's
            self.end()
            raise
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def ended(self, now: bool) -> int | None:
        """Return how the process ended, minus the signal's number where a signal ended it; `now` kills it."""
        if now:
            self.worker.kill()
        return self.worker.wait()

    def end(self) -> None:
        """End it now, not when nobody asks it any more."""
        self._end()


def _end(worker: FrameWorker) -> None:
    """Close the child's channel, which ends it, and wait for that; kill it where it does not end."""
    worker.channel.close()
    if worker.wait(_END_SECONDS) is None:
        worker.kill()
        worker.wait()
    worker.release()


def _environment(guarded: bool) -> WorkerEnvironment:
    variables = {"OPENBLAS_NUM_THREADS": "1"}
    if guarded:
        variables |= {**_SANITIZER, "LD_PRELOAD": sanitizer_library()}
    return WorkerEnvironment(f"{__package__}.child", variables=variables)
