"""Replay of a claim: whether its own code, verified and measured here, gives its ratio again.

Nothing of a claim runs before its bytes, hashes and figures were checked (`checks`). Its Python runs only where the
catalogue here has the same file, or its source is trusted; device code that is not here is compiled and run on the
emulator in the jail of `prism-bench judge`, and measured only where its source is trusted.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.extensions.claims.answers import ReplayAnswer, answer, scaled
from prism_bench.extensions.claims.derived import ClaimContest, ceilings_of, limits_of, ratio_of
from prism_bench.extensions.claims.document import Claim, ClaimRatio
from prism_bench.extensions.claims.measuring import (
    PROCESSES,
    ClaimEffort,
    measured_builds,
    measured_peers,
    with_ceilings,
)
from prism_bench.extensions.claims.packing import case_in, catalogue_at, contents_of
from prism_bench.extensions.claims.replay_checks import ReplaySide, SideChecks
from prism_bench.extensions.claims.replay_document import FORMAT, SCHEMA, Replay, ReplayCheck
from prism_bench.io.files import temporary_folder
from prism_bench.record import identity
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run import PROTOCOL, Progress
from prism_bench.run.interleave import Build


@dataclass(frozen=True)
class ReplayRequest:
    """How a claim is replayed: by which catalogue its files are known, the backend, processes, and the progress.

    `contest` is what a run of many claims measured of this one, with files that are the catalogue's; without it the
    claim's own files are measured. `ceilings` were measured just before.
    """

    catalogue: Catalogue
    backend: str | None = None
    processes: int = PROCESSES
    trusted: bool = False
    report: Callable[[Progress], object] = lambda event: None
    contest: ClaimContest | None = None
    ceilings: tuple[CaseResult, ...] = ()


@dataclass
class ClaimReplay:
    """The replay of a checked claim with its records."""

    claim: Claim
    records: tuple[RunRecord, ...]
    request: ReplayRequest
    _here: ClaimRatio | None = field(default=None, init=False)
    _expected: ClaimRatio | None = field(default=None, init=False)
    _place: tuple[str, str] = field(default=("", ""), init=False)
    _board: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._checks = SideChecks(self.claim, self.records)

    def replay(self) -> Replay:
        """Return what came of it; a ResultsError for files, launches or inputs that are not those of the claim."""
        found = self._answer()
        return Replay(
            FORMAT, SCHEMA, self.claim.digest, self.claim.sentence, found, self._expected or self.claim.ratio,
            self._here, *self._place, identity.timestamp(datetime.now(UTC)),
            {name: str(version) for name, version in identity.software({}).items()}, tuple(self._checks.found),
            self._board,
        )  # fmt: skip

    def _answer(self) -> ReplayAnswer:
        if not self.claim.kernel.files or not self.claim.baseline.files:
            return _open(f"the claim lacks {'; '.join(self.claim.missing)}")
        on_host = self._checks.strange(self.request.catalogue, on_host=True)
        if on_host and not self.request.trusted:
            return _open(f"{on_host[0]} would run on the host and is not in the catalogue here; --trust-source runs it")
        with self._sides() as sides:
            self._checks.require_files(sides)
            self._checks.require_launches(sides)
            self._checks.require_inputs(sides[0].case)
            if self._checks.strange(self.request.catalogue) and not self.request.trusted:
                return self._jailed(sides)
            for one in _with_code(sides):
                self._checks.compare_code(one)
            return self._verified_and_measured(sides)

    @contextmanager
    def _sides(self) -> Iterator[tuple[ReplaySide, ReplaySide]]:
        """Make catalogues of the claim's own files until the end."""
        with temporary_folder("prism-claim-") as folder:
            folder.chmod(0o755)  # the jail's user is another one
            kernel, baseline = self.claim.sides
            made = [catalogue_at(folder / name, contents_of(side, self.claim.files))
                    for name, side in (("kernel", kernel), ("baseline", baseline))]  # fmt: skip
            yield (
                ReplaySide(kernel, made[0], case_in(made[0], kernel)),
                ReplaySide(baseline, made[1], case_in(made[1], baseline)),
            )

    def _jailed(self, sides: Sequence[ReplaySide]) -> ReplayAnswer:
        """Verify device code that is not here in a jail; its time is not measured."""
        wrong = next(filter(None, map(self._checks.wrong_in_jail, _with_code(sides))), None)
        if wrong:
            return ReplayAnswer("not reproduced", wrong)
        return _open("its device code is not in the catalogue here, so it ran in a jail; --trust-source measures it")

    def _verified_and_measured(self, sides: tuple[ReplaySide, ReplaySide]) -> ReplayAnswer:
        """Measure both sides where this machine can, else verify them on the emulator."""
        name = self.request.backend or self.claim.backend
        try:
            backend = open_backend(name)
        except BackendUnavailable as error:
            return self._emulated(sides, f"{name}: {error}")
        facts = backend.facts()
        self._place, self._board = (backend.name, str(facts["device"])), str(facts.get("uuid") or "")
        hindrance = self._hindrance(backend)
        return self._emulated(sides, hindrance) if hindrance else self._measured(sides)

    def _hindrance(self, backend: Backend) -> str | None:
        """Return why nothing is measured on the backend; None where its ratio can be compared."""
        if backend.name != self.claim.backend:
            return f"it was measured on the backend {self.claim.backend}; here is {backend.name}"
        version = self.claim.protocol.settings.get("version")
        if version != PROTOCOL:
            return f"it was measured by version {version} of the protocol; here is version {PROTOCOL}"
        if self._place[1] != self.claim.device and not self.claim.ceilings:
            return f"it was measured on {self.claim.device}, without ceilings to scale by; here is {self._place[1]}"
        return None

    def _emulated(self, sides: Sequence[ReplaySide], why: str) -> ReplayAnswer:
        """Verify both sides on the CPU, and answer what stays open."""
        wrong = None
        try:
            emulator = open_backend("emulator")
            wrong = next(filter(None, (self._checks.wrong_outputs(emulator, one) for one in _with_code(sides))), None)
        except BackendUnavailable as error:
            self._checks.found.append(ReplayCheck("outputs", "open", str(error)))
        return ReplayAnswer("not reproduced", wrong) if wrong else _open(f"{why}; its time stays open")

    def _measured(self, sides: tuple[ReplaySide, ReplaySide]) -> ReplayAnswer:
        """Measure both sides in turn, verified on a seed that is drawn now, and compare the ratios."""
        effort = ClaimEffort(
            self._place[0], self.request.processes, drawn_seeds(), self.request.report, self.request.ceilings
        )
        contest = self.request.contest or self._contest(sides, effort)
        for side in (contest.kernel, contest.baseline):
            result = contest.records[side[0]].case(side[1])
            if result and result.status in ("wrong", "crashed"):
                words = f"{side[1]}: {result.reason}"
                self._checks.found.append(ReplayCheck(f"outputs of {side[1]}", "wrong", words))
                return ReplayAnswer("not reproduced", words)
        try:
            self._here = ratio_of(contest)
        except ResultsError as error:
            return _open(str(error))
        entries = contest.case(contest.kernel).verification
        seeds = list(dict.fromkeys(str(entry["seed"]) for entry in entries if "seed" in entry))
        words = f"both sides, on {'seeds' if len(seeds) > 1 else 'seed'} {' and '.join(seeds)}"
        self._checks.found.append(ReplayCheck("outputs", "right", words))
        limited = with_ceilings(contest.records[contest.kernel[0]], effort)
        if self._place[1] == self.claim.device:
            if impossible := self._checks.impossible_time(sides, contest, limits_of(limited)):
                return ReplayAnswer("not reproduced", impossible)
        compared = self._compared(limited)
        if (other := self._checks.other_peer(contest)) is None:
            return compared
        if compared.word in ("not reproduced", "partly reproduced"):
            return _open(f"{compared.because}; {other}")
        return ReplayAnswer(compared.word, f"{compared.because}; {other}")

    def _contest(self, sides: tuple[ReplaySide, ReplaySide], effort: ClaimEffort) -> ClaimContest:
        kernel, baseline = sides
        name = kernel.case.name
        if baseline.is_peer:
            record = measured_peers(kernel.catalogue, kernel.case, effort)
            return ClaimContest(self.claim.metric, (record,), (0, name, "kernel"), (0, name, baseline.side.subject))
        builds = (
            Build("baseline", baseline.catalogue, (baseline.case,)), Build("kernel", kernel.catalogue, (kernel.case,)),
        )  # fmt: skip
        records = measured_builds(builds, effort)
        return ClaimContest(self.claim.metric, records, (1, name, "kernel"), (0, baseline.case.name, "kernel"))

    def _compared(self, limited: RunRecord) -> ReplayAnswer:
        """Compare the ratios; that of another kind of device by its ceilings and those of the record `limited`."""
        if self._place[1] == self.claim.device:
            return answer(self.claim.ratio, self._here)
        found = scaled(self.claim.ratio, self.claim.ceilings, ceilings_of(limited))
        if found is None:
            return _open(f"it was measured on {self.claim.device}, whose ceilings were not measured here")
        self._expected, words = found
        compared = answer(self.claim.ratio, self._here, self._expected)
        return ReplayAnswer(compared.word, f"{compared.because}; {words}")


def drawn_seeds() -> tuple[int, int]:
    """Return the seeds of a verification: one that nobody knew before, and 0."""
    return secrets.randbelow(1 << 31) + 2, 0


def _with_code(sides: Sequence[ReplaySide]) -> list[ReplaySide]:
    return [one for one in sides if not one.is_peer]


def _open(because: str) -> ReplayAnswer:
    return ReplayAnswer("cannot be decided here", because)
