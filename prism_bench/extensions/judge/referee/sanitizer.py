"""Launches of a submission under compute-sanitizer, each check in its own process that launches every case once."""

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from prism_bench.errors import PrismBenchError
from prism_bench.extensions.judge.machine_code import named
from prism_bench.extensions.judge.referee.client import NOTHING, RUNNER, Runner, RunnerClient, RunnerProcess
from prism_bench.extensions.judge.referee.referee import RefereedCase, Turn
from prism_bench.extensions.judge.task import folder_prefix
from prism_bench.extensions.judge.verdict import CheckedCase, Objection, printable
from prism_bench.io.workers import FrameWorker, WorkerEnvironment
from prism_bench.profilers import tools
from prism_bench.profilers.tools import (
    BEGIN,
    CHECKS,
    END,
    FAILURES,
    VARIABLES,
    Checked,
    Failure,
    SanitizerFinding,
    Tool,
    classify,
    command_to_file,
    parse,
)
from prism_bench.units import count_text

# A runner under a check of compute-sanitizer

_SMALL_DEVICE = f"{__package__}.driver_device:open_device"
_LARGE_DEVICE = f"{__package__}.cuda_device:open_watched_device"  # puts large inputs together on the device
LARGEST_LOG = 8 << 20  # bytes that are read: the stranger chooses the length of kernels' names
_ENDING_SECONDS = 60.0  # for a tool to write its findings, once its program has ended


class SanitizedRunner(RunnerProcess):
    """Runner process under the tool's `check`, which ends together with the tool, as a group.

    Findings are in a file that no kernel can write to. Output of the program and its kernels is discarded: it could
    imitate the tool's.
    """

    def __init__(self, tool: Tool, check: str, device: str = _SMALL_DEVICE) -> None:
        self._folder = TemporaryDirectory(prefix=f"{folder_prefix()}sanitizer-")
        self._log = Path(self._folder.name) / "log"
        self._command = command_to_file(tool, check, self._log)
        super().__init__(device)

    def _started(self, device: str, variables: Mapping[str, str]) -> FrameWorker:
        where = WorkerEnvironment(RUNNER, variables={**VARIABLES, **variables}, starter=self._command)
        return FrameWorker(where, [device], stdout=subprocess.DEVNULL)

    def written(self) -> int:
        """Return the number of bytes that the tool has written so far."""
        return self._log.stat().st_size if self._log.is_file() else 0

    def finish(self) -> int | None:
        """Let the program end in order; return the tool's exit status, None if it had to be killed."""
        self._worker.channel.finish()
        status = self._worker.wait(_ENDING_SECONDS)
        self._worker.kill()
        return status

    def log(self) -> bytes:
        """Return the tool's output."""
        if not self._log.is_file():
            return b""
        with self._log.open("rb") as file:
            return file.read(LARGEST_LOG)

    def end(self) -> None:
        """End the tool and its program, and remove the log."""
        super().end()
        self._folder.cleanup()

    def _lost(self) -> None:
        """Give the tool time to write its findings if its program has ended by itself."""
        self._worker.wait(_ENDING_SECONDS)
        super()._lost()


# Launches under all checks

TOOL = "compute-sanitizer"
_LOOKED_FOR: Mapping[str, str] = {
    "memcheck": "accesses out of bounds",
    "racecheck": "races in shared memory",
    "initcheck": "reads of memory that nothing wrote",
    "synccheck": "divergent barriers",
}
# As the emulator names them.
_KINDS: Mapping[str, str] = {
    "memcheck": "out of bounds",
    "racecheck": "race",
    "initcheck": "unwritten read",
    "synccheck": "divergent barrier",
}
MOST_FINDINGS = 3  # that are named of a case and check
LONGEST = 300  # characters of a finding, in which a stranger chose the kernels' names
_NO_PLACE = ""  # of output after the end of the last case
_OF_THE_TOOL = tuple(failure for failure in FAILURES if failure.name in ("device_not_supported", "driver_mismatch"))


class WatchedRunner(Runner, Protocol):
    """Runner under a tool that writes a log."""

    def written(self) -> int:
        """Return the number of bytes that the tool has written so far."""
        ...

    def finish(self) -> int | None:
        """Let the runner end in order; return the tool's exit status, None if it had to be killed."""
        ...

    def log(self) -> bytes:
        """Return the tool's output."""
        ...


@dataclass(frozen=True)
class WatchRules:
    """Most seconds of a runner's start, of a launch, and of all launches of a check."""

    start_seconds: float = 120.0
    launch_seconds: float = 60.0
    check_seconds: float = 180.0


