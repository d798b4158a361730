"""A claim and a replay as text for a terminal, and as JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.extensions.claims.answers import AnswerWord
from prism_bench.extensions.claims.derived import interval_text
from prism_bench.extensions.claims.document import Claim, ClaimSide
from prism_bench.extensions.claims.replay_document import Replay
from prism_bench.report.cells import times_text
from prism_bench.units import bytes_text, count_text, time_text

_STYLES: dict[AnswerWord, str] = {
    "reproduced": "green", "not reproduced": "red", "partly reproduced": "yellow", "cannot be decided here": "yellow",
}  # fmt: skip


def claim_json(claim: Claim) -> dict[str, Any]:
    """Return the claim without its files' contents and its records, which its file has."""
    plain: dict[str, Any] = msgspec.to_builtins(claim)
    return {key: value for key, value in plain.items() if key not in ("files", "records")}


def claim_view(claim: Claim) -> RenderableType:
    """Return the sentence, both sides, and what is missing."""
    return Group(Text(claim.sentence, "bold"), *(Text(f"  {line}") for line in _claim_lines(claim)))


def _claim_lines(claim: Claim) -> Iterator[str]:
    for side in claim.sides:
        yield f"{side.name}: {time_text(side.seconds)}{_interval(side)}"
    size = sum(len(one.content) for one in claim.files.values())
    yield (
        f"{claim.metric.replace('_', ' ')}, {count_text(len(claim.files), 'file')} "
        f"of {bytes_text(size)}, {claim.digest}"
    )
    yield from (f"missing: {one}" for one in claim.missing)


def _interval(side: ClaimSide) -> str:
    return f", {time_text(side.low)} to {time_text(side.high)}" if side.low and side.high else ""


def replay_json(replay: Replay) -> dict[str, Any]:
    """Return the replay as plain values."""
    return msgspec.to_builtins(replay)


def replay_view(replay: Replay) -> RenderableType:
    """Return the sentence, the answer, and everything that was looked at."""
    head = Text(replay.answer.word, _STYLES[replay.answer.word]) + Text(f": {replay.answer.because}")
    return Group(Text(replay.sentence), head, *(Text(f"  {line}") for line in _replay_lines(replay)))


def _replay_lines(replay: Replay) -> Iterator[str]:
    if replay.here:
        yield f"here, on {replay.device}: {times_text(replay.here.value)}, {interval_text(replay.here)}"
    for one in replay.checks:
        yield f"{one.what}: {one.result}{f' ({one.words})' if one.words else ''}"
