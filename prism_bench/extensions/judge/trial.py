"""Trial of a submission: its form, its machine code from a jail, its cases on the emulator, and then on a GPU."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter

from prism_bench.backends.numpy_reference import open_backend as open_reference
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.compilation.listing import PROGRAM, tool
from prism_bench.emulator import ORDERS
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, SpecError, VerificationFailed
from prism_bench.extensions.judge.defences import in_force
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.jail_client import (
    USUAL,
    CellLimits,
    HostCodeRefused,
    JailCell,
    JailedEmulator,
    MachineCodeAnswer,
    compiled_parts,
    contestant_code,
)
from prism_bench.extensions.judge.machine_code import form_objections, judged_code, precision_objections
from prism_bench.extensions.judge.on_gpu import UNWATCHED, OnGpu
from prism_bench.extensions.judge.referee.client import ContestantCode
from prism_bench.extensions.judge.referee.session import WHERE, WHERE_UNTIMED, RefereeFindings
from prism_bench.extensions.judge.submission import Submission, check_scratch, identity_of, judged_spec
from prism_bench.extensions.judge.task import (
    EVIDENCE,
    HIDDEN,
    HostState,
    JudgeTask,
    changed_inputs,
    drawn_secret,
    headers_hash,
    hidden_cases,
    is_no_size,
    passing_idlers,
    workplace,
)
from prism_bench.extensions.judge.verdict import CheckedCase, JudgedCode, JudgeVerdict, Objection, Ruling, plain_words
from prism_bench.run.verification import Entry, compare_outputs, complaint, passed, verify_prepared
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.units import count_text

# Checks of cases on the emulator


class CaseCheck:
    """Check of cases with the inputs of `seeds`, and then with one element changed at a place that `secret` draws."""

    def __init__(self, seeds: tuple[int, ...], secret: int | None = None) -> None:
        self._seeds, self._secret = seeds, secret

    def complaint(self, backend: JailedEmulator, case: Case) -> str:
        """Return the fault of the case's outputs; empty if they are right.

        VerificationFailed for a finding that ended a launch, SpecError for a launch that no device takes.
        """
        entries = self.entries(backend, case)
        return "" if passed(entries) else complaint(case, backend.name, entries)

    def entries(self, backend: JailedEmulator, case: Case) -> list[Entry]:
        """Return an entry for each comparison."""
        with backend.prepare(case, case.inputs(self._seeds[0])) as runnable:
            entries = verify_prepared(backend, runnable, self._seeds)
            changed = None if self._secret is None else changed_inputs(case, case.inputs(self._seeds[-1]), self._secret)
            if changed and passed(entries):
                runnable.reset(changed)
                runnable()
                outputs = runnable.arrays(output.name for output in case.spec.outputs)
                entries += compare_outputs(backend, case, changed, outputs, self._seeds[-1])
        return entries


def all_cases(spec: KernelSpec) -> list[Case]:
    """Return the timed cases, edges and golden data."""
    return [*timed_cases(spec, None), *edge_cases(spec, None)]


def _host_cases(spec: KernelSpec) -> list[Case]:
    """Return the cases that a CPU can run in reasonable time: edges, golden data and S0."""
    return [*(case for case in timed_cases(spec, None) if case.label == "S0"), *edge_cases(spec, None)]


# Cases that the emulator does not run

_NAMED = 3  # cases of a reason that are named; others are counted


@dataclass
class SkippedCases:
    """Skipped cases by name, each with the reason of the first pass that skipped it."""

    cases: dict[str, Case] = field(default_factory=dict[str, Case])
    reasons: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, case: Case, reason: str) -> None:
        """Note a case that a pass did not run."""
        self.cases.setdefault(case.name, case)
        self.reasons.setdefault(case.name, reason)

    def words(self, unseen: Sequence[str]) -> list[str]:
        """Return a line for each reason with its cases, and a line for the cases that ran nowhere."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            by_reason.setdefault(reason, []).append(name)
        lines = [f"{_listed(names)}: not judged on the emulator: {why}" for why, names in by_reason.items()]
        return [*lines, *([f"{_listed(unseen)}: not judged anywhere: no GPU launched it either"] if unseen else ())]

    def besides(self, launched: Sequence[Case]) -> list[Case]:
        """Return the skipped cases that are not among the `launched`."""
        names = {case.name for case in launched}
        return [case for name, case in self.cases.items() if name not in names]

    def unseen(self, checked: Sequence[CheckedCase], struck: Collection[str]) -> list[str]:
        """Return the skipped cases that no GPU verified, without cases that do not count."""
        shown = {check.case for check in checked if check.right and check.where in (WHERE, WHERE_UNTIMED)}
        return [name for name in self.cases if name not in shown and name not in struck]