_QUICK = WatchRules(launch_seconds=20.0, check_seconds=40.0)  # for sizes whose kernels ran before at smaller sizes
# At larger sizes compared outputs show reads of unwritten memory; the faults that these checks find seldom show there.
_OF_LARGER = ("memcheck", "racecheck")


@dataclass
class WatchFindings:
    """Findings of the checks as parts of a verdict; `complete` are the checks that saw every case."""

    checked: list[CheckedCase] = field(default_factory=list[CheckedCase])
    objections: list[Objection] = field(default_factory=list[Objection])
    unjudged: list[str] = field(default_factory=list[str])
    complete: list[str] = field(default_factory=list[str])


@dataclass
class _WatchRun:
    """Run of a check: marks for its log, each with its offset; cases that ended; the reason `why` others did not."""

    check: str
    marks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    ended: list[str] = field(default_factory=list[str])
    why: str = ""
    log: bytes = b""

    def read(self) -> Checked:
        """Return the findings in the log, with their cases."""
        return parse(_marked(self.log, self.marks).decode(errors="replace"), self.check, {})


class LaunchWatch:
    """Watch that runs `checks` side by side; `larger` has the rules for sizes beyond S0.

    `start` starts a runner, `start_large` a runner for sizes beyond S0.
    """

    def __init__(
        self,
        start: Callable[[str], WatchedRunner],
        rules: WatchRules | None = None,
        checks: Sequence[str] = CHECKS,
        larger: WatchRules = _QUICK,
        start_large: Callable[[str], WatchedRunner] | None = None,
    ) -> None:
        self._start, self._start_large, self._checks = start, start_large or start, checks
        self._rules, self._larger = rules or WatchRules(), larger

    def watched(
        self,
        cases: Sequence[RefereedCase],
        seed: int,
        turn: Turn = nullcontext,
        *,
        has_memory_barriers: bool = False,
        larger: bool = False,
        needless: Collection[str] = (),
    ) -> WatchFindings:
        """Launch each case once under each check, on the inputs of a seed, within a `turn` on the device.

        Races in code that `has_memory_barriers` are in doubt. `larger` cases are of sizes beyond S0. Checks that are
        `needless`, since the machine code has nothing that they look at, are left out.
        """
        checks = [check for check in self._checks if check not in needless and (not larger or check in _OF_LARGER)]
        start, rules = (self._start_large, self._larger) if larger else (self._start, self._rules)
        findings, launches = WatchFindings(), _Launches(cases, seed, turn, rules)
        with ThreadPoolExecutor(max(1, len(checks))) as pool:
            for run in pool.map(lambda check: _run(check, start, launches), checks):
                _note(run, [case.plan.name for case in cases], findings, has_memory_barriers=has_memory_barriers)
        return findings


def _run(check: str, start: Callable[[str], WatchedRunner], launches: "_Launches") -> _WatchRun:
    run = _WatchRun(check)
    try:
        runner = start(check)
    except OSError as error:
        run.why = f"it does not start: {error}"
        return run
    with RunnerClient(runner, launches.rules.launch_seconds) as client:
        try:
            client.load_watched(NOTHING, (), launches.rules.start_seconds)
            launches.launch_all(run, runner, client)
            status = runner.finish()
            if status != 0:
                run.why = run.why or ("it did not end" if status is None else f"it ended with status {status}")
        except PrismBenchError as error:
            run.why = str(error)
        run.log = runner.log()
    return run


@dataclass(frozen=True)
class _Launches:
    """Launches under a check: cases on the inputs of a seed, each within a `turn` on the device."""

    cases: Sequence[RefereedCase]
    seed: int
    turn: Turn
    rules: WatchRules

    def launch_all(self, run: _WatchRun, runner: WatchedRunner, client: RunnerClient) -> None:
        """Launch each case until the time is over, and note in `run` the ended cases and the length of the log."""
        spent = 0.0  # without waiting for the device
        for case in self.cases:
            if spent > self.rules.check_seconds:
                run.why = f"{self.rules.check_seconds:.0f} s were over"
                break
            inputs = case.inputs(self.seed)  # before its turn: others wait for the device
            run.marks.append((runner.written(), f"{BEGIN}{case.plan.name}"))
            with self.turn():
                begin = time.monotonic()
                client.load_watched(case.plan, case.cubins)
                client.give(inputs)
                client.launch(0)
                client.load_watched(NOTHING, ())  # free its memory for others
                spent += time.monotonic() - begin
            run.marks.append((runner.written(), f"{END}{case.plan.name}"))
            run.ended.append(case.plan.name)
        run.marks.append((runner.written(), f"{BEGIN}{_NO_PLACE}"))


