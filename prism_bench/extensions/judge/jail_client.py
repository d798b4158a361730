"""Judge's side of the jailed process: questions, checked answers, machine code, and an emulator in the jail."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec
import numpy as np

from prism_bench.backends.base import Runnable
from prism_bench.backends.emulator import EmulatorBackend, EmulatorRunnable
from prism_bench.compilation.cubin import Resources, check_card, has_shared_memory
from prism_bench.compilation.program import toolchain_of
from prism_bench.emulator.build import prepared
from prism_bench.emulator.isolation import ArgumentPlace, pack_arguments
from prism_bench.emulator.library import LaunchRequest
from prism_bench.emulator.report import LaunchReport
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError, UsageError, VerificationFailed
from prism_bench.extensions.judge.jail.jail import Jail
from prism_bench.extensions.judge.referee.client import CardedCode, ContestantCode
from prism_bench.extensions.judge.submission import LARGEST_CUBIN, LARGEST_EMULATED, check_scratch
from prism_bench.io.channels import Frame, FrameError
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.launch import Instance, LaunchCard
from prism_bench.units import count_text


@dataclass(frozen=True)
class CellLimits:
    """Most seconds of a compilation, and of a launch on the emulator; None: unlimited.

    `patience` is the processor time after which a launch without progress ends with a finding.
    """

    compile_seconds: float | None = 180.0
    launch_seconds: float | None = 120.0
    patience: float = 10.0


USUAL = CellLimits()


# Messages; arrays and machine code follow a message in the same frame


class MachineCodeQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to compile a source for an architecture, with these entries."""

    source: str
    entries: tuple[str, ...]
    architecture: str
    options: tuple[str, ...] = ()


class InstanceCodeQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to import a source in a kernel language of Python and compile an instance of one of its functions."""

    source: str
    language: str
    instance: Instance
    architecture: str


class MachineCodeAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Facts about the cubin in the frame's array: the symbol of each entry, and resources by symbol.

    An instance has the launch `card` of its compiler. `kinds` counts the instructions of all entries by kind,
    `precisions` their arithmetic by precision; both are None if no program lists them. `memory_barriers` counts
    instructions on barriers in shared memory (`SYNCS`).
    """

    symbols: dict[str, str]
    resources: dict[str, Resources]
    kinds: dict[str, int] | None
    precisions: dict[str, int] | None
    log: str = ""
    card: LaunchCard | None = None
    memory_barriers: int = 0


class LackingQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Question for the entries of a source that the emulator does not claim to run."""

    source: str
    entries: tuple[str, ...]
    options: tuple[str, ...] = ()


class LackingAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Reasons by entry."""

    lacking: dict[str, str]


class HostCodeQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to build a source for the emulator in a mode, with these entries, and to keep it for launches."""

    source: str
    entries: tuple[str, ...]
    mode: str
    options: tuple[str, ...] = ()


class HostCodeAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Number of the finished build, from 0."""

    build: int


class HostLaunchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to launch a kernel of a build; buffers and scalars are the frame's arrays."""

    build: int
    request: LaunchRequest
    arguments: tuple[ArgumentPlace, ...]


class HostLaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Report of a launch; the frame's arrays are those of the question, as the kernel left them."""

    report: LaunchReport


JailQuestion = MachineCodeQuestion | InstanceCodeQuestion | LackingQuestion | HostCodeQuestion | HostLaunchQuestion
JailAnswer = MachineCodeAnswer | LackingAnswer | HostCodeAnswer | HostLaunchAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[JailQuestion] = msgspec.json.Decoder(JailQuestion)
_ANSWERS: msgspec.json.Decoder[JailAnswer] = msgspec.json.Decoder(JailAnswer)


# The jailed process: questions, checked answers, limits of time

_COMPILER_THREADS = 1024  # of compilers in Python, which start some for each core
_FINDINGS = (BackendUnavailable, CompilationFailed, SpecError, VerificationFailed)
_Expected = TypeVar("_Expected", bound=JailAnswer)


class HostCodeRefused(UsageError):
    """Submission with host code that would run when its code for the emulator is loaded."""


