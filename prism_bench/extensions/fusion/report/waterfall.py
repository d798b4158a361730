"""A chain before and after as bars: one for each stage, and between them where the saved time went.

Where no record has times, the bytes that the stages move are shown instead.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from prism_bench.extensions.fusion.benefit import ChainLedger, StageRow
from prism_bench.extensions.fusion.report.bars import Moved, launched
from prism_bench.units import bytes_text, time_text

_PARTS = (
    ("launches", "fewer launches", "second"),
    ("traffic", "fewer bytes", "third"),
    ("rest", "unexplained", "warm"),
)


@dataclass(frozen=True)
class WaterfallBar:
    """A bar from `start` to `end`, with its name, the name of its ink, and words next to it."""

    name: str
    start: float
    end: float
    ink: str
    words: str


class Waterfall(TypedDict):
    """`unit` (`s` or `B`) and the `bars`: separate launches, what each cause takes off, the fused stage."""

    unit: str
    bars: list[dict[str, Any]]


def waterfall(ledger: ChainLedger) -> Waterfall:
    """Return the bars of a chain, fewer than two where there are no separate launches, or nothing fused."""
    timed = list(_timed(ledger))
    unit, bars = ("s", timed) if len(timed) > 1 else ("B", list(_moved(ledger)))
    return {"unit": unit, "bars": [asdict(bar) for bar in bars]}


def _timed(ledger: ChainLedger) -> Iterator[WaterfallBar]:
    before = ledger.row("baseline")
    base = before.value("cold_time") if before else None
    if base is None:
        return
    yield WaterfallBar("separate launches", 0.0, base, "ink", time_text(base))
    for row in ledger.rows:
        cold = row.value("cold_time")
        if row is not before and cold:
            yield from _stage(row, base, cold)


def _stage(row: StageRow, base: float, cold: float) -> Iterator[WaterfallBar]:
    saved, place = row.savings.get("cold_time"), base
    for attribute, words, ink in _PARTS if saved and saved.rest is not None else ():
        part = getattr(saved, attribute)
        yield WaterfallBar(words, place, place - part, ink, ("−" if part >= 0 else "+") + time_text(abs(part)))
        place -= part
    ratio = row.speedups.get("cold_time")
    times = f", {ratio.ratio:.2f}x" if ratio and ratio.ratio else ""
    yield WaterfallBar(row.stage, 0.0, cold, "accent", f"{time_text(cold)}{times}")


def _moved(ledger: ChainLedger) -> Iterator[WaterfallBar]:
    """Yield the bytes of each stage, from where those of all stages are known."""
    rows = launched(ledger)
    _, moved = Moved().moved(rows)
    for row, own in zip(rows, moved, strict=True):
        first, count = row.stage == "baseline", row.plan.launches
        words = f"{bytes_text(own)}, {count} launch{'es' if count > 1 else ''}"
        yield WaterfallBar("separate launches" if first else row.stage, 0.0, own, "ink" if first else "accent", words)
