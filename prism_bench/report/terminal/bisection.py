"""A bisection in the terminal and as plain values."""

from collections.abc import Mapping
from math import exp
from typing import TypedDict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.compilation.disassembly import CodeDifference
from prism_bench.report.code_difference import EntryDifferenceJson, code_difference_json
from prism_bench.report.terminal.code_difference import code_difference_view
from prism_bench.spec.metric import timed_on
from prism_bench.workflows.bisecting import Bisection
from prism_bench.workflows.history_nodes import HistoryNode, difference_at

_SHORT = 10  # characters of a hash


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
    entries, note = _difference(found, node)
    return {
        "commits": list(node.commits), "or_before": list(found.suspects_before(node)),
        "code_difference": code_difference_json(entries), "code_note": note,
    }  # fmt: skip


def _difference(found: Bisection, node: HistoryNode) -> CodeDifference:
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
            grid.add_row(Text(row["measured"][:_SHORT]), ratio, count, change, Text(row["subject"] + reason),
                         style=style)  # fmt: skip
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
    head = f"{found.case}: changed by {first[:_SHORT]} {subjects.get(first, '')}{several} ({sure:.1%} sure)"
    return [Text(head), *_code(found, node)]


def _code(found: Bisection, node: HistoryNode) -> list[RenderableType]:
    entries, note = _difference(found, node)
    if entries:
        return [code_difference_view(code_difference_json(entries), note)]
    return [Text(f"  {note}", style="dim")]
