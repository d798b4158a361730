"""A comparison in the terminal and as plain values, with its noise floors and bisections."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import exp
from typing import TypedDict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.comparison import UNMEASURED, ComparedCase, RecordComparison, comparison_findings
from prism_bench.analysis.compare.noise import ENOUGH, Control, Noise, shift_words
from prism_bench.analysis.compare.selection import SelectedCase, Selection
from prism_bench.analysis.run_analysis import metric_words
from prism_bench.compilation.listing import CodeDifference
from prism_bench.report.plain import EntryDifferenceJson, alike, backend_text, code_difference_json
from prism_bench.report.terminal.tables import FittedColumn, FittedTable, fitted, middle_cut, names_text
from prism_bench.report.terminal.verification import code_difference_view
from prism_bench.spec.metric import STAND_INS, timed_on, value_text
from prism_bench.units import change_range_text, change_text, count_text, duration_text, share_text
from prism_bench.workflows.bisecting import Bisection, HistoryNode, difference_at

STYLES = {
    "slower": "bold red", "faster": "green", "same": "dim", "inconclusive": "yellow", "not compared": "yellow",
    "same machine code": "dim",
}  # fmt: skip
_DISPENSABLE = ("in cycles", "noise floor", "interval")  # of the table's columns, the first to go first
_SHORT = 20  # characters of a name that fits above a column of times
_MOST = 10  # cases of a verdict
_HIDDEN = ("same", UNMEASURED)
_DIFFERENCES = 5  # of machine code; --json has all


def comparison_view(comparison: RecordComparison, everything: bool = False) -> RenderableType:
    """Return what `compare` prints.

    What cannot be trusted comes first, then the counts, and a table of the cases that differ, or of `everything`: by
    verdict, the largest change first. The last line is the sentence that sums them up.
    """
    cases = sorted(comparison.cases, key=lambda case: (list(STYLES).index(case.verdict), _distance(case)))
    shown = cases if everything else _first([case for case in cases if case.verdict not in _HIDDEN])
    parts: list[RenderableType] = [*_untrusted(comparison), _headline(comparison)]
    stand_in = STAND_INS.get(comparison.backend)
    parts += [Text(stand_in.sentence, style="yellow")] if stand_in else []
    parts += [_table(shown, _titles(comparison.names))] if shown else []
    if any(case.machine for case in shown):
        meaning = "what it did to the case between the sides; the times differ by the ratio times it"
        parts.append(Text(f"  machine: {meaning}", style="dim"))
    parts += _left_out(cases, shown) if not everything else []
    parts += _reasons(shown)
    parts += _selection(comparison.selection) if comparison.selection else []
    parts += [_control(comparison.control)] if comparison.control.cases else []
    parts += [Text(note, style="yellow") for note in comparison.notes]
    parts.append(Text(comparison.sentence(_titles(comparison.names)[1]), style="bold"))
    return Group(*parts)


def _untrusted(comparison: RecordComparison) -> Iterator[Text]:
    """Yield why the comparison, whatever it shows, cannot be trusted."""
    findings = [finding for finding in comparison_findings(comparison) if finding.gravity == "untrusted"]
    for group in alike(("untrusted", finding.case or "", finding.message) for finding in findings):
        cases = (f" ({names_text(group.cases, 2)})", "dim") if group.cases[0] else ""
        yield Text.assemble(("untrusted: ", "bold red"), group.text, cases)
    if not comparison.complete:
        yield Text.assemble(("incomplete: ", "bold yellow"), "the measurement was cut short")


def _headline(comparison: RecordComparison) -> Text:
    text = Text()
    for verdict, count in comparison.counts().items():
        if count:
            text.append(f"{count} {verdict}  ", style=STYLES[verdict])
    a, b = comparison.names
    if _titles(comparison.names) == comparison.names:
        return text.append(f"{b} against {a}", style="dim")
    return text.append(f"\nB {b}\nA {a}", style="dim")


def _titles(names: tuple[str, str]) -> tuple[str, str]:
    """Return the headers of the two sides: their names where these are short, else A and B."""
    return names if max(map(len, names)) <= _SHORT and len(set(names)) == 2 else ("A", "B")


def _first(cases: Sequence[ComparedCase]) -> list[ComparedCase]:
    """Return all slower and broken cases, and of every other verdict the first few whose ratio is farthest from 1."""
    kept: list[ComparedCase] = []
    for verdict in dict.fromkeys(case.verdict for case in cases):
        same = [case for case in cases if case.verdict == verdict]
        few = sorted(same, key=_distance)[:_MOST]
        kept += same if verdict == "slower" else [case for case in same if case.gravity != "note" or case in few]
    return kept


def _distance(case: ComparedCase) -> float:
    return -abs(math.log(case.judgement.estimate.ratio)) if case.judgement else 0.0


def _left_out(cases: Sequence[ComparedCase], shown: Sequence[ComparedCase]) -> Iterator[Text]:
    counts = Counter(case.verdict for case in cases if case.verdict not in _HIDDEN)
    counts -= Counter(case.verdict for case in shown)
    if counts:
        counted = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        yield Text(f"  and {counted}: --all shows every case", style="dim")


def _reasons(shown: Sequence[ComparedCase]) -> Iterator[Text]:
    """Yield the reasons of verdicts, alike ones once with their cases; what cannot be trusted is printed first."""
    for verdict in dict.fromkeys(case.verdict for case in shown):
        cases = [case for case in shown if case.verdict == verdict and case.gravity != "untrusted"]
        for group in alike((verdict, case.case, case.reason) for case in cases if case.reason):
            names = (f" ({names_text(group.cases, 2)})", "dim")
            yield Text.assemble((f"{verdict}: ", STYLES[group.kind]), group.text, names)


# The table of cases: the change and the verdict always stay.


def _table(cases: Sequence[ComparedCase], titles: tuple[str, str]) -> FittedTable:
    several_metrics = ("metric",) if len({case.metric for case in cases}) > 1 else ()
    machine = ("machine",) if any(case.machine for case in cases) else ()
    columns = (*several_metrics, *titles, "change", *machine, *_DISPENSABLE[::-1], "verdict")

    def make(dropped: Collection[str], longest: int) -> Table:
        kept = [name for name in columns if name not in dropped]
        grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
        grid.add_column("case", no_wrap=True)
        for name in kept:
            grid.add_column(name, justify="left" if name in ("metric", "verdict") else "right", no_wrap=True)
        for case in cases:
            cells = _cells(case, titles)
            grid.add_row(Text(middle_cut(case.case, longest)), *(cells[name] for name in kept))
        return grid

    return FittedTable(make, {name: name for name in _DISPENSABLE}, max(len(case.case) for case in cases))


def _cells(case: ComparedCase, titles: tuple[str, str]) -> dict[str, RenderableType]:
    """Return the cells of a case by column; a dash where it could not be judged."""
    cells: dict[str, RenderableType] = {"metric": metric_words(case.metric)}
    cells |= dict(zip(titles, (value_text(case.metric, seconds) for seconds in case.seconds), strict=True))
    cells |= dict.fromkeys(("change", "machine", *_DISPENSABLE), "-")
    cells["verdict"] = Text(case.verdict, style=STYLES[case.verdict])
    if case.judgement is None:
        return cells
    estimate, in_cycles, floor = case.judgement.estimate, case.judgement.in_cycles, case.judgement.floor
    low, high = estimate.interval()
    return cells | {
        "change": change_text(estimate.ratio),
        "machine": change_text(case.judgement.shift.ratio),
        "interval": change_range_text(low, high) if high < float("inf") else "-",
        "in cycles": change_text(in_cycles.ratio) if in_cycles else "-",
        "noise floor": share_text(floor) if floor < 10 else "-",
    }


def _control(control: Control) -> Text:
    text = (
        f"control: {count_text(control.cases, 'case')} of identical code, median change {change_text(control.shift)}, "
    )
    if not control.used:
        return Text(f"{text}too few to say anything of the machine: that takes {ENOUGH}", style="dim")
    shift = shift_words(control)
    text += f"divided out: {shift}, " if shift else ""
    text += f"{len(control.changed)} of them changed by their times alone"
    text += f", every error widened by {share_text(control.widening - 1)}" if control.widening > 1 else ""
    return Text(text, style="bold red" if control.excess else "dim")


# Which cases a comparison measured: how many and why, and what changed of their machine code.


def _selection(selection: Selection) -> Iterator[RenderableType]:
    """Yield the differences of machine code, each once, a line of counts, and a line of times."""
    groups: dict[str, list[SelectedCase]] = {}
    for case in selection.cases:
        if case.differences or case.note:
            groups.setdefault(f"{case.differences}{case.note}", []).append(case)
    for cases in list(groups.values())[:_DIFFERENCES]:
        first = cases[0]
        more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
        yield Text(f"machine code of {first.case}{more}")
        if first.differences:
            yield code_difference_view(code_difference_json(first.differences), first.note)
        else:
            yield Text(f"  {first.note}", style="dim")
    if len(groups) > _DIFFERENCES:
        yield Text(f"{len(groups) - _DIFFERENCES} more differences of machine code: --json lists all", style="dim")
    yield from (Text(line, style="dim") for line in _summary(selection))


def _summary(selection: Selection) -> Iterator[str]:
    reasons = Counter(reason for case in selection.cases for reason in case.reasons)
    why = ", ".join(f"{reason} of {count}" for reason, count in reasons.items())
    changed, control = len(selection.changed), len(selection.names("control"))
    same = len(selection.names("same machine code"))
    yield f"changed: {changed} of {count_text(len(selection.cases), 'case')}" + (f" ({why})" if why else "")
    if selection.everything:
        yield f"all cases are measured: {selection.everything}"
    elif changed:
        yield f"not measured: {same} of the same machine code; {control} were measured as the control"
    else:
        yield "nothing is measured; --all measures all"
    if selection.by == "source text":
        yield "by the text of sources, their headers and options: the same text gives the same machine code"
    if selection.by == "reference":
        yield "by the references and inputs: the backend runs no kernel"
    parts = (f"{part} {seconds:.1f} s" for part, seconds in selection.seconds.items())
    yield f"took {duration_text(sum(selection.seconds.values()))}: {', '.join(parts)}"


# Noise floors.


def noise_view(noise: Noise) -> RenderableType:
    """Return a row for each case and metric, the widest noise floor first, and how often the verdict was wrong."""
    if not noise.floors:
        return Text("no case was timed validly in two processes a side", style="yellow")
    columns = [
        FittedColumn("case"),
        FittedColumn("metric"),
        FittedColumn("time", numbers=True),
        FittedColumn("between processes", numbers=True, goes=2),
        FittedColumn("within", numbers=True, goes=1),
        FittedColumn("smallest change", numbers=True),
        FittedColumn("false verdicts", numbers=True, goes=3),
    ]
    rows = [
        (
            (
                case,
                metric_words(metric),
                value_text(metric, floor.seconds),
                share_text(floor.between),
                share_text(floor.within),
                share_text(floor.smallest_change),
                f"{floor.false_verdicts} of {floor.repaired}",
            ),
            None,
        )
        for (case, metric), floor in sorted(noise.floors.items(), key=lambda item: -item[1].smallest_change)
    ]
    title = f"{noise.device}, {backend_text(noise.backend)}: {count_text(len(rows), 'noise floor')}"
    share = share_text(noise.false_share)
    sentence = Text(f"{title}; of verdicts on the build against itself, {share} called a change")
    return Group(sentence, fitted("", columns, rows))


# A bisection in the terminal and as plain values.

_BISECTION_SHORT = 10  # characters of a hash


class NodeJson(TypedDict):
    """A node: its commits, how probable a change before it is, and what was measured or why it cannot be."""

    commits: list[str]
    measured: str
    subject: str
    change: float
    ratio: float | None
    processes: int
    culprit: bool
    problem: str | None


class CulpritJson(TypedDict):
    """Commits that changed the time, with the difference of machine code to the measurable node before, by entry.

    `code_note` is why instructions are not listed, or what else changed. One of the commits `or_before`, which cannot
    be measured, may have changed the time instead.
    """

    commits: list[str]
    or_before: list[str]
    code_difference: list[EntryDifferenceJson]
    code_note: str | None


class BisectionJson(TypedDict):
    """A search: whose times were measured, why it ended, the probability that nothing changed, and every node."""

    case: str
    timed: str
    ended: str
    none: float
    measurements: int
    culprits: list[list[str]]
    changes: list[CulpritJson]
    nodes: list[NodeJson]


def bisection_json(bisection: Bisection, subjects: Mapping[str, str], backend: str) -> BisectionJson:
    """Return the search on a backend as plain JSON values; `subjects` are the first lines of the commits' messages."""
    return {
        "case": bisection.case,
        "timed": timed_on(backend),
        "ended": bisection.ended,
        "none": bisection.posterior.none,
        "measurements": len(bisection.measured),
        "culprits": [list(node.commits) for node in bisection.culprits],
        "changes": [_culprit_json(bisection, node) for node in bisection.culprits],
        "nodes": [_node(bisection, number, subjects) for number in range(len(bisection.nodes))],
    }


