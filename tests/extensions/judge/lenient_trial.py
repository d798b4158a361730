"""A trial that leaves defences out, to show what passes then. It exists in the tests alone: the judge has no switch."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from prism_bench.backends.base import HostGuard, Runnable
from prism_bench.backends.emulator import EmulatorBackend, EmulatorRunnable
from prism_bench.emulator.library import LaunchRequest
from prism_bench.emulator.report import LaunchReport
from prism_bench.errors import SpecError
from prism_bench.extensions.judge.defences import Defence
from prism_bench.extensions.judge.jail_client import JailCell, JailedEmulator, JailedModule, MachineCodeAnswer
from prism_bench.extensions.judge.submission import CardFunction, Submission
from prism_bench.extensions.judge.trial import MODES, CaseCheck, SubmissionTrial
from prism_bench.extensions.judge.verdict import Objection
from prism_bench.run.verification import Entry as Comparison
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import Array, KernelSpec
from prism_bench.spec.tolerance import absolute

_UNSEEN: Mapping[Defence, str] = {
    "races": "race", "bounds of buffers": "out of bounds", "memory that nothing wrote": "unwritten shared read",
    "launch errors": "trap",
}  # fmt: skip


@dataclass
class LenientTrial(SubmissionTrial):
    """A trial `without` some defences, in the process of `cell` where it is given one, below the folder `ground`.

    `memory` is what outputs hold where stale memory is no concern: the reference's results, or zeros.
    """

    without: Collection[Defence] = ()
    memory: str = "reference"
    cell: JailCell | None = None
    ground: Path | None = None
    cells: list["WatchedCell"] = field(default_factory=list)

    def yard(self) -> Path | None:
        return self.ground

    def open_cell(self, root: Path) -> AbstractContextManager[JailCell]:
        if self.cell is not None:
            return nullcontext(self.cell)
        modes = () if self.submission.is_cubin else MODES
        self.cells.append(WatchedCell(root, self.jailed, modes, self.limits))
        return self.cells[-1]

    def seeds(self) -> tuple[int, ...]:
        first, second = (0, 1) if "hidden seeds" in self.without else super().seeds()
        if "every launch" in self.without:
            return (first,)
        return (first, first if "new inputs" in self.without else second)

    def passes(self) -> Sequence[tuple[str, str]]:
        return super().passes()[: 1 if {"races", "every launch"} & set(self.without) else None]

    def hidden(self, known: Sequence[Case]) -> list[Case]:
        return [] if {"hidden sizes", "every launch"} & set(self.without) else super().hidden(known)

    def case_check(self, *, changed: bool) -> CaseCheck:
        overlooked = {"changed element", "new inputs", "every launch"} & set(self.without)
        return LenientCheck(self.seeds(), self.secret if changed and not overlooked else None, self.without)

    def emulator(self, cell: JailCell, mode: str, order: str) -> JailedEmulator:
        return LenientEmulator(cell, mode, order, self)

    def spec(self, submission: Submission) -> KernelSpec | None:
        sizes = submission.card.sizes if "bounds of the card" in self.without else {}
        if sizes:
            submission = msgspec.structs.replace(submission, card=msgspec.structs.replace(submission.card, sizes={}))
        spec = super().spec(submission)
        if spec and sizes:
            own = {name: CardFunction((), lambda _, size=size: size.value) for name, size in sizes.items()}
            spec = replace(spec, derived={**spec.derived, **own})
        return replace(spec, tolerance=absolute(0.01)) if spec and "relative tolerance" in self.without else spec

    def form(self, made: MachineCodeAnswer, cubin: bytes) -> list[Objection]:
        rules = {"form of machine code": ("form", "size"), "precision": ("precision",)}
        passed = {rule for one in self.without for rule in rules.get(one, ())}
        return [one for one in super().form(made, cubin) if one.rule not in passed]

    def idlers(self, case: Case) -> tuple[str, ...]:
        return () if "degenerate tasks" in self.without and case.sizes.allocated_bytes else super().idlers(case)


class LenientCheck(CaseCheck):
    """A check that overlooks changed inputs, or launches that no device takes."""

    def __init__(self, seeds: tuple[int, ...], secret: int | None, without: Collection[Defence]) -> None:
        super().__init__(seeds, secret)
        self._without = without

    def complaint(self, backend: JailedEmulator, case: Case) -> str:
        try:
            return super().complaint(backend, case)
        except SpecError as error:
            return "" if "launch errors" in self._without else str(error)

    def entries(self, backend: JailedEmulator, case: Case) -> list[Comparison]:
        outputs = {one.name for one in case.spec.outputs}
        overlooks = "untouched inputs" in self._without
        return [one for one in super().entries(backend, case) if not overlooks or one["output"] in outputs]


class LenientEmulator(JailedEmulator):
    """An emulator whose findings are overlooked, or whose memory holds what another launch left there."""

    def __init__(self, cell: JailCell, mode: str, order: str, trial: LenientTrial) -> None:
        super().__init__(cell, mode, order)
        self._trial, self._own_cell = trial, cell

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        if "stale memory" not in self._trial.without:
            return super().prepare(case, inputs)
        return (ClearedRunnable if self._trial.memory == "zeros" else StaleRunnable)(self, case, inputs)

    def watching(self) -> EmulatorBackend:
        return LenientEmulator(self._own_cell, "race", self.order, self._trial)

    def build(self, source: Path, entries: tuple[str, ...], options: tuple[str, ...]) -> "LenientModule":
        unseen = {_UNSEEN[one] for one in self._trial.without if one in _UNSEEN}
        return LenientModule(self._own_cell, self._own_cell.build(source, entries, self.mode, options), unseen)


class LenientModule(JailedModule):
    """A build some of whose findings are overlooked."""

    def __init__(self, cell: JailCell, build: int, unseen: Collection[str]) -> None:
        super().__init__(cell, build)
        self._unseen = unseen

    def run(self, request: LaunchRequest, arguments: Sequence[object], *, isolate: bool = True) -> LaunchReport:
        report = super().run(request, arguments, isolate=isolate)
        return replace(report, findings=tuple(one for one in report.findings if one.kind not in self._unseen))


class StaleRunnable(EmulatorRunnable):
    """A case whose outputs hold the reference's results before each launch, as freed memory does."""

    def laid_out(self, array: Array, inputs: Mapping[str, InputArray]) -> np.ndarray:
        return self.left_behind(array, inputs) if array.writes and not array.reads else super().laid_out(array, inputs)

    def left_behind(self, array: Array, inputs: Mapping[str, InputArray]) -> np.ndarray:
        expected = self.case.correctness.expected({name: one.on(np) for name, one in inputs.items()}, np, None)
        return np.asarray(expected[array.name]).astype(array.dtype).reshape(self.case.sizes.shape(array.name))

    def guard(self, key: int) -> HostGuard:
        return HostGuard({}, key=key)


