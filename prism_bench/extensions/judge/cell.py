"""The judge's side of the jailed process: questions, answers that are checked, limits of time."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec
import numpy as np

from prism_bench.emulator.build import prepared
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError, UsageError, VerificationFailed
from prism_bench.extensions.judge.jail.jail import Jail
from prism_bench.extensions.judge.limits import USUAL, CellLimits
from prism_bench.extensions.judge.messages import (
    ANSWERS,
    HostCodeAnswer,
    HostCodeQuestion,
    HostLaunchAnswer,
    HostLaunchQuestion,
    InstanceCodeQuestion,
    JailAnswer,
    JailQuestion,
    LackingAnswer,
    LackingQuestion,
    MachineCodeAnswer,
    MachineCodeQuestion,
)
from prism_bench.extensions.judge.submission import LARGEST_CUBIN
from prism_bench.io.workers.frames import Frame, FrameError
from prism_bench.io.workers.handle import FrameWorker, WorkerEnvironment
from prism_bench.io.workers.refusal import Refusal
from prism_bench.spec.launch import Instance

COMPILERS_THREADS = 1024  # of compilers in Python, which start some for each core
_FINDINGS = (BackendUnavailable, CompilationFailed, SpecError, VerificationFailed)
_Expected = TypeVar("_Expected", bound=JailAnswer)


class HostCodeRefused(UsageError):
    """A submission has host code that would run when its code for the emulator is loaded."""


class JailCell:
    """One jailed process for one submission, as a context; it may read the folder `root`, with sources and headers.

    With `jailed` False it is a plain process: only for a source that is trusted. `modes` are those of the emulator that
    builds will ask for.
    """

    def __init__(self, root: Path, jailed: bool = True, modes: Sequence[str] = (), limits: CellLimits = USUAL) -> None:
        self.root, self.limits = root, limits
        self._prepared = _prepared(modes) if jailed else []  # without a jail the cache has them anyway
        jail = Jail.over(root.resolve(), *self._prepared) if jailed else None
        self._jail = jail if modes or not jail else msgspec.structs.replace(jail, processes=COMPILERS_THREADS)
        self._worker: FrameWorker | None = None
        self._builds: dict[HostCodeQuestion, int | str] = {}  # a number, or why there is no build
        self._lacking: dict[LackingQuestion, dict[str, str]] = {}

    def __enter__(self) -> "JailCell":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the process with all that it started."""
        if self._worker:
            self._worker.kill()
            self._worker.wait()
            self._worker.release()
            self._worker, self._builds = None, {}

    def machine_code(
        self, source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = ()
    ) -> tuple[MachineCodeAnswer, bytes]:
        """Return the machine code of a source; CompilationFailed with the compiler's message or its end."""
        question = MachineCodeQuestion(str(source), tuple(entries), architecture, tuple(options))
        frame = self._compiling(question, MachineCodeAnswer)
        return frame.message, frame.arrays[0].tobytes()

    def instance_code(
        self, source: Path, language: str, instance: Instance, architecture: str
    ) -> tuple[MachineCodeAnswer, bytes]:
        """Return the machine code of an instance in one of Python's languages, as `machine_code` does."""
        frame = self._compiling(InstanceCodeQuestion(str(source), language, instance, architecture), MachineCodeAnswer)
        return frame.message, frame.arrays[0].tobytes()

    def lacking(self, source: Path, entries: Sequence[str], options: Sequence[str] = ()) -> dict[str, str]:
        """Return why the emulator does not claim to run entries of a source, by entry; each question is sent once."""
        question = LackingQuestion(str(source), tuple(entries), tuple(options))
        if question not in self._lacking:
            self._lacking[question] = self._compiling(question, LackingAnswer).message.lacking
        return self._lacking[question]

    def build(self, source: Path, entries: Sequence[str], mode: str, options: Sequence[str] = ()) -> int:
        """Return the number of the build of a source for the emulator in a mode; it is built, or refused, once.

        BackendUnavailable where the host compiler does not take it: it is no compiler of CUDA, so that is nobody's
        fault. HostCodeRefused for constructors.
        """
        question = HostCodeQuestion(str(source), tuple(entries), mode, tuple(options))
        if question not in self._builds:
            try:
                self._builds[question] = self._compiling(question, HostCodeAnswer).message.build
            except BackendUnavailable as error:
                self._builds[question] = str(error)
            except SpecError as error:
                raise HostCodeRefused(str(error)) from None
            except CompilationFailed as error:
                self._builds[question] = f"not emulated: {error}"
        built = self._builds[question]
        if isinstance(built, str):
            raise BackendUnavailable(built)
        return built

    def launch(self, question: HostLaunchQuestion, arrays: Sequence[np.ndarray]) -> Frame[HostLaunchAnswer]:
        """Return the report of a launch and its arrays; VerificationFailed where the process dies or never answers."""
        try:
            frame = self._ask(question, arrays, HostLaunchAnswer, self.limits.launch_seconds)
        except TimeoutError:
            self.end()
            limit = self.limits.launch_seconds
            raise VerificationFailed(f"{question.request.entry}: it has not ended in {limit:g} s") from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            raise VerificationFailed(f"{question.request.entry}: {self._last_words()}") from None
        kinds = [(one.shape, one.dtype) for one in arrays]
        if [(one.shape, one.dtype) for one in frame.arrays] != kinds:
            raise VerificationFailed(f"{question.request.entry}: the jailed process answered with other arrays")
        return frame

    def _compiling(
        self,
        question: MachineCodeQuestion | InstanceCodeQuestion | LackingQuestion | HostCodeQuestion,
        expected: type[_Expected],
    ) -> Frame[_Expected]:
        name = Path(question.source).name
        try:
            return self._ask(question, (), expected, self.limits.compile_seconds)
        except TimeoutError:
            self.end()
            limit = self.limits.compile_seconds
            raise CompilationFailed(f"{name}: the compiler took longer than {limit:g} s") from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            raise CompilationFailed(f"{name}: while it was compiled, {self._last_words()}") from None

    def _ask(
        self, question: JailQuestion, arrays: Sequence[np.ndarray], expected: type[_Expected], limit: float | None
    ) -> Frame[_Expected]:
        worker = self._started()
        worker.channel.send(question, arrays)
        largest = max(LARGEST_CUBIN, sum(array.nbytes for array in arrays))
        frame = worker.channel.receive(ANSWERS, limit, largest)
        if isinstance(frame.message, Refusal):
            error = frame.message.error()
            if not isinstance(error, _FINDINGS):  # a stranger's code may answer: that this machine fails is no finding
                raise FrameError(f"{type(error).__name__} is no answer of a compiler or a launch")
            raise error
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def _started(self) -> FrameWorker:
        if self._worker is None:
            self._worker = FrameWorker(
                WorkerEnvironment(f"{__package__}.jailed", jail=self._jail), [str(path) for path in self._prepared]
            )
        return self._worker

    def _last_words(self) -> str:
        if self._worker is None:
            return "ended"
        self._worker.kill()
        words = self._worker.last_words()
        self.end()
        return words


def _prepared(modes: Sequence[str]) -> list[Path]:
    """Return the emulator's runtimes and headers, made once, outside: by the compiler that is found in the jail.

    That need not be the one that CXX names here, whose runtimes would not fit.
    """
    try:
        return [path for mode in modes for path in prepared(mode, Jail().variables({}))]
    except BackendUnavailable:
        return [path for mode in modes for path in prepared(mode)]  # the jail has none, which is named where it builds
