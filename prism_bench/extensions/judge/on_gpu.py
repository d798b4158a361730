"""Judgement on a GPU: a submission, the task's own kernel, its peers, and the device's ceilings."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache, partial
from random import Random

from prism_bench.backends import Backend, open_backend
from prism_bench.backends.base import Runnable
from prism_bench.compilation import compile_source
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, ProfilerError
from prism_bench.extensions.judge.referee.client import ContestantCode, KeptRunner, RunnerProcess
from prism_bench.extensions.judge.referee.referee import Turn
from prism_bench.extensions.judge.referee.sanitizer import LaunchWatch, installed_watch
from prism_bench.extensions.judge.referee.session import (
    BEYOND,
    LARGER,
    TIMED,
    Contestant,
    RefereeFindings,
    RefereeSession,
    device_turn,
)
from prism_bench.extensions.judge.task import HIDDEN, judged_time, least_time
from prism_bench.extensions.judge.verdict import JudgedTime
from prism_bench.io.workers import children_of
from prism_bench.run.peers import PEER_TOLERANCE
from prism_bench.run.verification import compare_outputs, complaint, is_compared_on_host, passed
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.workload import Workload

_BUS = "memory bus, by its clock and width"
_ARITHMETIC = "arithmetic, tensor cores at their narrowest type"


def _ceiling_times(cases: Sequence[Case], bandwidth: float, operations: float) -> Iterator[JudgedTime]:
    """Yield the least times of each case at `bandwidth`, in bytes per second, and at `operations`; 0 is unknown."""
    for case in cases:
        for subject, work, rate in (
            (_BUS, case.sizes.bytes_moved, bandwidth),
            (_ARITHMETIC, case.sizes.flops or 0, operations),
        ):
            if work and rate:
                yield least_time(case, subject, work / rate)


class _PeerClock:
    """Clock of peers, in this process and by the backend: peers are the task's, not a stranger's.

    Samples are taken within a `turn` on the device.
    """

    def __init__(self, backend: Backend, turn: Turn = nullcontext, samples: int = 20) -> None:
        self._backend, self._turn, self._samples = backend, turn, samples

    def times(self, case: Case, unjudged: list[str]) -> Iterator[JudgedTime]:
        """Yield the time of each peer that runs here and is right; add the reasons of others to `unjudged`."""
        names = self._backend.peers(case)
        if not names:
            return
        try:
            with self._backend.prepare(case, case.inputs()) as runnable:
                for name in names:
                    try:
                        yield self._time(case, name, runnable)
                    except Exception as error:  # a library may raise anything
                        message = (str(error).strip().splitlines() or [""])[0]
                        unjudged.append(f"{case.name}: peer {name} has no time: {type(error).__name__}: {message}")
        except (PrismBenchError, MemoryError) as error:
            unjudged.append(f"{case.name}: peers have no times: {error}")

    def _time(self, case: Case, name: str, runnable: Runnable) -> JudgedTime:
        with self._backend.prepare_peer(case, name, runnable) as peer:
            peer()
            outputs = peer.arrays([output.name for output in case.spec.outputs])
            tolerance = case.spec.peer_tolerance or PEER_TOLERANCE
            entries = compare_outputs(self._backend, case, peer.inputs, outputs, 0, tolerance=tolerance)
            if not passed(entries):
                raise PrismBenchError(complaint(case, name, entries))
            sample = peer.timers()["cold_time"]()
            with self._turn():
                seconds = [sample().seconds for _ in range(self._samples)]
            peer.confirm()
        return judged_time(case, name, "peer", seconds)


UNWATCHED = "races, accesses out of bounds, reads of memory that nothing wrote"


class OnGpu:
    """GPU for one judgement, opened before it, so that missing parts are known at once.

    `secret` draws seeds and keys. Without `rivals` only the submission is timed, without `peers` only the submission
    and the task's own kernel. `watch` returns the sanitizer. BackendUnavailable if no GPU answers, or if it is in
    quarantine. Judgements of one process may share the runner `trusted`.
    """

    def __init__(
        self,
        session: RefereeSession | None = None,
        secret: int = 0,
        backend: Callable[[], Backend] | None = None,
        *,
        rivals: bool = True,
        watch: Callable[[], LaunchWatch] = installed_watch,
        peers: bool = True,
        trusted: KeptRunner | None = None,
    ) -> None:
        self._rivals, self._watch, self._peers = rivals, cache(watch), peers
        self._backend = backend or cache(partial[Backend](open_backend, "cuda"))
        self.started: set[int] = set()  # by this process itself, for the task's peers
        random = Random(f"GPU {secret}")
        self._session = session or RefereeSession(RunnerProcess, self._backend, random, trusted=trusted)

    @property
    def device(self) -> Device:
        """Device with the limits of launches."""
        return self._session.device

    @property
    def architecture(self) -> str:
        """Architecture that a source is compiled for."""
        return str(self._session.facts.compute_capability)

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Start the process that launches a submission inside a `with` block around `judge`: starting takes seconds."""
        try:
            with self._session.ready(1):
                yield
        finally:
            self.end()

    def end(self) -> None:
        """End the process that reported the device."""
        self._session.end()

    def judge(self, spec: KernelSpec, task: KernelSpec, cases: Sequence[Case], code: ContestantCode) -> RefereeFindings:
        """Judge the submission's cases, and time the task's own kernel and its peers at the same workloads.

        A hidden size at which the task's own kernel is wrong is left out. Right cases are launched under
        compute-sanitizer, even if the emulator watched them: a source can behave differently on a GPU without any sign
        in its text. If no check could see the small cases, the submission has no time.
        """
        session, phase = self._session, self._session.clock.phase
        with phase("GPU"), closing(session):
            if not all(map(is_compared_on_host, cases)):
                with phase("GPU, judge's own context"), suppress(BackendUnavailable):  # else some are not judged
                    self._backend()
            timed = [Case(task, case.workload, case.label) for case in cases if case.label in TIMED]
            right = self._timed_own(task, timed) if self._rivals else {}
            chosen = [case for case in cases if right.get(case.workload, True) or case.label != HIDDEN]
            shown = session.run(Contestant(spec.name, "submission", chosen, code))
            small = [case for case in chosen if case.label not in LARGER]
            self._watch_launches(Contestant(spec.name, "submission", small, code))
            larger = [case for case in shown if case.label in LARGER]
            self._watch_larger(Contestant(spec.name, "submission", larger, code))
            if session.findings.objections:
                session.findings.times.clear()  # only those of the task's own kernel
            elif self._rivals:
                with phase("GPU, peers"), self._starting():
                    self._time_rivals(timed)
        session.findings.seconds = session.clock.seconds
        return session.findings

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Note the processes that libraries start and keep, such as a compiler's, inside a `with` block.

        The environment is restored: PyTorch's compiler leaves names of its folders there.
        """
        before, environment = set(children_of(os.getpid())), dict(os.environ)
        try:
            yield
        finally:
            for name in {*os.environ} - {*environment}:
                del os.environ[name]
            os.environ.update(environment)
        self.started |= set(children_of(os.getpid())) - before

    def _watch_launches(self, contestant: Contestant) -> None:
        """Look for races and invalid accesses in the right cases; remove the times if no check saw all of them."""
        findings = self._session.findings
        if not contestant.cases or findings.objections:
            return
        self._under_sanitizer(self._session.watch, contestant, UNWATCHED)
        if not findings.watched:
            findings.times[:] = [time for time in findings.times if time.kind != "submission"]
            findings.unjudged.append(f"times of the submission: none, since nobody has looked for {UNWATCHED}")

    def _watch_larger(self, contestant: Contestant) -> None:
        """Look for the same at larger sizes, for which a card may launch other kernels."""
        findings = self._session.findings
        is_timed = any(time.kind == "submission" for time in findings.times)
        if contestant.cases and is_timed and not findings.objections:
            self._under_sanitizer(self._session.watch_larger, contestant, f"{BEYOND}: {UNWATCHED}")

    def _under_sanitizer(
        self, watch: Callable[[Contestant, LaunchWatch], None], contestant: Contestant, looked_for: str
    ) -> None:
        try:
            with self._session.clock.phase("GPU, sanitizer"):
                watch(contestant, self._watch())
        except ProfilerError as error:
            self._session.findings.unjudged.append(f"{looked_for}: {error}")

    def _timed_own(self, task: KernelSpec, cases: Sequence[Case]) -> Mapping[Workload, bool]:
        """Time the task's own kernel; return by workload whether it is right, or {} if it cannot be launched."""
        unjudged = self._session.findings.unjudged
        try:
            right = self._session.run(Contestant(task.name, "kernel", cases, self._own_code(task, cases)))
        except CompilationFailed as error:
            unjudged.append(f"the task's own kernel has no time: {error}")
            return {}
        by_workload = {case.workload: any(case is other for other in right) for case in cases}
        unjudged += [
            f"{case.name}: it counts for nothing: the task's own kernel has no time there"
            for case in cases
            if case.label == HIDDEN and not by_workload[case.workload]
        ]
        return by_workload

    def _time_rivals(self, cases: Sequence[Case]) -> None:
        """Add the times of peers and the device's ceilings; list those that could not be measured."""
        findings, facts = self._session.findings, self._session.facts
        findings.times += _ceiling_times(cases, facts.bandwidth, facts.operations)
        if not facts.bandwidth:
            findings.unjudged.append("ceilings: the device does not report its memory's clock and width")
        if not self._peers:
            findings.unjudged.append("times of peers: left out")
            return
        try:
            clock = _PeerClock(self._backend(), lambda: device_turn(facts.uuid))
            peers = [time for case in cases for time in clock.times(case, findings.unjudged)]
        except PrismBenchError as error:
            peers = []
            findings.unjudged.append(f"times of peers: {error}")
        findings.times += peers
        if not peers:
            findings.unjudged.append("times of peers: none of the task's libraries has one here")

    def _own_code(self, task: KernelSpec, cases: Sequence[Case]) -> ContestantCode:
        if task.language != CUDA or task.cards or task.callable is not None:
            raise CompilationFailed(f"{task.name} is written in {task.language}")
        entries = sorted({entry for case in cases for entry in case.plan.entries(self._session.device)})
        compiled = compile_source(task.source_file, tuple(entries), self.architecture, task.options)
        return ContestantCode(compiled.cubin, {entry: compiled.lowered[entry] for entry in entries})
