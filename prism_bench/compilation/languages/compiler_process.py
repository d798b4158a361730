"""The parent's side of the child processes that compilers run in: questions, answers, a time limit.

A process of this program has one child for each language that it compiles: a compiler takes a second to import, and a
tenth of one for the next kernel.
"""

import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from prism_bench.compilation.languages.language import language
from prism_bench.compilation.languages.messages import (
    ANSWERS,
    EmulatedAnswer,
    EmulateQuestion,
    LanguageAnswer,
    LanguageQuestion,
)
from prism_bench.errors import CompilationFailed
from prism_bench.io.workers.frames import Frame, FrameError
from prism_bench.io.workers.handle import FrameWorker, WorkerEnvironment
from prism_bench.io.workers.refusal import Refusal

LIMIT_SECONDS = 300.0  # for one kernel, and for a compiler's first import
_LARGEST = 1 << 30  # bytes of a cubin, or of an interpreter's arrays
_END_SECONDS = 5.0
_ONE_AT_A_TIME = threading.RLock()
_SERVING: dict[tuple[int, str, bool], "_CompilerProcess"] = {}  # by the process that asks, which may be a fork
_Expected = TypeVar("_Expected", bound=LanguageAnswer)


def ask(
    suffix: str, question: LanguageQuestion, expected: type[_Expected], arrays: Sequence[np.ndarray] = (), *,
    limit: float = LIMIT_SECONDS,
) -> Frame[_Expected]:  # fmt: skip
    """Return the answer of the language's child process; the error that it answers with is raised.

    CompilationFailed where the child dies, or takes longer than `limit` seconds; another takes its place.
    """
    with _ONE_AT_A_TIME:
        process = _serving(suffix, isinstance(question, EmulateQuestion))
        try:
            return process.ask(question, expected, (arrays, limit))
        except TimeoutError:
            process.end()
            raise CompilationFailed(
                f"{question.file}: {question.instance}: {language(suffix).title} took longer than {limit:.0f} s"
            ) from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            words = process.worker.last_words()
            process.end()
            raise CompilationFailed(f"{question.file}: {question.instance}: {words}") from None
        except KeyboardInterrupt:
            process.end()  # an answer that comes later would be taken for the next question's
            raise


def ask_interpreter(suffix: str, question: EmulateQuestion, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the arguments of a launch after the language's interpreter has run it, in a child process."""
    return ask(suffix, question, EmulatedAnswer, arrays).arrays


def _serving(suffix: str, interprets: bool) -> "_CompilerProcess":
    key = os.getpid(), suffix, interprets
    if key not in _SERVING or not _SERVING[key].lives:
        _SERVING[key] = _CompilerProcess(suffix, interprets)
    return _SERVING[key]


class _CompilerProcess:
    """A running child of one language: its compiler, or its interpreter."""

    def __init__(self, suffix: str, interprets: bool) -> None:
        spoken = language(suffix)
        variables = {**spoken.variables, **(spoken.interpreter_variables if interprets else {})}
        where = WorkerEnvironment(f"{__package__}.child", variables=variables)
        self.worker = FrameWorker(where, [suffix], stdout=subprocess.STDOUT)
        self._end = weakref.finalize(self, _end, self.worker)

    @property
    def lives(self) -> bool:
        """Whether it has not been ended."""
        return self._end.alive

    def ask(
        self, question: LanguageQuestion, expected: type[_Expected], sent: tuple[Sequence[np.ndarray], float]
    ) -> Frame[_Expected]:
        """Return the answer to a question with its arrays and its limit in seconds."""
        arrays, limit = sent
        self.worker.channel.send(question, arrays)
        frame = self.worker.channel.receive(ANSWERS, limit, _LARGEST)
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def end(self) -> None:
        """End it now, whatever it is doing."""
        self.worker.kill()
        self._end()


def _end(worker: FrameWorker) -> None:
    """Close the child's channel, which ends it, and wait for that; kill it where it does not end."""
    worker.channel.close()
    if worker.wait(_END_SECONDS) is None:
        worker.kill()
        worker.wait()
    worker.release()