class ClearedRunnable(StaleRunnable):
    """A case whose outputs hold zeros before each launch, as memory of an allocator that clears it does."""

    def left_behind(self, array: Array, inputs: Mapping[str, InputArray]) -> np.ndarray:
        return np.zeros(self.case.sizes.shape(array.name), array.dtype)


class WatchedCell(JailCell):
    """One jailed process that a test may end."""

    @property
    def builds(self) -> int:
        """How many sources it has compiled for the emulator."""
        return len(self._builds)

    def kill(self) -> None:
        """Kill the process while another thread waits for its answer."""
        if self._worker:
            self._worker.kill()


class SharedCell(JailCell):
    """One jailed process for many submissions that leave it alone; it compiles the same text once."""

    def __init__(self, root: Path, jailed: bool, modes: Sequence[str]) -> None:
        super().__init__(root, jailed, modes)
        self._compiled: dict[tuple[object, ...], tuple[MachineCodeAnswer, bytes]] = {}

    def machine_code(
        self, source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = ()
    ) -> tuple[MachineCodeAnswer, bytes]:
        key = source.read_bytes(), tuple(entries), architecture, tuple(options)
        if key not in self._compiled:
            self._compiled[key] = super().machine_code(source, entries, architecture, options)
        return self._compiled[key]

    def build(self, source: Path, entries: Sequence[str], mode: str, options: Sequence[str] = ()) -> int:
        content = source.read_text()
        if "__device__" in content:  # its variables must be as they were at first
            return super().build(source, entries, mode, options)
        kept = source.parent.parent.parent / f"{abs(hash(content))}.cu"
        kept.write_text(content)
        return super().build(kept, entries, mode, options)


@contextmanager
def shared_cell(ground: Path, modes: Sequence[str]) -> Iterator[SharedCell]:
    """Open a cell for submissions below a folder."""
    ground.chmod(0o755)  # the jail's user is another one
    with SharedCell(ground, True, modes) as cell:
        yield cell
