"""Session on a GPU: the machine's state before, every case by the referee, and the machine's state afterwards."""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

from prism_bench.backends import Backend
from prism_bench.backends.numpy_reference import open_backend as open_numpy
from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError, VerificationFailed
from prism_bench.extensions.judge.machine_code import named
from prism_bench.extensions.judge.referee.client import (
    ContestantCode,
    KeptRunner,
    ReadyRunners,
    Runner,
    RunnerClient,
    case_plan,
    check_parameters,
)
from prism_bench.extensions.judge.referee.messages import FactsAnswer
from prism_bench.extensions.judge.referee.referee import (
    DeviceTurns,
    PhaseClock,
    Referee,
    RefereedCase,
    RefereedTimes,
    RefereeRules,
    launch_inputs,
    repeated_inputs,
)
from prism_bench.extensions.judge.referee.sanitizer import LaunchWatch, WatchFindings
from prism_bench.extensions.judge.task import HIDDEN, judged_time
from prism_bench.extensions.judge.verdict import CheckedCase, JudgedTime, Objection
from prism_bench.io.files import cache_folder, lock, writable_cache, write_atomically
from prism_bench.measure.plausibility import LaunchWork
from prism_bench.monitor.nvml import DeviceLost, by_uuid, devices, opened
from prism_bench.monitor.probe import DeviceReading, Probe
from prism_bench.run.verification import compare_outputs, compared_in, complaint, is_compared_on_host, passed
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import AnyArray, ArrayModule, InputArray
from prism_bench.units import bytes_text, time_text

# State of the machine before and after a stranger's kernel

COUNTERS = ("ecc_uncorrected", "ecc_corrected", "rows_remapped")
_SETTINGS = ("max_sm_clock", "memory_total")
_MEMORY_BYTES = 256 << 20  # that the driver may take for itself meanwhile
_SLOWER, _SLOWER_SECONDS = 1.5, 5e-6  # factor, and further seconds, that an empty kernel may take longer
# The list of contexts is late: memory is taken before a context appears, and given back before it disappears.
_SETTLING_READINGS, SETTLING_SECONDS = 20, 0.25


@dataclass(frozen=True)
class MachineState:
    """State of a device between two kernels: NVML's `values`, and the results of canary kernels in a trusted process.

    `unowned` are the bytes of memory in use that no process holds, with old drivers also the reserved bytes. A device
    in a container may list no processes at all (`lists_processes`). `lost` is the reason of a missing answer.
    """

    values: Mapping[str, float] = field(default_factory=dict[str, float])
    unowned: float = 0.0
    lists_processes: bool = True
    canary: int = 0
    overhead: float = 0.0
    lost: str = ""

    def complaints(self, before: "MachineState") -> list[str]:
        """Return the differences from the state before as texts."""
        if self.lost:
            return [f"the device does not answer: {self.lost}"]
        changes: list[str] = []
        for name, now in self.values.items():
            then, title = before.values.get(name, now), name.replace("_", " ")
            if name in COUNTERS and now > then:
                changes.append(f"{title} rose from {then:.0f} to {now:.0f}")
            if name in _SETTINGS and now != then:
                changes.append(f"{title} is {now:.4g}, it was {then:.4g}")
        if self.lists_processes and self.unowned - before.unowned > _MEMORY_BYTES:
            changes.append(f"{bytes_text(int(self.unowned - before.unowned))} of its memory are held by no process")
        if self.canary != before.canary:
            changes.append("a kernel of known outcome has another one")
        if self.overhead > before.overhead * _SLOWER + _SLOWER_SECONDS:
            changes.append(f"an empty kernel takes {time_text(self.overhead)}, it took {time_text(before.overhead)}")
        return changes


def machine_state(facts: FactsAnswer) -> MachineState:
    """Return the state of a device whose facts were reported by a runner of trusted code."""
    try:
        with opened() as nvml:
            device = by_uuid(devices(nvml), facts.uuid)
            if device is None:
                return MachineState(canary=facts.canary, overhead=facts.overhead)
            reading = _settled(Probe(nvml, device))
            listed = bool(reading.processes)
            return MachineState(dict(reading.values), _unowned(reading), listed, facts.canary, facts.overhead)
    except BackendUnavailable:
        return MachineState(canary=facts.canary, overhead=facts.overhead)
    except DeviceLost as error:
        return MachineState(lost=str(error))


