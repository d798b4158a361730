"""A tuning session as a table and as JSON: what was tried, what is launched from now on, what the default costs."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.tuning import Decided, mean_speedup
from prism_bench.spec.case import Case
from prism_bench.spec.workload import written
from prism_bench.units import count_text, ratio_text, share_text, time_text


def session_view(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> Group:
    """Return a table with a row for each case, and lines about all cases together."""
    table = Table(title="launch configurations", title_justify="left")
    for name in ("case", "tried", "default", "launched from now on", "time", "speedup", "the default costs", "why"):
        table.add_column(name, overflow="fold", justify="right" if name in ("tried", "default", "time") else "left")
    for one in decisions:
        table.add_row(*_row(one))
    return Group(table, *[Text(line) for line in _words(decisions, left, seconds)])


def _row(one: Decided) -> tuple[RenderableType, ...]:
    tried = f"{one.searched.tried}" + (f" of {one.searched.space}" if one.searched.tried < one.searched.space else "")
    tried += f", {len(one.searched.refused)} refused" if one.searched.refused else ""
    usual, now = one.seconds
    if not one.adopted:
        return (one.searched.default.name, tried, time_text(usual), "the default", "", "", "", one.reason)
    low, high = one.interval
    speedup = Text(f"{ratio_text(one.speedup)} ({low:.3f} to {high:.3f})", "green")
    return (one.searched.default.name, tried, time_text(usual), written(one.chosen.configuration), time_text(now),
            speedup, f"{time_text(usual - now)} of each launch", one.reason)  # fmt: skip


def _words(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> Iterator[str]:
    adopted = [one for one in decisions if one.adopted]
    mean, of_these = mean_speedup(decisions), mean_speedup(adopted)
    words = f"{len(adopted)} of {count_text(len(decisions), 'case')} leave their default"
    words += f": {ratio_text(of_these)} among themselves, {ratio_text(mean)} over all" if adopted else ""
    tried = sum(one.searched.tried for one in decisions)
    yield f"{words} (geometric means). {count_text(tried, 'configuration')} tried in {seconds:.0f} s."
    for one in decisions:
        reasons = list(one.searched.refused.items())
        more = f" ({len(reasons) - 1} more of this case)" if len(reasons) > 1 else ""
        yield from (f"refused: {task}: {reason}{more}" for task, reason in reasons[:1])
    if left:
        yield f"not tuned, for lack of time: {', '.join(case.name for case in left)}"


def session_json(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> dict[str, Any]:
    """Return the session as plain values; seconds are medians, each configuration has its time of the search."""
    return {
        "seconds": round(seconds, 1),
        "mean_speedup": mean_speedup(decisions),
        "left": [case.name for case in left],
        "cases": [_plain(one) for one in decisions],
    }


def _plain(one: Decided) -> dict[str, Any]:
    usual, now = (None if value != value else value for value in one.seconds)
    low, high = one.interval
    return {
        "case": one.searched.default.name,
        "space": one.searched.space,
        "tried": one.searched.tried,
        "refused": dict(one.searched.refused),
        "searched": dict(one.searched.seconds),
        "default": one.searched.default.configuration,
        "configuration": one.chosen.configuration,
        "adopted": one.adopted,
        "default_seconds": usual,
        "seconds": now,
        "speedup": one.speedup,
        "interval": [low, high],
        "default_costs": share_text(one.speedup - 1) if one.adopted else None,
        "reason": one.reason,
    }