def _listed(names: Sequence[str]) -> str:
    more = f" and {count_text(len(names) - _NAMED, 'other case')}" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# The trial

MODES = ("fast", "race")
_PASSES = (*(("fast", order) for order in ORDERS), ("race", "forward"))


@dataclass
class SubmissionTrial:
    """Trial of a submission. `report` is called with the name of each step; `secret` draws hidden seeds and sizes.

    With a `gpu`, a submission that is right on the emulator is launched and timed there.
    """

    submission: Submission
    task: JudgeTask
    architectures: Sequence[str] = ("90",)
    jailed: bool = True
    report: Callable[[str], None] = lambda step: None
    limits: CellLimits = USUAL
    secret: int = field(default_factory=drawn_secret)
    objections: list[Objection] = field(default_factory=list[Objection])
    checked: list[CheckedCase] = field(default_factory=list[CheckedCase])
    drawn: list[str] = field(default_factory=list[str])
    struck: dict[str, str] = field(default_factory=dict[str, str])
    unjudged: list[str] = field(default_factory=list[str])
    skipped: SkippedCases = field(default_factory=SkippedCases)
    code: list[JudgedCode] = field(default_factory=list[JudgedCode])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    gpu: OnGpu | None = None
    built: dict[str, ContestantCode] = field(default_factory=dict[str, ContestantCode])
    timed: RefereeFindings | None = None

    def verdict(self) -> JudgeVerdict:
        """Judge form, machine code and outputs, in this order; stop at the first objection."""
        with ExitStack() as ending:
            if self.gpu:
                ending.callback(self.gpu.end)
            jail = str(jail_maker()) if self.jailed else "none: the source is trusted"
            before = HostState.now()
            moved, root = ending.enter_context(workplace(self.submission, self.task, self.yard()))
            with self._step("card"):
                spec = self.spec(moved)
            if spec is not None:
                with self.open_cell(root) as cell, ExitStack() as ahead:
                    for step in (self._compile, self._strike, partial(self._start, ahead), self._run, self._referee):
                        if not self.objections:
                            step(spec, cell)
        struck = tuple(f"{name}: {why}" for name, why in self.struck.items())
        source, card = identity_of(self.submission)
        self.unjudged += self.skipped.words(self._unseen())
        evidence = dict(self.timed.evidence) if self.timed else {}
        evidence[EVIDENCE] = self._host_evidence(before)
        return JudgeVerdict(
            submission=self.submission.name,
            task=self.task.spec.name,
            ruling=self._ruling(),
            objections=tuple(self.objections),
            checked=tuple(self.checked),
            struck=struck,
            unjudged=tuple(self.unjudged),
            code=tuple(self.code),
            source_sha256=source,
            card_sha256=card,
            jail=jail,
            secret=self.secret,
            hidden=tuple(dict.fromkeys(self.drawn)),
            headers_sha256=headers_hash(self.task.catalogue.folder),
            task_sha256=self.task.hash,
            defences=in_force(self.timed and self.timed.watched, is_emulated=self.is_emulated),
            seconds=self.seconds,
            times=tuple(self.timed.times) if self.timed else (),
            evidence=evidence,
        )

    def yard(self) -> Path | None:
        """Return the folder for the submission's copy; None for the system's own."""
        return None

    def open_cell(self, root: Path) -> AbstractContextManager[JailCell]:
        """Return the jailed process that reads the folder."""
        return JailCell(root, self.jailed, MODES if self.is_emulated else (), self.limits)

    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of the inputs, a launch each."""
        rng = Random(self.secret)
        return rng.getrandbits(31), rng.getrandbits(31)

    def passes(self) -> Sequence[tuple[str, str]]:
        """Return the modes of the emulator, each with an order of threads."""
        return _PASSES

    def hidden(self, known: Sequence[Case]) -> list[Case]:
        """Return the task at hidden sizes, drawn from those of the `known` cases."""
        return hidden_cases(self.task.spec, known, self.secret)

    def emulator(self, cell: JailCell, mode: str, order: str) -> JailedEmulator:
        """Return the backend of a pass."""
        return JailedEmulator(cell, mode, order)

    def case_check(self, *, changed: bool) -> CaseCheck:
        """Return the check of a case; with `changed`, it also runs with one element changed."""
        return CaseCheck(self.seeds(), self.secret if changed else None)

    def gpu_cases(self, spec: KernelSpec) -> list[Case]:
        """Return the cases for a GPU. They include edges and golden data: a source can behave differently there."""
        timed = timed_cases(spec, None)
        return [*edge_cases(spec, None), *timed, *self.drawn_among(spec, timed_cases(self.task.spec, None))]

    def spec(self, submission: Submission) -> KernelSpec | None:
        """Return the submission's spec; None, with an objection, if its card does not fit the task."""
        try:
            spec = judged_spec(self.task.spec, submission)
            for case in all_cases(spec):
                _ = case.plan.steps(Device()), check_scratch(case)
        except PrismBenchError as error:
            self.objections.append(Objection("card", str(error)))
            return None
        return spec

    def form(self, made: MachineCodeAnswer, cubin: bytes) -> list[Objection]:
        """Return the objections to form and precision of machine code."""
        objections = list(
            form_objections(cubin, list(made.symbols.values()), compiled_here=not self.submission.is_cubin)
        )
        least = self.task.spec.least_precision
        if least and made.precisions is None and tool(PROGRAM) is None:
            self.unjudged.append("precision: no nvdisasm is installed that lists the instructions")
        elif least:
            objections += precision_objections(made.precisions, least)
        return objections

    def idlers(self, case: Case) -> tuple[str, ...]:
        """Return the kernels without work that a case accepts."""
        return passing_idlers(open_reference(), case, self.seeds()[0])

    def _compile(self, spec: KernelSpec, cell: JailCell) -> None:
        """Compile for every architecture in the jail, and check the form of the machine code."""
        for architecture in self.architectures:
            device = self.gpu.device if self.gpu and self.gpu.architecture == architecture else None
            try:
                with self._step(f"machine code for sm_{architecture}"):
                    cases = [*all_cases(spec), *(self._launchable(spec) if device else ())]
                    parts = list(compiled_parts(spec, cases, cell, architecture, device))
            except (CompilationFailed, SpecError) as error:
                self.objections.append(Objection("compiler", plain_words(error, spec.source_file)))
                return
            except BackendUnavailable as error:
                self.unjudged.append(f"machine code for sm_{architecture}: {plain_words(error, spec.source_file)}")
                continue
            self.objections += [objection for part in parts for objection in self.form(part.made, part.cubin)]
            if self.objections or not parts:
                return
            self.code += [judged_code(architecture, part.made, part.cubin) for part in parts]
            self.built[architecture] = contestant_code(parts)

    def _strike(self, spec: KernelSpec, cell: JailCell) -> None:
        """Strike the cases that accept a kernel without work; object to a task with such a timed case."""
        with self._step("kernels that do no work"):
            for case in _host_cases(spec):
                idle = self.idlers(case)
                if not idle:
                    continue
                reason = f"a kernel that leaves {idle[0]} would pass"
                if case.label == "S0":
                    self.objections.append(Objection("degenerate task", reason, case.name))
                else:
                    self.struck[case.name] = reason

    def _start(self, ahead: ExitStack, spec: KernelSpec, cell: JailCell) -> None:
        """Start the GPU's processes before the emulator works: they take seconds."""
        if self.gpu is not None and self.gpu.architecture in self.built:
            ahead.enter_context(self.gpu.ready())

    def _run(self, spec: KernelSpec, cell: JailCell) -> None:
        if not self.is_emulated:
            return
        cases = [case for case in _host_cases(spec) if case.name not in self.struck]
        hidden = self.drawn_among(spec, _host_cases(self.task.spec))
        for index, (mode, order) in enumerate(self.passes()):
            where = f"emulator, {mode}, {order}"
            with self._step(where):
                for case in (*cases, *(hidden if index == 0 or mode == "race" else ())):
                    check = self.case_check(changed=index == 0)
                    if not self._check(check, self.emulator(cell, mode, order), case, where):
                        return  # a process that died or never ended costs seconds, again in each case
            if self.objections:
                return

    def _referee(self, spec: KernelSpec, cell: JailCell) -> None:
        """Launch and time the cases that count on the GPU, if there is a GPU, and take over its findings."""
        if self.gpu is None or self.gpu.architecture not in self.built:
            self.unjudged.append("times, and outputs on a GPU: --gpu launches it there")
            if self.checked:
                self.unjudged.append(
                    "its code for a GPU, which may be another than the emulator's: --gpu launches and watches it there"
                )
            if not self.is_emulated:
                kind = "machine code" if self.submission.is_cubin else f"a kernel in {self.submission.language}"
                self.unjudged.append(f"{UNWATCHED}: only a GPU runs {kind}")
            return
        cell.end()  # a stranger's code that still runs there would disturb times, also those of the task's kernel
        with self._step("cases for the GPU"):
            cases = [case for case in self.gpu_cases(spec) if case.name not in self.struck]
            cases += self._skipped_cases(cases)
            code = self.built[self.gpu.architecture]
        self.report("GPU")
        self.timed = self.gpu.judge(spec, self.task.spec, cases, code)
        self.seconds |= self.timed.seconds
        self.checked += self.timed.checked
        self.objections += self.timed.objections
        self.unjudged += self.timed.unjudged

    def _host_evidence(self, before: HostState) -> str:
        """Return a text about changes of this process, without those from its own work on a GPU."""
        now = HostState.now()
        if self.gpu is None:
            return now.evidence(before)
        now = replace(now, processes=(now.processes - self.gpu.started) | before.processes)  # others may end
        return now.evidence(before, leaving_out=("descriptors",))

    @property
    def is_emulated(self) -> bool:
        """Whether the emulator runs the submission, and watches its accesses."""
        return self.submission.language == CUDA and not self.submission.is_cubin

    def _launchable(self, spec: KernelSpec) -> list[Case]:
        """Return all cases that may be launched on a GPU: its own, and those that the emulator might skip."""
        drawn = self.drawn_among(spec, _host_cases(self.task.spec)) if self.is_emulated else ()
        return [*self.gpu_cases(spec), *drawn]

    def _skipped_cases(self, launched: Sequence[Case]) -> list[Case]:
        """Return the skipped cases that are not among the `launched`, without sizes that do not count."""
        cases = [case for case in self.skipped.besides(launched) if case.name not in self.struck]
        for case in cases:
            if case.label == HIDDEN and is_no_size(self.task.spec, case, self.seeds()):
                self.struck[case.name] = "the task's own kernel is wrong there, too"
        return [Case(case.spec, case.workload, "edge") for case in cases if case.name not in self.struck]

    def drawn_among(self, spec: KernelSpec, known: Sequence[Case]) -> list[Case]:
        """Return the submission at sizes drawn from those of the `known` cases, and note them for the verdict."""
        cases = [Case(spec, case.workload, case.label) for case in self.hidden(known)]
        self.drawn += [case.name for case in cases]
        return cases

    def _check(self, check: CaseCheck, backend: JailedEmulator, case: Case, where: str) -> bool:
        """Check a case; return whether its launches ended."""
        ended = True
        try:
            fault = check.complaint(backend, case)
        except BackendUnavailable as error:
            self.skipped.add(case, plain_words(error, case.spec.source_file))
            return True
        except HostCodeRefused as error:
            self.objections.append(Objection("form", plain_words(error, case.spec.source_file)))
            return False
        except (VerificationFailed, CompilationFailed, SpecError) as error:
            fault, ended = plain_words(error, case.spec.source_file), False
        if fault and case.label == HIDDEN and is_no_size(self.task.spec, case, self.seeds()):
            self.struck[case.name] = "the task's own kernel is wrong there, too"
            return ended
        self.checked.append(CheckedCase(case.name, where, not fault, fault))
        if fault:
            self.objections.append(Objection("outputs", fault, case.name))
        return ended

    def _ruling(self) -> Ruling:
        if any(objection.rule == "outputs" for objection in self.objections):
            return "wrong"
        if self.objections:
            return "refused"
        launched = self.gpu is None or (self.timed is not None and not self.timed.untimed())
        return "right" if self.checked and launched and not self._unseen() else "unchecked"

    def _unseen(self) -> list[str]:
        return self.skipped.unseen(self.checked, self.struck)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Report a step, and note its seconds."""
        self.report(name)
        begin = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(perf_counter() - begin, 3)
