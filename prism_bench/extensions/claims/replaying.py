"""Replay of a claim: verify and measure its own code here, and compare the ratio with the claimed ratio.

No code of a claim runs before its bytes, hashes and figures were checked (`checks`). Its Python runs only if the
catalogue here has the same file, or its source is trusted. Device code that the catalogue lacks is compiled and run on
the emulator in the jail of `prism-bench judge`, and measured only if its source is trusted.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import hypot
from typing import Literal

import msgspec

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.cubin import toolchain
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, ResultsError
from prism_bench.extensions.claims.checks import RecompiledCode, compiled_here, compiled_in_jail
from prism_bench.extensions.claims.document import (
    BOARD_SECONDS,
    PEER,
    Claim,
    ClaimContest,
    ClaimRatio,
    ClaimSide,
    baseline_name,
    ceilings_of,
    interval_text,
    limits_of,
    ratio_of,
    six,
)
from prism_bench.extensions.claims.making import (
    PROCESSES,
    ClaimMeasurement,
    case_in,
    catalogue_at,
    contents_of,
    device_in,
    files_of,
    hashes,
    hashes_of_inputs,
    launches_of,
    unpacked,
)
from prism_bench.io.files import default_folder, temporary_folder
from prism_bench.measure.plausibility import LaunchWork, Limits, is_fp32
from prism_bench.measure.plausibility import judge as plausible
from prism_bench.record import identity
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run import PROTOCOL, Progress
from prism_bench.run.builds import Build
from prism_bench.run.verification import complaint, passed, verify
from prism_bench.spec.case import Case, Device
from prism_bench.units import count_text, time_text

FORMAT, SCHEMA = "prism-bench replay", 1
AnswerWord = Literal["reproduced", "not reproduced", "partly reproduced", "cannot be decided here"]
_EXIT_CODES: dict[AnswerWord, int] = {
    "reproduced": 0,
    "not reproduced": 1,
    "partly reproduced": 1,
    "cannot be decided here": 3,
}
_WIDEST = 4.0  # times the lower end of a measured interval: a wider one meets about any claim
CheckResult = Literal["same", "right", "other", "wrong", "open"]


class ReplayAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Answer of a replay and its reason."""

    word: AnswerWord
    because: str


class ReplayCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Check of a replay: its subject, its result, and a text."""

    what: str
    result: CheckResult
    text: str = msgspec.field(default="", name="words")


class Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replay of the claim with this digest and sentence: the answer, both ratios, and the checks.

    `expected` is the claimed ratio, with a wider interval on another kind of device; `here` is the measured ratio, None
    if nothing was measured. `board` is the UUID of the GPU that measured, empty if unknown.
    """

    format: str
    schema: int
    claim: str
    sentence: str
    answer: ReplayAnswer
    expected: ClaimRatio
    here: ClaimRatio | None
    backend: str
    device: str
    created: str
    software: dict[str, str]
    checks: tuple[ReplayCheck, ...]
    board: str = ""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 reproduced, 1 not or partly reproduced, 3 undecided."""
        return _EXIT_CODES[self.answer.word]


def answer(claimed: ClaimRatio, here: ClaimRatio | None, expected: ClaimRatio | None = None) -> ReplayAnswer:
    """Compare the intervals: reproduced if they overlap, partly reproduced if both are on the same side of 1.

    On another kind of device the measured interval has to overlap `expected`. This may be so wide that it holds both
    sides of 1. Then a ratio on another side than the claimed ratio neither reproduces the claim nor refutes it.
    """
    if here is None:
        return ReplayAnswer("cannot be decided here", "nothing was measured")
    if claimed.low is None or claimed.high is None:
        return ReplayAnswer("cannot be decided here", "the claim has no interval to compare with")
    if here.low is None or here.high is None:
        return ReplayAnswer("cannot be decided here", "too few processes were measured here for an interval")
    there, measured = f"{interval_text(claimed)} is claimed", f"{interval_text(here)} was measured"
    both = f"{there}, {f'{interval_text(expected)} expected here, ' if expected else ''}{measured}"
    if meet(expected or claimed, here):
        if here.high > _WIDEST * here.low:
            return ReplayAnswer("cannot be decided here", f"{both}, which is too wide to decide it")
        if _side(claimed) and not _side(here):
            return ReplayAnswer("cannot be decided here", f"{both}, which also holds no difference at all")
        if expected and _side(claimed) != _side(here):
            return ReplayAnswer("cannot be decided here", f"{both}, on another side of 1 than the claim")
        return ReplayAnswer("reproduced", f"the intervals meet: {both}")
    if _side(claimed) and _side(claimed) == _side(here):
        return ReplayAnswer("partly reproduced", f"the side is right and the size is another: {both}")
    return ReplayAnswer("not reproduced", both)


def meet(a: ClaimRatio, b: ClaimRatio) -> bool:
    """Return whether the two intervals have a value in common; False if either is unknown."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.low <= b.high and b.low <= a.high