def installed_watch(rules: WatchRules | None = None) -> LaunchWatch:
    """Return a watch by the compute-sanitizer of this machine; raise ProfilerFailed if it is not installed."""
    tool = tools.find(TOOL)
    large = partial(SanitizedRunner, tool, device=_LARGE_DEVICE)
    return LaunchWatch(partial(SanitizedRunner, tool), rules, start_large=large)


def _marked(log: bytes, marks: Sequence[tuple[int, str]]) -> bytes:
    """Return the log with a line for each mark, after the line at its offset."""
    parts, begin = list[bytes](), 0
    for offset, text in marks:
        place = log.find(b"\n", offset - 1) + 1 if 0 < offset < len(log) else min(offset, len(log))
        place = max(begin, place or len(log))
        parts += [log[begin:place], b"" if log[:place].endswith(b"\n") or not place else b"\n", f"{text}\n".encode()]
        begin = place
    return b"".join([*parts, log[begin:]])


def _note(run: _WatchRun, names: Sequence[str], findings: WatchFindings, *, has_memory_barriers: bool) -> None:
    """Add the results of a check: each finding that the tool counted is an objection or doubtful, even if unknown."""
    checked = run.read()
    # A race that is only a warning may be intended: between threads of a warp that stay together, as far as is known.
    doubtful = [
        race
        for race in checked.findings
        if race.check == "racecheck" and (has_memory_barriers or race.message.startswith("Warning"))
    ]
    sure = [finding for finding in checked.findings if finding not in doubtful]
    objections = list(_objections(run.check, sure, names))
    if checked.counted and not checked.findings:
        text = f"{count_text(checked.counted, 'finding')} of a kind that is not known here"
        objections = [Objection("outputs", f"{_under(run.check)}: {text}")]
    findings.objections += objections
    faults = {objection.case: objection.text for objection in objections}
    clean = set(run.ended) - {race.case for race in doubtful} if checked.counted is not None else set[str]()
    findings.checked += [
        CheckedCase(name, f"{TOOL}, {run.check}", name not in faults, faults.get(name, ""))
        for name in names
        if name in faults or name in clean
    ]
    reason = _doubt(doubtful, has_memory_barriers=has_memory_barriers) or _incomplete(run, checked, names)
    if objections:
        return
    if reason:
        findings.unjudged.append(f"{_LOOKED_FOR[run.check]} ({TOOL}, {run.check}): {_printable(reason)}")
    else:
        findings.complete.append(run.check)


def _objections(check: str, findings: Sequence[SanitizerFinding], names: Sequence[str]) -> Iterator[Objection]:
    """Yield an objection for each case with findings. A stranger may forge names in the log: only `names` count.

    Findings count for any name of a kernel, since functions that a kernel calls have other names.
    """
    by_case: dict[str, list[str]] = {}
    for finding in findings:
        texts = by_case.setdefault(finding.case if finding.case and finding.case in names else _NO_PLACE, [])
        text = _finding_text(finding)
        if text not in texts and len(texts) < MOST_FINDINGS:
            texts.append(text)
    for case, texts in by_case.items():
        yield Objection("outputs", f"{case} {_under(check)}: {'; '.join(texts)}".strip(), case)


def _under(check: str) -> str:
    return f"under {TOOL} ({check})"


def _doubt(findings: Sequence[SanitizerFinding], *, has_memory_barriers: bool) -> str:
    """Return the first doubtful finding and the reason of the doubt; empty without findings."""
    if not findings:
        return ""
    why = "the tool does not follow all barriers in shared memory" if has_memory_barriers else "a warning"
    return f"{why}: {_finding_text(findings[0])}"


def _finding_text(finding: SanitizerFinding) -> str:
    kind = "misaligned access" if finding.message.startswith("Misaligned") else _KINDS[finding.check]
    place = " ".join(part for part in (finding.kernel, finding.source) if part)
    return _printable(f"{kind}: {finding.message}" + (f" [{place}]" if place else ""))


def _incomplete(run: _WatchRun, checked: Checked, names: Sequence[str]) -> str:
    """Return why a check without findings has not seen everything; empty if it has."""
    text = run.log.decode(errors="replace")
    failure = classify(text, 1, produced=False)
    if run.why and isinstance(failure, Failure) and failure in _OF_THE_TOOL:
        return f"{failure.cause} {failure.cure}"
    launched = f"{len(run.ended)} of {count_text(len(names), 'case')} launched"
    if run.why:
        left = [name for name in names if name not in run.ended]
        return f"{launched}: {run.why}" + (f"; left out: {named(left, 'other case')}" if left else "")
    if checked.counted is None:
        return f"{launched}: it ended without a summary"
    return f"it reports: {checked.remarks[0]}" if checked.remarks else ""


def _printable(text: str) -> str:
    shown = printable(text).replace("\n", " ")
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