def _node(bisection: Bisection, number: int, subjects: Mapping[str, str]) -> NodeJson:
    node, size = bisection.nodes[number], bisection.size(number)
    return {
        "commits": list(node.commits),
        "measured": node.measured,
        "subject": subjects.get(node.measured, ""),
        "change": float(bisection.posterior.at[number]),
        "ratio": None if size is None else exp(size),
        "processes": sum(len(measurement.logs) for measurement in bisection.measured if measurement.node == number),
        "culprit": node in bisection.culprits,
        "problem": bisection.problem(number),
    }


def _culprit_json(bisection: Bisection, node: HistoryNode) -> CulpritJson:
    entries, note = _bisection_difference(bisection, node)
    return {
        "commits": list(node.commits),
        "or_before": list(bisection.suspects_before(node)),
        "code_difference": code_difference_json(entries),
        "code_note": note,
    }


def _bisection_difference(bisection: Bisection, node: HistoryNode) -> CodeDifference:
    """Return the difference of machine code to the measurable node before."""
    known = difference_at(bisection.measurable, node)
    if known is None:
        return (), "the machine code is not known here: its source, launches or inputs changed"
    entries, note = known
    return entries, note if entries or note else "its launches or its inputs changed, not its machine code"


def bisection_view(bisection: Bisection, subjects: Mapping[str, str]) -> RenderableType:
    """Return the answer, then the nodes that were measured, cannot be or are likely, in the order of the history."""
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for name in ("commit", "time", "processes", "change here"):
        grid.add_column(name, justify="left" if name == "commit" else "right", no_wrap=True)
    grid.add_column("subject", overflow="fold")
    for number in range(len(bisection.nodes)):
        row = _node(bisection, number, subjects)
        if row["ratio"] is not None or row["change"] > 0.01 or row["problem"] or number == 0:
            ratio = change_text(1.0 if number == 0 else row["ratio"])
            style = "bold red" if row["culprit"] else None
            count, change = str(row["processes"] or "-"), "-" if row["problem"] else f"{row['change']:.0%}"
            here = f"{bisection.case} at {row['measured']}: "
            reason = f" (not measured: {row['problem'].removeprefix(here)})" if row["problem"] else ""
            grid.add_row(
                Text(row["measured"][:_BISECTION_SHORT]),
                ratio,
                count,
                change,
                Text(row["subject"] + reason),
                style=style,
            )
    return Group(*_answer(bisection, subjects), grid)