def _side(ratio: ClaimRatio) -> int:
    """Return 1 if the whole interval is above 1, -1 if it is below 1, 0 if it holds 1."""
    assert ratio.low is not None and ratio.high is not None
    return 1 if ratio.low > 1 else -1 if ratio.high < 1 else 0


def scaled(claimed: ClaimRatio, there: Mapping[str, float], here: Mapping[str, float]) -> tuple[ClaimRatio, str] | None:
    """Return the expected ratio on a device with other ceilings, and the reason; None without shared ceilings.

    A time scales by the ceiling that bounds it, but the ceiling that bounds each side is unknown. So the interval is
    widened by the ratio between the largest and the smallest factor among the ceilings that both devices measured.
    """
    shared = sorted(set(there) & set(here))
    rates = [name for name in shared if name != "launch"]
    if not rates or claimed.low is None or claimed.high is None:
        return None
    factors = {name: there[name] / here[name] for name in rates}
    if "launch" in shared:
        factors["launch"] = here["launch"] / there["launch"]
    width = max(factors.values()) / min(factors.values())
    reason = (
        f"scaled by {count_text(len(factors), 'ceiling')}: times here are "
        f"{min(factors.values()):.2f} to {max(factors.values()):.2f} "
        f"of those there, so the interval is {width:.2f} times as wide on either side"
    )
    return msgspec.structs.replace(claimed, low=six(claimed.low / width), high=six(claimed.high * width)), reason


# Checks before and after the measurement: origin of the files, launches, inputs, machine code, outputs, times

Compiler = Callable[[Case, Device], RecompiledCode | None]
_PLACES = ("kernel", "baseline")
_SYSTEM_HEADER = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*<", re.MULTILINE)
# Everything else may run on the host: Python also imports extension modules and bytecode.
_DEVICE_CODE = (".cu", ".cuh", ".h", ".hpp", ".inl", ".cubin", ".fatbin")


@dataclass(frozen=True)
class ReplaySide:
    """Side of a claim as a case of the catalogue made from its files."""

    side: ClaimSide
    catalogue: Catalogue
    case: Case

    @property
    def is_peer(self) -> bool:
        """Whether the side is a library call, which has no code in the claim."""
        return self.side.subject.startswith(PEER)