def _settled(probe: Probe) -> DeviceReading:
    """Return the first reading in which processes hold the memory in use, else the last reading.

    With drivers that count reserved memory as used (`monitor.probe`) it is the last reading.
    """
    reading = probe.read(time.perf_counter())
    for _ in range(_SETTLING_READINGS):
        if not reading.processes or _unowned(reading) <= _MEMORY_BYTES:
            break
        time.sleep(SETTLING_SECONDS)
        reading = probe.read(time.perf_counter())
    return reading


def _unowned(reading: DeviceReading) -> float:
    """Return the memory in use that no process holds; 0 if the memory of a process is unknown.

    Memory of processes does not count: on a shared machine others come and go.
    """
    sizes = [process.memory for process in reading.processes or ()]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return 0.0
    return max(0.0, reading.values.get("memory_used", 0.0) - sum(known))


@contextmanager
def device_turn(uuid: str) -> Iterator[None]:
    """Hold the device within a `with` block; other judgements of this user wait for their turn.

    A waiting judgement is next: a judgement that takes turn after turn has to wait behind it.
    """
    folder = writable_cache("turns")
    with _file_of(uuid, folder).open("a") as file:
        with _file_of(f"{uuid}-next", folder).open("a") as following:
            lock(following.fileno())
            lock(file.fileno())
        yield


def quarantine_file(uuid: str) -> Path:
    """Return the file that excludes a device from judgements; deleting it releases the device."""
    return _file_of(uuid, cache_folder("quarantine"))


def _file_of(uuid: str, folder: Path) -> Path:
    name = uuid if re.fullmatch(r"[\w-]{1,80}", uuid) else hashlib.sha256(uuid.encode()).hexdigest()[:16]
    return folder / f"{name}.txt"


def quarantine(uuid: str, reason: str) -> Path:
    """Exclude a device from judgements, with the reason; return the file."""
    path = quarantine_file(uuid)
    write_atomically(path, f"{reason}\n".encode())
    return path


def _refuse_quarantined(uuid: str) -> None:
    path = quarantine_file(uuid)
    if path.is_file():
        reason = path.read_text(errors="replace").strip()
        raise BackendUnavailable(f"the device is in quarantine: {reason}; delete {path} once it has been reset")


# The session

WHERE, WHERE_UNTIMED = "cuda, timed launches", "cuda"
BEYOND = "sizes beyond S0"
LARGER = ("S1", "S2", HIDDEN)  # labels of cases that only a GPU runs
TIMED = ("S0", *LARGER)  # edges and golden data are only compared
_AGAIN = 2  # further looks at a changed machine: a neighbour's work also slows canaries, and ends
_Kind = Literal["submission", "kernel"]


@dataclass(frozen=True)
class Contestant:
    """Machine code to be timed, of the submission or of the task's own kernel, with its cases."""

    name: str
    kind: _Kind
    cases: Sequence[Case]
    code: ContestantCode


@dataclass
class RefereeFindings:
    """Findings of the referee as parts of a verdict, and the seconds of its steps.

    `watched` are the sanitizer's checks that saw every case.
    """

    objections: list[Objection] = field(default_factory=list[Objection])
    checked: list[CheckedCase] = field(default_factory=list[CheckedCase])
    times: list[JudgedTime] = field(default_factory=list[JudgedTime])
    unjudged: list[str] = field(default_factory=list[str])
    evidence: dict[str, str] = field(default_factory=dict[str, str])
    watched: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def untimed(self) -> list[str]:
        """Return the cases with a time of the task's own kernel but not of the submission."""
        timed = {time.case for time in self.times if time.kind == "submission"}
        return [time.case for time in self.times if time.kind == "kernel" and time.case not in timed]