class JailCell:
    """Jailed process for a submission, as a context; it may read the folder `root`, with sources and headers.

    With `jailed` False it is a plain process: only for a trusted source. `modes` are the emulator's modes of later
    builds.
    """

    def __init__(self, root: Path, jailed: bool = True, modes: Sequence[str] = (), limits: CellLimits = USUAL) -> None:
        self.root, self.limits = root, limits
        self._prepared = _prepared(modes) if jailed else []  # without a jail the cache has them anyway
        jail = Jail.over(root.resolve(), *self._prepared) if jailed else None
        self._jail = jail if modes or not jail else msgspec.structs.replace(jail, processes=_COMPILER_THREADS)
        self._worker: FrameWorker | None = None
        self._builds: dict[HostCodeQuestion, int | str] = {}  # a number, or the reason of a missing build
        self._lacking: dict[LackingQuestion, dict[str, str]] = {}

    def __enter__(self) -> "JailCell":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the process with all processes that it started."""
        if self._worker:
            self._worker.end()
            self._worker, self._builds = None, {}

    def machine_code(
        self, source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = ()
    ) -> tuple[MachineCodeAnswer, bytes]:
        """Return the machine code of a source; raise CompilationFailed with the compiler's message or its end."""
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
        """Return by entry why the emulator does not claim to run it; each question is sent once."""
        question = LackingQuestion(str(source), tuple(entries), tuple(options))
        if question not in self._lacking:
            self._lacking[question] = self._compiling(question, LackingAnswer).message.lacking
        return self._lacking[question]

    def build(self, source: Path, entries: Sequence[str], mode: str, options: Sequence[str] = ()) -> int:
        """Return the number of the build of a source for the emulator in a mode; it is built, or refused, once.

        BackendUnavailable if the host compiler rejects it: it is no compiler of CUDA, so the submission is not at
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
        """Return the report of a launch and its arrays; raise VerificationFailed if the process dies or hangs."""
        try:
            frame = self._ask(question, arrays, HostLaunchAnswer, self.limits.launch_seconds)
        except TimeoutError:
            self.end()
            limit = self.limits.launch_seconds
            raise VerificationFailed(f"{question.request.entry}: it has not ended in {limit:g} s") from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            raise VerificationFailed(f"{question.request.entry}: {self._last_words()}") from None
        kinds = [(array.shape, array.dtype) for array in arrays]
        if [(array.shape, array.dtype) for array in frame.arrays] != kinds:
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
        frame = worker.channel.receive(_ANSWERS, limit, largest)
        if isinstance(frame.message, Refusal):
            error = frame.message.error()
            if not isinstance(error, _FINDINGS):  # a stranger's code could answer that this machine fails
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
        text = self._worker.last_words()
        self.end()
        return text


def _prepared(modes: Sequence[str]) -> list[Path]:
    """Return the emulator's runtimes and headers, made once outside of the jail by the compiler inside it.

    The compiler in CXX may be another, whose runtimes would not fit.
    """
    try:
        return [path for mode in modes for path in prepared(mode, Jail().variables({}))]
    except BackendUnavailable:
        return [path for mode in modes for path in prepared(mode)]  # the jail has no compiler; a build reports it


# Machine code from the jailed process: a cubin of CUDA C++, or a cubin for each instance in Python

_MOST_INSTANCES = 128


@dataclass(frozen=True)
class CompiledPart:
    """Cubin, the facts that the jailed process reported, and its instance; None for CUDA C++."""

    made: MachineCodeAnswer
    cubin: bytes
    instance: Instance | None = None


def compiled_parts(
    spec: KernelSpec, cases: Sequence[Case], cell: JailCell, architecture: str, device: Device | None = None
) -> Iterator[CompiledPart]:
    """Yield the machine code of the cases' launches on `device`; raise CompilationFailed with a compiler's message.

    A process that has imported a source may answer anything, and so may a process whose compiler runs programs from
    options, as nvcc does. So the card of an instance is checked against its cubin here, and another process lists its
    instructions.
    """
    where = device or Device(compute_capability=int(architecture.rstrip("af")))
    if spec.language == CUDA:
        entries = sorted({entry for case in cases for entry in case.plan.entries(where)})
        made, cubin = cell.machine_code(spec.source_file, entries, architecture, spec.options)
        if toolchain_of(spec.options).compiler == "nvcc":
            cell.end()
            seen = _listed(spec, cell, cubin, tuple(made.symbols.values()), architecture)
            made = msgspec.structs.replace(seen, symbols=made.symbols, log=made.log)
        yield CompiledPart(made, cubin)
        return
    instances = list(dict.fromkeys(instance for case in cases for instance in case.plan.instances(where)))
    if len(instances) > _MOST_INSTANCES:
        needed = count_text(len(instances), "instance")
        raise CompilationFailed(f"its cases need {needed}; at most {_MOST_INSTANCES} are compiled")
    compiled = [(instance, *_carded(spec, cell, instance, architecture)) for instance in instances]
    cell.end()
    for instance, card, cubin in compiled:
        seen = _listed(spec, cell, cubin, (card.entry,), architecture)
        symbols = {str(instance): card.entry}
        yield CompiledPart(msgspec.structs.replace(seen, symbols=symbols, card=card), cubin, instance)


def _listed(
    spec: KernelSpec, cell: JailCell, cubin: bytes, symbols: tuple[str, ...], architecture: str
) -> MachineCodeAnswer:
    """Return the facts that a process of the cell reports about existing machine code."""
    file = spec.source_file.with_name(f"{hashlib.sha256(cubin).hexdigest()[:16]}.cubin")
    file.write_bytes(cubin)
    return cell.machine_code(file, symbols, architecture)[0]


def _carded(spec: KernelSpec, cell: JailCell, instance: Instance, architecture: str) -> tuple[LaunchCard, bytes]:
    made, cubin = cell.instance_code(spec.source_file, spec.language, instance, architecture)
    if made.card is None:
        raise CompilationFailed(f"{instance}: the jailed process gave no launch card")
    check_card(made.card, cubin)
    return made.card, cubin


def contestant_code(parts: Sequence[CompiledPart]) -> ContestantCode:
    """Return machine code for a referee."""
    carded = {
        part.instance: CardedCode(part.cubin, part.made.card) for part in parts if part.instance and part.made.card
    }
    code = ContestantCode(instances=carded) if carded else ContestantCode(parts[0].cubin, parts[0].made.symbols)
    return replace(
        code,
        has_memory_barriers=any(part.made.memory_barriers for part in parts),
        has_shared_memory=any(has_shared_memory(part.cubin) for part in parts),
    )


# The emulator with launches in the jail
#
# Inputs, references and comparisons stay in this process, which never opens the source's include files or libraries.

_TOO_MANY = "too many threads"  # a finding about this machine's memory, not about the kernel


class JailedModule:
    """Source that was built for the CPU in a cell, for the backend's runnables."""

    def __init__(self, cell: JailCell, build: int) -> None:
        self._cell, self._build = cell, build

    def run(self, request: LaunchRequest, arguments: Sequence[object], *, isolate: bool = True) -> LaunchReport:
        """Run a kernel in the cell, always isolated; buffers hold its results afterwards."""
        places, arrays = pack_arguments(arguments)
        request = replace(request, patience=self._cell.limits.patience)
        frame = self._cell.launch(HostLaunchQuestion(self._build, request, places), arrays)
        for sent, result in zip(arrays, frame.arrays, strict=True):
            if sent.size and sent.flags.writeable:
                sent[...] = result
        findings = frame.message.report.findings
        if findings and all(finding.kind == _TOO_MANY for finding in findings):
            raise BackendUnavailable(findings[0].message)
        return frame.message.report

    def set_symbol(self, name: str, value: np.ndarray) -> None:
        """Raise a BackendUnavailable: a cell keeps no variables between launches."""
        raise BackendUnavailable(f"a judge sets no variable of a source: '{name}' has to be an argument of the kernel")

    def close(self) -> None:
        """Do nothing: the cell owns the build."""


class JailedEmulator(EmulatorBackend):
    """Emulator backend that builds and launches in a cell."""

    trusts_source = False

    def __init__(self, cell: JailCell, mode: str = "fast", order: str = "forward", seed: int = 0) -> None:
        super().__init__(mode, order, seed)
        self._cell = cell

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        lacking = self._cell.lacking(case.spec.source_file, case.plan.entries(self.device), case.spec.options)
        if lacking:
            raise BackendUnavailable(next(iter(lacking.values())))
        check_scratch(case, LARGEST_EMULATED)
        return EmulatorRunnable(self, case, inputs)

    def watching(self) -> EmulatorBackend:
        return JailedEmulator(self._cell, "race", self.order)

    def ordered(self, order: str, seed: int) -> EmulatorBackend:
        return JailedEmulator(self._cell, self.mode, order, seed)

    def build(self, source: Path, entries: tuple[str, ...], options: tuple[str, ...]) -> JailedModule:
        lacking = self._cell.lacking(source, entries, options)  # of other cases: `prepare` refused those of this case
        entries = tuple(entry for entry in entries if entry not in lacking)
        return JailedModule(self._cell, self._cell.build(source, entries, self.mode, options))
