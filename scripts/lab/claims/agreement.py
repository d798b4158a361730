"""How often replays agree with the claims of a repository: on the same board, on another, on another kind of GPU."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab.claims.own_files import answer_files, answer_in, claim_files
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import Claim, read_bytes
from prism_bench.extensions.claims.replaying import Replay, meet
from prism_bench.record.run_record import RunRecord
from prism_bench.units import count_text

Where = Literal["the same board", "another board of the same kind", "a board of the same kind", "another kind of GPU"]


@dataclass(frozen=True)
class AnsweredClaim:
    """An answer about a kept claim, in the file `path`, and where its board is seen from that of the claim."""

    path: Path
    claim: Claim
    replay: Replay
    where: Where

    @property
    def meets(self) -> bool:
        """Whether the interval here has a value in common with the one that was to be expected here."""
        return self.replay.here is not None and meet(self.replay.expected, self.replay.here)


def answered(folder: Path) -> Iterator[AnsweredClaim]:
    """Yield the answers about the claims of a folder; those about an earlier version of a claim are left out."""
    for path in claim_files(folder):
        claim, records = checked(read_bytes(path), str(path))
        for file in answer_files(path):
            if replay := answer_in(file, claim):
                yield AnsweredClaim(file, claim, replay, _where(claim, records, replay))


def _where(claim: Claim, records: tuple[RunRecord, ...], replay: Replay) -> Where:
    if replay.device != claim.device:
        return "another kind of GPU"
    boards = {uuid for side in claim.sides for uuid in _boards(records[side.record], side.case)}
    if not boards or not replay.board:
        return "a board of the same kind"
    return "the same board" if replay.board in boards else "another board of the same kind"


def _boards(record: RunRecord, name: str) -> tuple[str, ...]:
    """Return the UUID of the board that measured the case; of all boards of the record where that is unknown."""
    case = record.case(name)
    board = record.board_of(case) if case else None
    return (board,) if board else record.uuids


def agreement_lines(folder: Path) -> Iterator[str]:
    """Yield for each kind of place how many replays measured, and how many of their intervals meet the claim's."""
    found: dict[Where, list[AnsweredClaim]] = {}
    for one in answered(folder):
        if one.replay.here:
            found.setdefault(one.where, []).append(one)
    for where, replays in sorted(found.items()):
        meeting = sum(one.meets for one in replays)
        boards = len({one.replay.board or one.path for one in replays})
        yield (
            f"{where}: the intervals meet in {meeting} of {count_text(len(replays), 'replay')} "
            f"({100 * meeting / len(replays):.0f} %) on {count_text(boards, 'board')}"
        )
        yield from (f"  {one.path}: {one.replay.answer.because}" for one in replays if not one.meets)