class RefereeSession:
    """Session that runs contestants one after the other. `reference` evaluates the task's reference, in this process.

    `start` starts a runner process, `clock` has the seconds of each step. The runner `trusted`, which sessions may
    share, reports the state of the machine and runs the task's own kernel, never a submission. BackendUnavailable
    without a device, or if it is in quarantine.
    """

    def __init__(
        self,
        start: Callable[[], Runner],
        reference: Callable[[], Backend],
        random: Random,
        rules: RefereeRules | None = None,
        state: Callable[[FactsAnswer], MachineState] = machine_state,
        trusted: KeptRunner | None = None,
    ) -> None:
        self._start, self._reference, self._random = start, reference, random
        self._rules, self._state = rules or RefereeRules(), state
        self._trusted, self._is_shared = trusted or KeptRunner(start), trusted is not None
        self.findings, self.clock = RefereeFindings(), PhaseClock()
        try:
            with self.clock.phase("GPU, machine before"):
                self.facts = self._asked()
                _refuse_quarantined(self.facts.uuid)
                self._before = state(self.facts)
        except BaseException:
            self.end()
            raise
        self.findings.evidence["device"] = f"{self.facts.device} {self.facts.uuid}".strip()

    @property
    def device(self) -> Device:
        """Device with the limits of launches."""
        return Device(self.facts.sm_count, self.facts.max_shared_bytes, self.facts.compute_capability)

    @contextmanager
    def ready(self, count: int) -> Iterator[None]:
        """Start `count` runners at once, inside a `with` block: a runner answers some seconds after its start."""
        start = self._start
        try:
            with ReadyRunners(start, count) as self._start:
                yield
        finally:
            self._start = start

    def run(self, contestant: Contestant) -> list[Case]:
        """Judge and time every case of a contestant; return the cases that were right.

        A submission's first case with a complaint is its last. The task's own kernel is trusted: no other process
        repeats its launches, and of large outputs only those of a block's first launch are compared.
        """
        right: list[Case] = []
        rules = self._rules if contestant.kind == "submission" else replace(self._rules, repeats=False, whole=0.0)
        start = self._start if contestant.kind == "submission" else lambda: self._trusted
        whose = f"GPU, {contestant.kind}"
        turns = DeviceTurns(lambda: device_turn(self.facts.uuid), self.clock, whose)
        with self.clock.phase(whose), Referee(start, self._random, rules, turns) as referee:
            for case in contestant.cases:
                times = self._judged(referee, contestant, case)
                if times and not times.complaints:
                    right.append(case)
                elif contestant.kind == "submission" and self.findings.objections:
                    break
        return right

    def watch(self, contestant: Contestant, watch: LaunchWatch) -> None:
        """Launch every case of a submission once more under a sanitizer's checks, and note their findings."""
        findings = self._watched(contestant, watch)
        self.findings.unjudged += findings.unjudged
        self.findings.watched += findings.complete

    def watch_larger(self, contestant: Contestant, watch: LaunchWatch) -> None:
        """Do the same with sizes beyond S0, the smallest first, within less time; list the cases that are left out."""
        ordered = sorted(contestant.cases, key=lambda case: (case.sizes.allocated_bytes, case.sizes.flops or 0))
        findings = self._watched(replace(contestant, cases=ordered), watch, larger=True)
        self.findings.unjudged += [f"{BEYOND}: {text}" for text in findings.unjudged]

    def _watched(self, contestant: Contestant, watch: LaunchWatch, *, larger: bool = False) -> WatchFindings:
        refereed = [launched for case in contestant.cases if (launched := self._launchable(case, contestant.code))]
        if not refereed:
            return WatchFindings()
        seed, turn = self._random.getrandbits(31), lambda: device_turn(self.facts.uuid)
        barriers = contestant.code.has_memory_barriers
        needless = contestant.code.needless_checks(case.plan for case in refereed)
        findings = watch.watched(refereed, seed, turn, has_memory_barriers=barriers, larger=larger, needless=needless)
        if findings.complete and needless:
            findings.complete += needless
            self.findings.evidence["needless checks"] = f"{', '.join(needless)}: the machine code has nothing for them"
        self.findings.checked += findings.checked
        self.findings.objections += findings.objections
        return findings

    def _launchable(self, case: Case, code: ContestantCode) -> RefereedCase | None:
        """Return the launches of a case; None if it launches nothing or cannot: `run` has noted the reason."""
        try:
            refereed = self._refereed(case, code)
        except (SpecError, BackendUnavailable):
            return None
        return refereed if refereed.plan.steps else None

    def _judged(self, referee: Referee, contestant: Contestant, case: Case) -> RefereedTimes | None:
        """Return the referee's results of a case, and note them; None if it cannot be launched."""
        try:
            refereed = self._refereed(case, contestant.code)
            if not refereed.plan.steps:
                self._note_nothing(contestant, case, refereed)
                return None
            self._note_repetition(contestant, case)
            times = referee.judge(refereed)
        except SpecError as error:
            if contestant.kind == "kernel":
                self.findings.unjudged.append(f"{case.name}: the task's own kernel has no time: {error}")
            else:
                self.findings.objections.append(Objection("form", str(error), case.name))
            return None
        except BackendUnavailable as error:
            self.findings.unjudged.append(f"{case.name} on the GPU: {error}")
            return None
        self._note(contestant, case, times)
        return times

    def close(self) -> None:
        """Compare the machine with its state before; put the device into quarantine if it differs each time."""
        with self.clock.phase("GPU, machine afterwards"):
            complaints = self._complaints()
            for _ in range(_AGAIN if complaints else 0):
                self._trusted.close()  # a fresh process looks again
                complaints = complaints and self._complaints()
            self.end()
        if complaints:
            path = quarantine(self.facts.uuid, "; ".join(complaints))
            self.findings.objections += [Objection("state of the machine", text) for text in complaints]
            self.findings.evidence["quarantine"] = f"{'; '.join(complaints)} ({path})"
        else:
            self.findings.evidence["machine afterwards"] = "as before: errors, clocks, memory, canaries"

    def end(self) -> None:
        """End the trusted runner, unless other sessions share it."""
        if not self._is_shared:
            self._trusted.close()

    def _complaints(self) -> list[str]:
        """Return the changes of the machine as texts."""
        try:
            return self._state(self._asked()).complaints(self._before)
        except PrismBenchError as error:
            return [f"the device does not answer: {error}"]

    def _asked(self) -> FactsAnswer:
        """Return the facts that the trusted runner reports in its turn."""
        with RunnerClient(self._trusted, self._rules.launch_seconds) as client:
            try:
                with device_turn(client.facts().uuid):
                    return client.facts()
            except VerificationFailed as error:
                raise BackendUnavailable(f"no runner for the GPU: {error}") from None

    def _refereed(self, case: Case, code: ContestantCode) -> RefereedCase:
        reference = open_numpy if is_compared_on_host(case) else self._reference  # a small case opens no context

        def fault(seed: int, inputs: Mapping[str, InputArray], outputs: Mapping[str, AnyArray]) -> str:
            entries = compare_outputs(reference(), case, inputs, outputs, seed)
            return "" if passed(entries) else complaint(case, WHERE, entries)

        def arrays() -> ArrayModule:
            return compared_in(reference(), case)

        outputs = case.spec.outputs
        written = sum(case.sizes.elements(array.name)[1] * array.storage.itemsize for array in outputs)
        plan, cubins = case_plan(case, self.device, code)
        check_parameters(plan, cubins)
        work = LaunchWork(case.sizes.bytes_moved, case.sizes.flops, written)
        return RefereedCase(plan, partial(launch_inputs, case), fault, work, cubins, case.label in TIMED, arrays)

    def _note_nothing(self, contestant: Contestant, case: Case, refereed: RefereedCase) -> None:
        """Object to a submission that launches nothing, unless the outputs are right without a launch.

        Otherwise a card could leave out on a GPU what the emulator ran: expressions know the device. The input of an
        argument in place is compared with its expected output.
        """
        if contestant.kind != "submission":
            return
        outputs = case.spec.outputs
        unwritten = [array.name for array in outputs if not array.reads and 0 not in case.sizes.shape(array.name)]
        if unwritten:
            fault = f"{case.name}: nothing is launched, so that {unwritten[0]} is never written"
        else:
            seed = self._random.getrandbits(31)
            inputs, xp = refereed.inputs(seed), refereed.arrays()
            held = {array.name: inputs[array.name].on(xp) for array in outputs if array.reads}
            fault = refereed.complaint(seed, inputs, held)
        if fault:
            self.findings.checked.append(CheckedCase(case.name, WHERE, False, fault))
            self.findings.objections.append(Objection("outputs", fault, case.name))

    def _note_repetition(self, contestant: Contestant, case: Case) -> None:
        """Report an input that repeats a block, so that a kernel could know parts of it without reading them."""
        names = repeated_inputs(case) if contestant.kind == "submission" else []
        if names:
            self.findings.unjudged.append(
                f"{case.name}: {names[0]} repeats a block of 2^20 elements, since its fill names no `runs`"
            )

    def _note(self, contestant: Contestant, case: Case, times: RefereedTimes) -> None:
        if case.spec.bitwise and not times.repeatable and contestant.kind == "submission":
            text = f"{case.name}: outputs differ in bits from launch to launch; bitwise=True is promised"
            times.complaints.append(("outputs", text))
        fault = "; ".join(text for _, text in times.complaints)
        if contestant.kind == "kernel":
            if fault:
                self.findings.unjudged.append(f"{case.name}: the task's own kernel has no time: {fault}")
        else:
            where = WHERE if case.label in TIMED else WHERE_UNTIMED
            self.findings.checked.append(CheckedCase(case.name, where, not fault, fault))
            self.findings.objections += [Objection(rule, text, case.name) for rule, text in times.complaints]
            if times.variables:
                self.findings.evidence["variables of the module"] = named(sorted(times.variables), "more variable")
            if not times.repeatable:
                self.findings.evidence["repeatable"] = "no: outputs differ in bits from launch to launch"
        if not fault and case.label in TIMED:
            judged = judged_time(case, contestant.name, contestant.kind, times.seconds, times.seeds)
            self.findings.times.append(judged)
