"""What the bars of a picture of fusion show: times where a record has them, else the bytes that move."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from prism_bench.extensions.fusion.benefit import ChainLedger, StageRow
from prism_bench.extensions.fusion.benefit.published import STAGES, published_rows
from prism_bench.extensions.fusion.report.words import ratio_words
from prism_bench.report.svg import tick
from prism_bench.units import bytes_text, time_text


@dataclass(frozen=True)
class StageBars:
    """The lengths of a stage's bars, the longest first, each with its colour's name; words next to them."""

    lengths: tuple[tuple[float, str], ...]
    words: str


@dataclass(frozen=True)
class Panel:
    """The bars of one chain at one workload, None where there is nothing to show, with words for axis and title."""

    axis: str
    under_title: str
    bars: tuple[StageBars | None, ...]


def launched(ledger: ChainLedger) -> list[StageRow]:
    """Return the stages that have bars: what is served has another clock, and is in the tables alone."""
    return [row for row in ledger.rows if row.plan.launches]


class Times:
    """Cold times on the device, solid; behind them, pale, where the host takes longer to issue the launches."""

    legend: ClassVar[Mapping[str, str]] = {
        "before": "separate launches, cold time on the device",
        "after": "fused, and times faster",
        "pale": "longer where the host issues the launches one by one",
    }

    def shows(self, ledger: ChainLedger) -> bool:
        """Return whether the baseline and a fused stage have times."""
        before = ledger.row("baseline")
        fused = [row for row in ledger.rows if row is not before and row.value("cold_time")]
        return bool(before and before.value("cold_time") and fused)

    def panel(self, ledger: ChainLedger) -> Panel:
        """Return the bars of a chain."""
        rows = launched(ledger)
        most = max(map(self._longest, rows))
        unit, scale = ("ms", 1e3) if most >= 1e-3 else ("µs", 1e6)
        return Panel(f"{unit} per evaluation", self._under(ledger), tuple(self._bar(row, scale) for row in rows))

    def _under(self, ledger: ChainLedger) -> str:
        """Return the workload, and what was published of the chain without one."""
        quoted = next((one for one in published_rows() if one.quantity == "time" and ledger.chain in one.chains), None)
        if quoted is None:
            return ledger.workload
        times = ", ".join(f"{quoted.stages[stage] * 1e6:.0f}" for stage in STAGES)
        return f"{ledger.workload}; published (no size): {times} µs"

    def _bar(self, row: StageRow, scale: float) -> StageBars | None:
        cold = row.value("cold_time")
        if cold is None:
            return None
        longer = self._longest(row)
        behind = ((longer * scale, "pale"),) if longer > cold else ()
        return StageBars((*behind, (cold * scale, colour(row))), self._words(row, longer if behind else None))

    def _words(self, row: StageRow, issued: float | None) -> str:
        """Return `20.0 µs, 1.72x` above `40.0 µs issued, 417 kB`, without the middle where the device takes longer."""
        first = [tick(time_text(row.value("cold_time")))]
        if "cold_time" in row.speedups:
            first.append(ratio_words(row.speedups["cold_time"]))
        second = [f"{tick(time_text(issued))} issued"] if issued else []
        return f"{', '.join(first)}\n{', '.join([*second, bytes_text(row.plan.bytes)])}"

    def _longest(self, row: StageRow) -> float:
        return max(row.value("cold_time") or 0.0, row.value("issued") or 0.0)


class Moved:
    """Bytes of one evaluation, as far as all its stages know them: by counters, on the emulator, or by the plans."""

    legend: ClassVar[Mapping[str, str]] = {"before": "bytes that separate launches move",
              "after": "bytes that fused forms move; no times were measured"}  # fmt: skip

    def shows(self, ledger: ChainLedger) -> bool:
        """Return whether there is a baseline and a fused stage."""
        return ledger.row("baseline") is not None and len(launched(ledger)) > 1

    def panel(self, ledger: ChainLedger) -> Panel:
        """Return the bars of a chain."""
        rows = launched(ledger)
        how, moved = self.moved(rows)
        unit, scale = next((unit, scale) for unit, scale in (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("B", 1.0))
                           if max(moved) * scale >= 1 or unit == "B")  # fmt: skip
        bars = (self._bar(row, own, moved[0], scale) for row, own in zip(rows, moved, strict=True))
        return Panel(f"{unit} per evaluation, {how}", ledger.workload, tuple(bars))

    def moved(self, rows: Sequence[StageRow]) -> tuple[str, list[float]]:
        """Return the bytes of all stages, and from where they are."""
        for name, how in (("dram_bytes", "counted in memory"), ("emulated", "counted on the emulator")):
            values = [found for row in rows if (found := row.value(name))]
            if len(values) == len(rows):
                return how, values
        return "by the plans", [float(row.plan.bytes) for row in rows]

    def _bar(self, row: StageRow, own: float, before: float, scale: float) -> StageBars:
        """Return `384 kB, -11 %` above `7 temporaries, 15.6 kB`."""
        less = [] if row.stage == "baseline" or not before else [f"{own / before - 1:+.0%}".replace("%", " %")]
        count, size = len(row.plan.temporaries), bytes_text(row.plan.temporary_bytes)
        kept = f"{count} temporar{'y' if count == 1 else 'ies'}, {size}" if count else "no temporaries"
        return StageBars(((own * scale, colour(row)),), f"{', '.join([bytes_text(own), *less])}\n{kept}")


def colour(row: StageRow) -> str:
    """Return the name of the stage's colour."""
    return "before" if row.stage == "baseline" else "after"
