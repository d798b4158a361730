"""A comparison in the terminal and as plain values: the count, the changed and the doubtful cases, the control."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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
from prism_bench.analysis.findings import metric_words, value_text
from prism_bench.report.selection import ADDED, selected_json, selection_json
from prism_bench.report.terminal.fitted_table import FittedTable
from prism_bench.report.terminal.fitting import alike, middle_cut, names_text
from prism_bench.report.terminal.selection import selection_view
from prism_bench.spec.metric import STAND_INS, timed_on
from prism_bench.units import count_text, share_text

# Of machine code and launches, as a record has them on both sides: null where it does not know.
RESOURCES = ("language", "compiler", "registers", "spill_bytes", "shared_bytes", "launches", "plan")
STYLES = {
    "slower": "bold red", "faster": "green", "same": "dim", "inconclusive": "yellow", "not compared": "yellow",
    "same machine code": "dim",
}  # fmt: skip
_DISPENSABLE = ("in cycles", "noise floor", "interval")  # of the table's columns, the first to go first
_SHORT = 20  # characters of a name that fits above a column of times
_MOST = 10  # cases of a verdict
_HIDDEN = ("same", UNMEASURED)


def comparison_view(comparison: RecordComparison, everything: bool = False) -> RenderableType:
    """Return what `compare` prints.

    What cannot be trusted comes first, then the counts, and a table of the cases that differ, or of `everything`: by
    verdict, the largest change first.
    """
    found = sorted(comparison.cases, key=lambda one: (list(STYLES).index(one.verdict), _distance(one)))
    shown = found if everything else _first([one for one in found if one.verdict not in _HIDDEN])
    parts: list[RenderableType] = [*_untrusted(comparison), _headline(comparison)]
    stand_in = STAND_INS.get(comparison.backend)
    parts += [Text(stand_in.sentence, style="yellow")] if stand_in else []
    parts += [_table(shown, _titles(comparison.names))] if shown else []
    if any(one.machine for one in shown):
        words = "what it did to the case between the sides; the times differ by the ratio times it"
        parts.append(Text(f"  machine: {words}", style="dim"))
    parts += _left_out(found, shown) if not everything else []
    parts += _reasons(shown)
    parts += selection_view(comparison.selection) if comparison.selection else []
    parts += [_control(comparison.control)] if comparison.control.cases else []
    parts += [Text(note, style="yellow") for note in comparison.notes]
    return Group(*parts)


def _untrusted(comparison: RecordComparison) -> Iterator[Text]:
    """Yield why the comparison, whatever it shows, cannot be trusted."""
    untrusted = [one for one in comparison_findings(comparison) if one.gravity == "untrusted"]
    for group in alike(("untrusted", one.case or "", one.message) for one in untrusted):
        cases = (f" ({names_text(group.cases, 2)})", "dim") if group.cases[0] else ""
        yield Text.assemble(("untrusted: ", "bold red"), group.text, cases)
    if not comparison.complete:
        yield Text.assemble(("incomplete: ", "bold yellow"), "the measurement was cut short")


def _first(found: Sequence[ComparedCase]) -> list[ComparedCase]:
    """Return all slower and broken cases, and of every other verdict the first few whose ratio is farthest from 1."""
    kept: list[ComparedCase] = []
    for verdict in dict.fromkeys(one.verdict for one in found):
        same = [one for one in found if one.verdict == verdict]
        few = sorted(same, key=_distance)[:_MOST]
        kept += same if verdict == "slower" else [one for one in same if one.gravity != "note" or one in few]
    return kept


def _distance(one: ComparedCase) -> float:
    return -abs(math.log(one.judgement.estimate.ratio)) if one.judgement else 0.0


def _left_out(found: Sequence[ComparedCase], shown: Sequence[ComparedCase]) -> Iterator[Text]:
    counts = Counter(one.verdict for one in found if one.verdict not in _HIDDEN)
    counts -= Counter(one.verdict for one in shown)
    if counts:
        words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        yield Text(f"  and {words}: --all shows every case", style="dim")


def _reasons(shown: Sequence[ComparedCase]) -> Iterator[Text]:
    """Yield the reasons of verdicts, alike ones once with the cases that they are about."""
    for verdict in dict.fromkeys(one.verdict for one in shown):
        # What cannot be trusted is printed first.
        rows = [one for one in shown if one.verdict == verdict and one.gravity != "untrusted"]
        complaints = [(verdict, one.case, one.reason) for one in rows if one.reason]
        for group in alike(complaints):
            yield Text.assemble((f"{verdict}: ", STYLES[group.kind]), group.text,
                                (f" ({names_text(group.cases, 2)})", "dim"))  # fmt: skip


def _titles(names: tuple[str, str]) -> tuple[str, str]:
    """Return the headers of the two sides: their names where these are short, else A and B."""
    return names if max(map(len, names)) <= _SHORT and len(set(names)) == 2 else ("A", "B")


def comparison_json(
    comparison: RecordComparison, given: tuple[str | None, Sequence[str], str | None] | None = None
) -> dict[str, Any]:
    """Return the comparison as plain JSON values; unknown ones are null.

    `given` are the catalogue, the labels and the metric that the command line named, by which it is repeated.
    """
    control, selection = comparison.control, comparison.selection
    roles = {one.case: selected_json(one) for one in selection.cases} if selection else {}
    return {
        "a": comparison.names[0],
        "b": comparison.names[1],
        "backend": comparison.backend,
        "timed": timed_on(comparison.backend),
        "device": comparison.device,
        "commits": list(comparison.commits),
        "complete": comparison.complete,
        "counts": dict(comparison.counts()),
        "cases": [{**_plain(one), **roles.get(one.case, ADDED if selection else {})} for one in comparison.cases],
        "control": _plain_control(control),
        "notes": list(comparison.notes),
        **({"options": {"catalogue": given[0], "labels": list(given[1]), "metric": given[2]}} if given else {}),
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
    a, b = comparison.names
    if _titles(comparison.names) == comparison.names:
        return words.append(f"{b} against {a}", style="dim")
    return words.append(f"\nB {b}\nA {a}", style="dim")


def _table(shown: Sequence[ComparedCase], titles: tuple[str, str]) -> FittedTable:
    """Return the table of cases: the ratio and the verdict always stay."""
    metrics = {one.metric for one in shown}

    def make(dropped: Collection[str], names: int) -> Table:
        return _grid(shown, titles, names, {*dropped, *(("metric",) if len(metrics) == 1 else ())})

    return FittedTable(make, {name: name for name in _DISPENSABLE}, max(len(one.case) for one in shown))


def _grid(shown: Sequence[ComparedCase], titles: tuple[str, str], names: int, dropped: Collection[str]) -> Table:
    machine = ("machine",) if any(one.machine for one in shown) else ()
    shares = ("ratio", *machine, *_DISPENSABLE[::-1], "verdict")
    columns = [name for name in ("metric", *titles, *shares) if name not in dropped]
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    grid.add_column("case", no_wrap=True)
    for name in columns:
        grid.add_column(name, justify="left" if name in ("metric", "verdict") else "right", no_wrap=True)
    for one in shown:
        cells = _cells(one, titles)
        grid.add_row(Text(middle_cut(one.case, names)), *(cells[name] for name in columns))
    return grid


def _cells(one: ComparedCase, titles: tuple[str, str]) -> dict[str, RenderableType]:
    """Return the cells of a case by column; a dash where it could not be judged."""
    times = dict(zip(titles, (value_text(one.metric, seconds) for seconds in one.seconds), strict=True))
    cells: dict[str, RenderableType] = {"metric": metric_words(one.metric), **times}
    cells |= dict.fromkeys(("ratio", "machine", *_DISPENSABLE), "-") | {
        "verdict": Text(one.verdict, style=STYLES[one.verdict])
    }
    if one.judgement is None:
        return cells
    found, in_cycles, floor = one.judgement.estimate, one.judgement.in_cycles, one.judgement.floor
    return cells | {
        "ratio": f"{found.ratio:.3f}x", "machine": f"{one.judgement.shift.ratio:.3f}x",
        "interval": _interval_text(found),
        "in cycles": f"{in_cycles.ratio:.3f}x" if in_cycles else "-",
        "noise floor": share_text(floor) if floor < 10 else "-",
    }  # fmt: skip


def _interval_text(found: Estimate) -> str:
    low, high = found.interval()
    return f"{low:.3f} to {high:.3f}" if high < float("inf") else "-"


def _control(control: Control) -> Text:
    words = f"control: {count_text(control.cases, 'case')} of identical code, median ratio {control.shift:.3f}, "
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
        "build_change": one.build_change.words if one.build_change else None,
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
