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
from prism_bench.analysis.compare.estimate import Estimate
from prism_bench.analysis.compare.noise import ENOUGH, Control, Noise, shift_words
from prism_bench.analysis.compare.selection import SelectedCase, Selection
from prism_bench.analysis.run_analysis import metric_words, value_text
from prism_bench.compilation.listing import CodeDifference
from prism_bench.report.plain import EntryDifferenceJson, alike, backend_text, code_difference_json
from prism_bench.report.terminal.catalogue import code_difference_view
from prism_bench.report.terminal.tables import FittedTable, middle_cut, names_text
from prism_bench.spec.metric import STAND_INS, timed_on
from prism_bench.units import count_text, duration_text, share_text, time_text
from prism_bench.workflows.bisecting import Bisection, HistoryNode, difference_at

# Which cases a comparison measured, in the terminal: how many and why, and what changed of their machine code.

_SHOWN = 5  # differences of machine code; --json has all


def _selection_view(selection: Selection) -> list[RenderableType]:
    """Return a line of counts, a line of times, and the differences of machine code, each once."""
    groups = _groups(selection)
    parts = [part for cases in groups[:_SHOWN] for part in _difference(cases)]
    if len(groups) > _SHOWN:
        parts.append(Text(f"{len(groups) - _SHOWN} more differences of machine code: --json lists all", style="dim"))
    return [*parts, *(Text(line, style="dim") for line in _summary(selection))]


def _summary(selection: Selection) -> Iterator[str]:
    reasons = Counter(reason for one in selection.cases for reason in one.reasons)
    words = ", ".join(f"{reason} of {count}" for reason, count in reasons.items())
    changed, control = len(selection.changed), len(selection.names("control"))
    same = len(selection.names("same machine code"))
    yield f"changed: {changed} of {count_text(len(selection.cases), 'case')}" + (f" ({words})" if words else "")
    if selection.everything:
        yield f"all cases are measured: {selection.everything}"
    elif changed:
        yield f"not measured: {same} of the same machine code; {control} were measured as the control"
    else:
        yield "nothing is measured; --all-cases measures all"
    if selection.by == "source text":
        yield "by the text of sources, their headers and options: the same text gives the same machine code"
    if selection.by == "reference":
        yield "by the references and inputs: the backend runs no kernel"
    parts = (f"{part} {seconds:.1f} s" for part, seconds in selection.seconds.items())
    yield f"took {duration_text(sum(selection.seconds.values()))}: {', '.join(parts)}"


def _groups(selection: Selection) -> list[list[SelectedCase]]:
    """Return the cases with a difference of machine code, those with the same one together."""
    groups: dict[str, list[SelectedCase]] = {}
    for one in selection.cases:
        if one.differences or one.note:
            groups.setdefault(f"{one.differences}{one.note}", []).append(one)
    return list(groups.values())


def _difference(cases: list[SelectedCase]) -> Iterator[RenderableType]:
    one = cases[0]
    more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    yield Text(f"machine code of {one.case}{more}")
    if one.differences:
        yield code_difference_view(code_difference_json(one.differences), one.note)
    else:
        yield Text(f"  {one.note}", style="dim")


# A comparison in the terminal and as plain values: the count, the changed and the doubtful cases, the control.

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
    parts += _selection_view(comparison.selection) if comparison.selection else []
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
            yield Text.assemble(
                (f"{verdict}: ", STYLES[group.kind]), group.text, (f" ({names_text(group.cases, 2)})", "dim")
            )


def _titles(names: tuple[str, str]) -> tuple[str, str]:
    """Return the headers of the two sides: their names where these are short, else A and B."""
    return names if max(map(len, names)) <= _SHORT and len(set(names)) == 2 else ("A", "B")


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
        "ratio": f"{found.ratio:.3f}x",
        "machine": f"{one.judgement.shift.ratio:.3f}x",
        "interval": _interval_text(found),
        "in cycles": f"{in_cycles.ratio:.3f}x" if in_cycles else "-",
        "noise floor": share_text(floor) if floor < 10 else "-",
    }


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


# Noise floors in the terminal and as plain values.


def noise_view(noise: Noise) -> RenderableType:
    """Return a row for each case and metric, the widest noise floor first, and how often the verdict was wrong."""
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    grid.add_column("case", overflow="fold")
    grid.add_column("metric")
    for name in ("time", "between processes", "within", "smallest change", "false verdicts"):
        grid.add_column(name, justify="right", no_wrap=True)
    for (case, metric), floor in sorted(noise.floors.items(), key=lambda item: -item[1].smallest_change):
        grid.add_row(
            Text(case),
            metric,
            time_text(floor.seconds),
            share_text(floor.between),
            share_text(floor.within),
            share_text(floor.smallest_change),
            f"{floor.false_verdicts} of {floor.repaired}",
        )
    return Group(_noise_headline(noise), *([grid] if noise.floors else []))