def _answer(bisection: Bisection, subjects: Mapping[str, str]) -> list[RenderableType]:
    if len(bisection.nodes) < 2:
        reason = "all commits have the same machine code and launches, so none of them changed its time"
        return [Text(f"{bisection.case}: {reason}")]
    if bisection.culprits:
        return [line for node in bisection.culprits for line in _culprit(bisection, node, subjects)]
    if bisection.ended == "decided":
        return [Text(f"{bisection.case}: no commit changed its time ({bisection.posterior.none:.0%} sure)")]
    chance = f"no change {bisection.posterior.none:.0%}"
    return [Text(f"{bisection.case}: undecided, the {bisection.ended} ended the search; {chance}")]


def _culprit(bisection: Bisection, node: HistoryNode, subjects: Mapping[str, str]) -> list[RenderableType]:
    number = bisection.nodes.index(node)
    sure = min(1.0, float(bisection.posterior.at[number]))
    first = node.commits[0]
    several = f", or one of {len(node.commits) - 1} after it" if node.measured != first else ""
    if before := len(bisection.suspects_before(node)):
        several += f", or one of {before} before it that could not be measured"
    commit = f"{first[:_BISECTION_SHORT]} {subjects.get(first, '')}"
    head = f"{bisection.case}: changed by {commit}{several} ({sure:.1%} sure)"
    entries, note = _bisection_difference(bisection, node)
    if not entries:
        return [Text(head), Text(f"  {note}", style="dim")]
    return [Text(head), code_difference_view(code_difference_json(entries), note)]
