"""Replays of the claims that a repository publishes: all that this board has not answered, in one run or two."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.claims.own_files import answer_file, answer_in, claim_files, sides_here
from lab.claims.own_run import OwnRun
from lab.claims.together import Contestants, measured_together, with_ceilings_of
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import PEER, Claim, canonical, read_bytes
from prism_bench.extensions.claims.replaying import ClaimReplay, drawn_seeds
from prism_bench.io.files import write_atomically
from prism_bench.record.run_record import RunRecord


@dataclass(frozen=True)
class OpenClaim:
    """A claim without an answer of this board, where its answer goes, and its `sides` in the catalogue."""

    claim: Claim
    records: tuple[RunRecord, ...]
    place: Path
    sides: Contestants | None


@dataclass
class OwnReplays:
    """Replays the claims of all machines on this board; their code is trusted as the repository's is.

    With `current` those whose code is the catalogue's alone: the others take a run each.
    """

    here: OwnRun
    current: bool = False

    def __post_init__(self) -> None:
        self._measurement = replace(self.here.measurement, seeds=drawn_seeds())

    def replay(self) -> Iterator[tuple[str, int]]:
        """Yield what came of each claim, and its exit code."""
        wanted: list[OpenClaim] = []
        for path in claim_files(self.here.folder):
            place = answer_file(path, self.here.machine, self.here.uuid)
            claim, records = checked(read_bytes(path), str(path))
            if known := answer_in(place, claim):
                yield f"{place}: kept: {known.answer.word}", known.exit_code
            else:
                wanted.append(OpenClaim(claim, records, place, sides_here(claim, self.here.catalogue)))
        yield from self._answered(wanted)

    def _answered(self, wanted: Sequence[OpenClaim]) -> Iterator[tuple[str, int]]:
        """Answer those whose code is here together: kernels next to peers, then pairs of builds; others one by one."""
        if self.current:
            yield from ((f"{one.place}: left out: its code has changed", 0) for one in wanted if not one.sides)
            wanted = [one for one in wanted if one.sides]
        together = [one for one in wanted if one.sides and one.claim.backend == self.here.backend.name]
        groups = [[one for one in together if _is_pair(one) == pairs] for pairs in (False, True)]
        groups += [[one] for one in wanted if one not in together]
        for group in filter(None, groups):
            if self.here.left <= 0:
                yield from ((f"{one.place}: left for the next call", 0) for one in group)
            else:
                yield from self._measured(group)

    def _measured(self, group: Sequence[OpenClaim]) -> Iterator[tuple[str, int]]:
        sides = [one.sides for one in group if one.sides]
        records = measured_together(self.here.catalogue, sides, self._measurement) if sides else None
        if records:
            self._measurement = with_ceilings_of(self._measurement, records)
        for open_claim in group:
            claim, pair = open_claim.claim, open_claim.sides
            peer = claim.baseline.subject.removeprefix(PEER)
            replay = ClaimReplay(
                claim,
                open_claim.records,
                self.here.catalogue,
                self.here.backend.name,
                self.here.processes,
                trusted=True,
                contest=records.contest(pair, claim.metric, peer) if records and pair else None,
                ceilings=self._measurement.ceilings,
            ).replay()
            write_atomically(open_claim.place, f"{canonical(replay)}\n".encode())
            yield f"{open_claim.place}: {replay.answer.word}: {replay.answer.because}", replay.exit_code


def _is_pair(one: OpenClaim) -> bool:
    return one.sides is not None and one.sides.baseline is not None