@dataclass
class SideChecks:
    """Checks of the two sides of a claim; `results` has the completed checks in order."""

    claim: Claim
    records: tuple[RunRecord, ...]
    results: list[ReplayCheck] = field(default_factory=list[ReplayCheck])

    def unknown_files(self, catalogue: Catalogue, *, on_host: bool = False) -> list[str]:
        """Return files that neither this nor the bundled catalogue has; if `on_host` without device code."""
        roots = dict.fromkeys((catalogue.folder, default_folder()))
        return [
            path
            for side in self.claim.sides
            for path, content in contents_of(side, self.claim.files).items()
            if not any((root / path).is_file() and (root / path).read_bytes() == content for root in roots)
            and not (on_host and path.endswith(_DEVICE_CODE))
        ]

    def require_files(self, sides: Sequence[ReplaySide]) -> None:
        """Raise a ResultsError if a side has other files than its spec reaches, or ran in another configuration."""
        for place, replayed in zip(_PLACES, sides, strict=True):
            side, case = replayed.side, replayed.case
            reached, stated = hashes(files_of(case, replayed.catalogue.folder)), side.files
            if reached != stated:
                path = next(path for path in {**reached, **stated} if reached.get(path) != stated.get(path))
                lacks = "is reached by its spec and not there" if path in reached else "is not reached by its spec"
                raise ResultsError(f"{place}.files: {path:.80} {lacks}")
            if side.spec != (spec := next(iter(reached))):
                raise ResultsError(f"{place}.spec is {side.spec!r:.80}; that of its case is {spec!r:.80}")
            ran = self.records[side.record].case(side.case)
            if ran and ran.configuration != dict(case.configuration):
                raise ResultsError(f"{place}.choice: its files are configured otherwise than what was timed")
        self._add("files", "same", "as the specs reach them")

    def require_launches(self, sides: Sequence[ReplaySide]) -> None:
        """Raise a ResultsError if the files launch something else than the claim states."""
        for place, replayed in zip(_PLACES, sides, strict=True):
            device = device_in(self.records[replayed.side.record])
            if not replayed.is_peer and launches_of(replayed.case, device) != replayed.side.launches:
                raise ResultsError(f"{place}.launches: its files launch something else than it states")
        self._add("launches", "same")

    def require_inputs(self, case: Case) -> None:
        """Raise a ResultsError if seed 0 gives other inputs than the claim states."""
        stated = self.claim.inputs.sha256
        if not stated:
            self._add("inputs", "open", "known by spec and seed alone")
            return
        hashed = hashes_of_inputs(case)
        if hashed != stated:
            name = next(name for name in {**stated, **hashed} if stated.get(name) != hashed.get(name))
            raise ResultsError(f"inputs.sha256.{name}: seed 0 gives other values here")
        self._add("inputs", "same", f"seed 0: {', '.join(stated)}")

    def compare_code(self, replayed: ReplaySide, compiled: Compiler = compiled_here) -> None:
        """Compile a side's sources and compare the instructions with its cubins.

        A ResultsError if the compiler of a cubin makes other instructions from these sources: the cubin is not theirs.
        """
        side, what = replayed.side, f"machine code of {replayed.side.name}"
        if not side.code:
            self._add(what, "open", "the claim has none")
            return
        stated = side.code[0]
        try:
            rebuilt = compiled(replayed.case, device_in(self.records[side.record]))
        except PrismBenchError as error:
            self._add(what, "open", str(error))
            return
        if rebuilt is None:
            self._add(what, "open", "its sources are not compiled here")
        elif rebuilt.hashes != {code.sass for code in side.code}:
            self._require_other_compiler(side, rebuilt)
            self._add(what, "other", f"{stated.compiler} there, {rebuilt.compiler} here")
        else:
            _require_entries(side, rebuilt)
            self._add(what, "same", f"sm_{stated.architecture}, {stated.sass}")

    def _require_other_compiler(self, side: ClaimSide, rebuilt: RecompiledCode) -> None:
        """Raise a ResultsError if only other sources can explain other instructions.

        Headers of the toolkit have versions that no cubin names, so sources that include some prove nothing.
        """
        contents = contents_of(side, self.claim.files)
        if any(_SYSTEM_HEADER.search(content) for path, content in contents.items() if path.endswith(_DEVICE_CODE)):
            return
        there = {toolchain(unpacked(self.claim.files[code.cubin], "cubin")) for code in side.code}
        is_same = {code.compiler for code in side.code} == {rebuilt.compiler}
        if is_same and there == rebuilt.toolchains != {b""}:
            raise ResultsError(
                f"{side.name}: {rebuilt.compiler} makes other instructions of its sources than it claims"
            )

    def other_peer(self, contest: ClaimContest) -> str | None:
        """Return a text about the baseline here if its version or form is not the claim's; None if it is the same."""
        side = self.claim.baseline
        if not side.subject.startswith(PEER):
            return None
        there, here = self.records[side.record].case(side.case), contest.case(contest.baseline)
        name = baseline_name(here, side.subject)
        if there is not None and name == baseline_name(there, side.subject):
            self._add("baseline", "same", name)
            return None
        return self._add("baseline", "other", f"its baseline is {side.name}; here it is {name}")

    def impossible_time(self, sides: Sequence[ReplaySide], contest: ClaimContest, limits: Limits) -> str | None:
        """Return why a claimed time cannot be true on this kind of device, by limits measured here; None if it can.

        The work of a launch is that of the files, which a forged record does not change. Boards and hosts of one kind
        differ in their launch overhead, so a time is refused only if it is below the overhead by more than that.
        """
        floor, between = limits.lowest.get(self.claim.metric, 0.0), 3 * hypot(BOARD_SECONDS, BOARD_SECONDS)
        overhead = f"an empty kernel takes {time_text(floor)} here, and hosts differ by less than {time_text(between)}"
        rates = replace(limits, floors={})
        for replayed, here in zip(sides, (contest.kernel, contest.baseline), strict=True):
            side, sizes, result = replayed.side, replayed.case.sizes, contest.case(here)
            written = sum(sizes.nbytes(array.name) for array in replayed.case.spec.outputs)
            flops = sizes.flops if not replayed.is_peer and is_fp32(result) else None
            work = LaunchWork(sizes.bytes_moved, flops, written)
            is_below = side.seconds < floor - between
            refusal = overhead if is_below else plausible(self.claim.metric, side.seconds, work, rates).refusal
            if refusal:
                reason = f"{side.name} cannot take {time_text(side.seconds)} on this kind of device: {refusal}"
                return self._add("claimed times", "wrong", reason)
        if limits.floors or limits.ceilings or limits.peaks:
            self._add("claimed times", "right", "possible by the limits that were measured here")
        return None

    def wrong_outputs(self, backend: Backend, replayed: ReplaySide) -> str | None:
        """Verify small cases of a side's kernel, on seed 0 and a seed that is drawn now; return the fault, or None."""
        what, right = f"outputs of {replayed.side.name}", 0
        # A CPU runs these in reasonable time: S0, edges and golden data.
        cases = [*replayed.catalogue.cases((), ("S0",)), *replayed.catalogue.edges()]
        for case in cases:
            if case.kernel != replayed.case.kernel:
                continue
            try:
                entries = verify(backend, case, (0, secrets.randbelow(1 << 31) + 2))
            except (BackendUnavailable, CompilationFailed) as error:  # a case that is not emulated is not wrong
                if str(error) not in [check.text for check in self.results]:
                    self._add(f"outputs of {case.name}", "open", str(error))
                continue
            except PrismBenchError as error:
                return self._add(what, "wrong", str(error))
            if not passed(entries):
                return self._add(what, "wrong", complaint(case, backend.name, entries))
            right += 1
        text = f"{right} small cases on the {backend.name}, on a seed that was drawn now as well"
        self._add(what, "right" if right else "open", text)
        return None

    def wrong_in_jail(self, replayed: ReplaySide) -> str | None:
        """Compare the machine code and verify outputs in a jail; both stay open if no jail can be made."""
        try:
            from prism_bench.extensions.judge.jail_client import JailCell, JailedEmulator

            with JailCell(replayed.catalogue.folder, modes=("fast", "race")) as cell:
                self.compare_code(replayed, lambda case, device: compiled_in_jail(case, device, cell))
                return self.wrong_outputs(JailedEmulator(cell), replayed)
        except (ImportError, BackendUnavailable) as error:
            self._add(f"outputs of {replayed.side.name}", "open", f"no jail: {error}")
            return None

    def _add(self, what: str, result: CheckResult, text: str = "") -> str:
        """Add a completed check and return its text."""
        self.results.append(ReplayCheck(what, result, text))
        return text


