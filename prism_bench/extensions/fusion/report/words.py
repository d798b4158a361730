"""The ledger of fusion in words: ratios with their interval, parts with their sign, reasons as numbered notes."""

from collections.abc import Callable, Iterator

from prism_bench.extensions.fusion.benefit import Sources
from prism_bench.extensions.fusion.benefit.saving import Speedup
from prism_bench.report.cells import GAP, times_text
from prism_bench.report.machine import machine_name
from prism_bench.units import rate_text, share_text, time_text

LEGEND = (
    "cold: one evaluation, caches cleared, the host's launches hidden; hot: its launches replayed in a CUDA graph; "
    "host: what the host spends to launch them; issued: the longer of host and hot, as separate launches go; gaps: "
    "the device waits for the host; bytes: compulsory ones of every launch added up; temporaries: handed on from "
    "launch to launch; workspace: a launch's own; unexplained: saved by "
    "neither fewer launches nor fewer bytes, such as by faster arithmetic or shorter waits of dependent launches"
)
CACHED = "the bytes that differ fit in the last cache, where they cost less than at the copy ceiling"


def heading(sources: Sources) -> str:
    """Return where the figures are from, and what a launch and a byte cost there."""
    record, prices = sources.record, sources.prices()
    if record is None:
        return f"no times: {sources.missing}"
    launch, rate = time_text(prices.launch), rate_text(prices.bandwidth, "B/s")
    cut = "" if record.complete else "; the run was cut short"
    return (f"{machine_name(record)}, {record.created}: one more launch costs {launch} at least, the copy ceiling is "
            f"{rate}{cut}")  # fmt: skip


class Footnotes:
    """Reasons in the order in which they were met, each printed once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str | None) -> str:
        """Return the mark to print instead of the missing figure."""
        return f"[{self._numbers.setdefault(reason, len(self._numbers) + 1)}]" if reason else GAP

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield every number with its reason."""
        return ((number, reason) for reason, number in self._numbers.items())


def ratio_words(speedup: Speedup) -> str:
    """Return `2.82x (2.79 to 2.85)`; a dash where there is no ratio."""
    if speedup.ratio is None:
        return GAP
    interval = f" ({speedup.low:.2f} to {speedup.high:.2f})" if speedup.low is not None else ""
    return times_text(speedup.ratio) + interval


def signed(seconds: float | None) -> str:
    """Return `1.45 us`, `-2.10 us`."""
    if seconds is None:
        return GAP
    return f"-{time_text(-seconds)}" if seconds < 0 else time_text(seconds)


def percent(share: float) -> str:
    """Return the share in words, `<0.1 %` where it is nearly nothing."""
    return share_text(share) if share >= 0.0005 else "<0.1 %"


def verdict(kept: bool | None, bad: str) -> str:
    """Return `passed` and `failed`, `met` and `missed`; `unmeasured` where it is not decided."""
    good = {"failed": "passed", "missed": "met"}[bad]
    return "unmeasured" if kept is None else good if kept else bad


def quantity_text(quantity: str) -> Callable[[float], str]:
    """Return how a figure of the plan's table is written."""
    return {"time": time_text, "launches": lambda count: f"{count:.0f}"}.get(quantity, share_text)