def _noise_headline(noise: Noise) -> Text:
    if not noise.floors:
        return Text("no case was timed validly in two processes a side", style="yellow")
    words = f"{noise.device}, {backend_text(noise.backend)}: {len(noise.floors)} noise floors"
    return Text(f"{words}; of verdicts on the build against itself, {share_text(noise.false_share)} called a change")


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


def bisection_json(found: Bisection, subjects: Mapping[str, str], backend: str) -> BisectionJson:
    """Return the search on a backend as plain JSON values; `subjects` are the first lines of the commits' messages."""
    return {
        "case": found.case,
        "timed": timed_on(backend),
        "ended": found.ended,
        "none": found.posterior.none,
        "measurements": len(found.measured),
        "culprits": [list(node.commits) for node in found.culprits],
        "changes": [_culprit_json(found, node) for node in found.culprits],
        "nodes": [_node(found, number, subjects) for number in range(len(found.nodes))],
    }


def _node(found: Bisection, number: int, subjects: Mapping[str, str]) -> NodeJson:
    node, size = found.nodes[number], found.size(number)
    return {
        "commits": list(node.commits),
        "measured": node.measured,
        "subject": subjects.get(node.measured, ""),
        "change": float(found.posterior.at[number]),
        "ratio": None if size is None else exp(size),
        "processes": sum(len(one.logs) for one in found.measured if one.node == number),
        "culprit": node in found.culprits,
        "problem": found.problem(number),
    }


def _culprit_json(found: Bisection, node: HistoryNode) -> CulpritJson:
    entries, note = _bisection_difference(found, node)
    return {
        "commits": list(node.commits),
        "or_before": list(found.suspects_before(node)),
        "code_difference": code_difference_json(entries),
        "code_note": note,
    }


def _bisection_difference(found: Bisection, node: HistoryNode) -> CodeDifference:
    """Return the difference of machine code to the measurable node before."""
    known = difference_at(found.measurable, node)
    if known is None:
        return (), "the machine code is not known here: its source, launches or inputs changed"
    entries, note = known
    return entries, note if entries or note else "its launches or its inputs changed, not its machine code"


def bisection_view(found: Bisection, subjects: Mapping[str, str]) -> RenderableType:
    """Return the answer, then the nodes that were measured, cannot be or are likely, in the order of the history."""
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for name in ("commit", "time", "processes", "change here"):
        grid.add_column(name, justify="left" if name == "commit" else "right", no_wrap=True)
    grid.add_column("subject", overflow="fold")
    for number in range(len(found.nodes)):
        row = _node(found, number, subjects)
        if row["ratio"] is not None or row["change"] > 0.01 or row["problem"] or number == 0:
            ratio = "1" if number == 0 else f"{row['ratio']:.3f}x" if row["ratio"] is not None else "-"
            style = "bold red" if row["culprit"] else None
            count, change = str(row["processes"] or "-"), "-" if row["problem"] else f"{row['change']:.0%}"
            here = f"{found.case} at {row['measured']}: "
            reason = f" (not measured: {row['problem'].removeprefix(here)})" if row["problem"] else ""
            grid.add_row(
                Text(row["measured"][:_BISECTION_SHORT]),
                ratio,
                count,
                change,
                Text(row["subject"] + reason),
                style=style,
            )
    return Group(*_answer(found, subjects), grid)


def _answer(found: Bisection, subjects: Mapping[str, str]) -> list[RenderableType]:
    if len(found.nodes) < 2:
        words = "all commits have the same machine code and launches, so none of them changed its time"
        return [Text(f"{found.case}: {words}")]
    if found.culprits:
        return [line for node in found.culprits for line in _culprit(found, node, subjects)]
    if found.ended == "decided":
        return [Text(f"{found.case}: no commit changed its time ({found.posterior.none:.0%} sure)")]
    return [Text(f"{found.case}: undecided, the {found.ended} ended the search; no change {found.posterior.none:.0%}")]


def _culprit(found: Bisection, node: HistoryNode, subjects: Mapping[str, str]) -> list[RenderableType]:
    number = found.nodes.index(node)
    sure = min(1.0, float(found.posterior.at[number]))
    first = node.commits[0]
    several = f", or one of {len(node.commits) - 1} after it" if node.measured != first else ""
    if before := len(found.suspects_before(node)):
        several += f", or one of {before} before it that could not be measured"
    head = f"{found.case}: changed by {first[:_BISECTION_SHORT]} {subjects.get(first, '')}{several} ({sure:.1%} sure)"
    return [Text(head), *_code(found, node)]


def _code(found: Bisection, node: HistoryNode) -> list[RenderableType]:
    entries, note = _bisection_difference(found, node)
    if entries:
        return [code_difference_view(code_difference_json(entries), note)]
    return [Text(f"  {note}", style="dim")]
