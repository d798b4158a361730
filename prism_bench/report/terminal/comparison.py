"""A comparison in the terminal and as plain values: the count, the changed and the doubtful cases, the control."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.comparison import (
    UNMEASURED,
    ComparedCase,
    RecordComparison,
    comparison_findings,
)
from prism_bench.analysis.compare.control import ENOUGH, Control, shift_words
from prism_bench.analysis.compare.estimate import Estimate
from prism_bench.analysis.findings import value_text
from prism_bench.report.selection import ADDED, selected_json, selection_json
from prism_bench.report.terminal.selection import selection_view
from prism_bench.units import share_text

# Of machine code and launches, as a record has them on both sides: null where it does not know.
RESOURCES = ("registers", "spill_bytes", "shared_bytes", "launches", "plan")
STYLES = {
    "slower": "bold red", "faster": "green", "same": "dim", "inconclusive": "yellow", "not compared": "yellow",
    "same machine code": "dim",
}  # fmt: skip
_HIDDEN = ("same", UNMEASURED)


def comparison_view(comparison: RecordComparison, everything: bool = False) -> RenderableType:
    """Return what `compare` prints: the counts, and a table of the cases that differ, or of `everything`."""
    shown = [one for one in comparison.cases if everything or one.verdict not in _HIDDEN]
    parts = [_headline(comparison)]
    parts += [_table(shown, comparison.names)] if shown else []
    parts += selection_view(comparison.selection) if comparison.selection else []
    parts += [_control(comparison.control)] if comparison.control.cases else []
    parts += [Text(doubt, style="bold red") for doubt in comparison.doubts]
    parts += [Text(note, style="yellow") for note in comparison.notes]
    return Group(*parts)


def comparison_json(comparison: RecordComparison) -> dict[str, Any]:
    """Return the comparison as plain JSON values; unknown ones are null."""
    control, selection = comparison.control, comparison.selection
    roles = {one.case: selected_json(one) for one in selection.cases} if selection else {}
    return {
        "a": comparison.names[0],
        "b": comparison.names[1],
        "backend": comparison.backend,
        "device": comparison.device,
        "commits": list(comparison.commits),
        "complete": comparison.complete,
        "counts": dict(comparison.counts()),
        "cases": [{**_plain(one), **roles.get(one.case, ADDED if selection else {})} for one in comparison.cases],
        "control": _plain_control(control),
        "notes": list(comparison.notes),
        "findings": [vars(finding) for finding in comparison_findings(comparison)],
        **({"selection": selection_json(selection)} if selection else {}),
    }


def _plain_control(control: Control) -> dict[str, Any]:
    """Return the control: `shift` is the median ratio of its cases, `factor` + `offset` / seconds is divided out."""
    return {
        "cases": control.cases, "changed": list(control.changed), "chance": control.chance, "shift": control.shift,
        "widening": control.widening, "excess": control.excess, "used": control.used, "factor": control.fit.factor,
        "offset": control.fit.offset, "divided_out": shift_words(control),
    }  # fmt: skip


def _headline(comparison: RecordComparison) -> Text:
    words = Text()
    for verdict, count in comparison.counts().items():
        if count:
            words.append(f"{count} {verdict}  ", style=STYLES[verdict])
    words.append(f"{comparison.names[1]} against {comparison.names[0]}", style="dim")
    return words


def _table(shown: Sequence[ComparedCase], names: tuple[str, str]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    grid.add_column("case", overflow="fold")
    for name in ("metric", *names, "ratio", "interval", "in cycles", "noise floor"):
        grid.add_column(name, justify="left" if name == "metric" else "right", no_wrap=name not in names)
    grid.add_column("verdict", overflow="fold")
    for one in sorted(shown, key=lambda one: list(STYLES).index(one.verdict)):
        grid.add_row(*_cells(one), _verdict(one))
    return grid


def _cells(one: ComparedCase) -> tuple[RenderableType, ...]:
    times = [value_text(one.metric, seconds) for seconds in one.seconds]
    if one.judgement is None:
        return (Text(one.case), one.metric, *times, "-", "-", "-", "-")
    found, in_cycles = one.judgement.estimate, one.judgement.in_cycles
    cycles = f"{in_cycles.ratio:.3f}x" if in_cycles else "-"
    floor = one.judgement.floor
    floor_words = share_text(floor) if floor < 10 else "-"
    return (Text(one.case), one.metric, *times, f"{found.ratio:.3f}x", _interval_text(found), cycles, floor_words)


def _interval_text(found: Estimate) -> str:
    low, high = found.interval()
    return f"{low:.3f} to {high:.3f}" if high < float("inf") else "-"


def _verdict(one: ComparedCase) -> Text:
    text = Text(one.verdict, style=STYLES[one.verdict])
    return text.append(f": {one.reason}", style="dim") if one.reason else text


def _control(control: Control) -> Text:
    words = f"control: {control.cases} cases of identical code, median ratio {control.shift:.3f}, "
    if not control.used:
        return Text(f"{words}too few to say anything of the machine: that takes {ENOUGH}", style="dim")
    shift = shift_words(control)
    words += f"divided out: {shift}, " if shift else ""
    words += f"{len(control.changed)} of them changed by their times alone"
    words += f", every error widened {control.widening:.2f}x" if control.widening > 1 else ""
    return Text(words, style="bold red" if control.excess else "dim")


def _plain(one: ComparedCase) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "case": one.case, "metric": one.metric, "verdict": one.verdict, "reason": one.reason,
        "identical": one.identical, "seconds": list(one.seconds),
        **{name: [code.get(name) for code in one.codes] for name in RESOURCES},
    }  # fmt: skip
    if one.judgement is None:
        return plain
    judgement = one.judgement
    return {
        **plain,
        **_estimate(judgement.estimate),
        "p": judgement.estimate.p,
        "by_times": judgement.verdict,
        "floor": _finite(judgement.floor),
        "within": judgement.within,
        "shift": judgement.shift.ratio,
        "cycles": _estimate(judgement.in_cycles) if judgement.in_cycles else None,
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    low, high = found.interval()
    return {"ratio": found.ratio, "low": low, "high": _finite(high)}


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