def _require_entries(side: ClaimSide, rebuilt: RecompiledCode) -> None:
    """Raise a ResultsError if a claim states other entries than the same instructions have."""
    stated = {text: entry.get("symbol") for code in side.code for text, entry in code.entries.items()}
    if stated != rebuilt.symbols:
        text = next(text for text in {**rebuilt.symbols, **stated} if rebuilt.symbols.get(text) != stated.get(text))
        raise ResultsError(f"{side.name}: its sources and its claim differ in the entry {text:.80}")


# The replay


@dataclass
class ClaimReplay:
    """Replay of a checked claim with its records; `catalogue` has the known files, and a source may be `trusted`.

    `contest` has measurements of this claim from a run of many claims, if its files are the catalogue's; without it the
    claim's own files are measured. `ceilings` were measured just before.
    """

    claim: Claim
    records: tuple[RunRecord, ...]
    catalogue: Catalogue
    backend: str | None = None
    processes: int = PROCESSES
    trusted: bool = False
    report: Callable[[Progress], object] = lambda event: None
    contest: ClaimContest | None = None
    ceilings: tuple[CaseResult, ...] = ()
    _here: ClaimRatio | None = field(default=None, init=False)
    _expected: ClaimRatio | None = field(default=None, init=False)
    _place: tuple[str, str] = field(default=("", ""), init=False)
    _board: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._checks = SideChecks(self.claim, self.records)

    def replay(self) -> Replay:
        """Return the replay; raise a ResultsError for other files, launches or inputs than the claim states."""
        answered = self._answer()
        backend, device = self._place
        return Replay(
            format=FORMAT,
            schema=SCHEMA,
            claim=self.claim.digest,
            sentence=self.claim.sentence,
            answer=answered,
            expected=self._expected or self.claim.ratio,
            here=self._here,
            backend=backend,
            device=device,
            created=identity.timestamp(datetime.now(UTC)),
            software={name: str(version) for name, version in identity.software({}).items()},
            checks=tuple(self._checks.results),
            board=self._board,
        )

    def _answer(self) -> ReplayAnswer:
        if not self.claim.kernel.files or not self.claim.baseline.files:
            return _open(f"the claim lacks {'; '.join(self.claim.missing)}")
        on_host = self._checks.unknown_files(self.catalogue, on_host=True)
        if on_host and not self.trusted:
            return _open(f"{on_host[0]} would run on the host and is not in the catalogue here; --trust-source runs it")
        with self._sides() as sides:
            self._checks.require_files(sides)
            self._checks.require_launches(sides)
            self._checks.require_inputs(sides[0].case)
            if self._checks.unknown_files(self.catalogue) and not self.trusted:
                return self._jailed(sides)
            for replayed in _with_code(sides):
                self._checks.compare_code(replayed)
            return self._verified_and_measured(sides)

    @contextmanager
    def _sides(self) -> Iterator[tuple[ReplaySide, ReplaySide]]:
        """Make catalogues of the claim's own files and remove them at the end."""
        with temporary_folder("prism-claim-") as folder:
            folder.chmod(0o755)  # the jail runs as another user
            kernel, baseline = self.claim.sides
            catalogues = [
                catalogue_at(folder / name, contents_of(side, self.claim.files))
                for name, side in (("kernel", kernel), ("baseline", baseline))
            ]
            yield (
                ReplaySide(kernel, catalogues[0], case_in(catalogues[0], kernel)),
                ReplaySide(baseline, catalogues[1], case_in(catalogues[1], baseline)),
            )

    def _jailed(self, sides: Sequence[ReplaySide]) -> ReplayAnswer:
        """Verify device code that the catalogue lacks in a jail; its time is not measured."""
        wrong = next(filter(None, map(self._checks.wrong_in_jail, _with_code(sides))), None)
        if wrong:
            return ReplayAnswer("not reproduced", wrong)
        return _open("its device code is not in the catalogue here, so it ran in a jail; --trust-source measures it")

    def _verified_and_measured(self, sides: tuple[ReplaySide, ReplaySide]) -> ReplayAnswer:
        """Measure both sides if this machine can, else verify them on the emulator."""
        name = self.backend or self.claim.backend
        try:
            backend = open_backend(name)
        except BackendUnavailable as error:
            return self._emulated(sides, f"{name}: {error}")
        facts = backend.facts()
        self._place, self._board = (backend.name, str(facts["device"])), str(facts.get("uuid") or "")
        hindrance = self._hindrance(backend)
        return self._emulated(sides, hindrance) if hindrance else self._measured(sides)

    def _hindrance(self, backend: Backend) -> str | None:
        """Return why nothing is measured on the backend; None if its ratio can be compared."""
        if backend.name != self.claim.backend:
            return f"it was measured on the backend {self.claim.backend}; here is {backend.name}"
        version = self.claim.protocol.settings.get("version")
        if version != PROTOCOL:
            return f"it was measured by version {version} of the protocol; here is version {PROTOCOL}"
        if self._place[1] != self.claim.device and not self.claim.ceilings:
            return f"it was measured on {self.claim.device}, without ceilings to scale by; here is {self._place[1]}"
        return None

    def _emulated(self, sides: Sequence[ReplaySide], why: str) -> ReplayAnswer:
        """Verify both sides on the CPU; the time stays open."""
        try:
            emulator = open_backend("emulator")
            for replayed in _with_code(sides):
                if wrong := self._checks.wrong_outputs(emulator, replayed):
                    return ReplayAnswer("not reproduced", wrong)
        except BackendUnavailable as error:
            self._checks.results.append(ReplayCheck("outputs", "open", str(error)))
        return _open(f"{why}; its time stays open")

    def _measured(self, sides: tuple[ReplaySide, ReplaySide]) -> ReplayAnswer:
        """Measure both sides in turn, verified on a seed that is drawn now, and compare the ratios."""
        measurement = ClaimMeasurement(self._place[0], self.processes, drawn_seeds(), self.report, self.ceilings)
        contest = self.contest or self._contest(sides, measurement)
        for side in (contest.kernel, contest.baseline):
            result = contest.records[side[0]].case(side[1])
            if result and result.status in ("wrong", "crashed"):
                reason = f"{side[1]}: {result.reason}"
                self._checks.results.append(ReplayCheck(f"outputs of {side[1]}", "wrong", reason))
                return ReplayAnswer("not reproduced", reason)
        try:
            self._here = ratio_of(contest)
        except ResultsError as error:
            return _open(str(error))
        entries = contest.case(contest.kernel).verification
        seeds = list(dict.fromkeys(str(entry["seed"]) for entry in entries if "seed" in entry))
        text = f"both sides, on {'seeds' if len(seeds) > 1 else 'seed'} {' and '.join(seeds)}"
        self._checks.results.append(ReplayCheck("outputs", "right", text))
        limited = measurement.with_ceilings(contest.records[contest.kernel[0]])
        if self._place[1] == self.claim.device:
            if impossible := self._checks.impossible_time(sides, contest, limits_of(limited)):
                return ReplayAnswer("not reproduced", impossible)
        compared = self._compared(limited)
        if (other := self._checks.other_peer(contest)) is None:
            return compared
        if compared.word in ("not reproduced", "partly reproduced"):
            return _open(f"{compared.because}; {other}")
        return ReplayAnswer(compared.word, f"{compared.because}; {other}")

    def _contest(self, sides: tuple[ReplaySide, ReplaySide], measurement: ClaimMeasurement) -> ClaimContest:
        kernel, baseline = sides
        name = kernel.case.name
        if baseline.is_peer:
            record = measurement.peers(kernel.catalogue, [kernel.case])
            return ClaimContest(self.claim.metric, (record,), (0, name, "kernel"), (0, name, baseline.side.subject))
        builds = (
            Build("baseline", baseline.catalogue, (baseline.case,)),
            Build("kernel", kernel.catalogue, (kernel.case,)),
        )
        records = measurement.builds(builds)
        return ClaimContest(self.claim.metric, records, (1, name, "kernel"), (0, baseline.case.name, "kernel"))

    def _compared(self, limited: RunRecord) -> ReplayAnswer:
        """Compare the ratios; on another kind of device by the ceilings of the claim and of the record `limited`."""
        if self._place[1] == self.claim.device:
            return answer(self.claim.ratio, self._here)
        scaling = scaled(self.claim.ratio, self.claim.ceilings, ceilings_of(limited))
        if scaling is None:
            return _open(f"it was measured on {self.claim.device}, whose ceilings were not measured here")
        self._expected, reason = scaling
        compared = answer(self.claim.ratio, self._here, self._expected)
        return ReplayAnswer(compared.word, f"{compared.because}; {reason}")


def drawn_seeds() -> tuple[int, int]:
    """Return the seeds of a verification: a random seed that nobody could know, and 0."""
    return secrets.randbelow(1 << 31) + 2, 0


def _with_code(sides: Sequence[ReplaySide]) -> list[ReplaySide]:
    return [replayed for replayed in sides if not replayed.is_peer]


def _open(because: str) -> ReplayAnswer:
    return ReplayAnswer("cannot be decided here", because)
