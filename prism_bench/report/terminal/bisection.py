"""A bisection in the terminal and as plain values."""

from collections.abc import Mapping
from math import exp
from typing import TypedDict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.studies.bisecting import Bisection
from prism_bench.studies.history_nodes import HistoryNode

_SHORT = 10  # characters of a hash


class NodeJson(TypedDict):
    """A node: its commits, how probable a change before it is, and what was measured."""

    commits: list[str]
    measured: str
    subject: str
    change: float
    ratio: float | None
    processes: int
    culprit: bool


class BisectionJson(TypedDict):
    """A search: why it ended, the probability that nothing changed, and every node."""

    case: str
    ended: str
    none: float
    measurements: int
    culprits: list[list[str]]
    nodes: list[NodeJson]


def bisection_json(found: Bisection, subjects: Mapping[str, str]) -> BisectionJson:
    """Return the search as plain JSON values; `subjects` are the first lines of the commits' messages."""
    return {
        "case": found.case,
        "ended": found.ended,
        "none": found.posterior.none,
        "measurements": len(found.measured),
        "culprits": [list(node.commits) for node in found.culprits],
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
    }


def bisection_view(found: Bisection, subjects: Mapping[str, str]) -> RenderableType:
    """Return the answer, then the nodes that were measured or are likely, in the order of the history."""
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for name in ("commit", "time", "processes", "change here"):
        grid.add_column(name, justify="left" if name == "commit" else "right", no_wrap=True)
    grid.add_column("subject", overflow="fold")
    for number in range(len(found.nodes)):
        row = _node(found, number, subjects)
        if row["ratio"] is not None or row["change"] > 0.01 or number == 0:
            ratio = "1" if number == 0 else f"{row['ratio']:.3f}x" if row["ratio"] is not None else "-"
            style = "bold red" if row["culprit"] else None
            count = str(row["processes"] or "-")
            grid.add_row(Text(row["measured"][:_SHORT]), ratio, count, f"{row['change']:.0%}", Text(row["subject"]),
                         style=style)  # fmt: skip
    return Group(*(Text(line) for line in _answer(found, subjects)), grid)


def _answer(found: Bisection, subjects: Mapping[str, str]) -> list[str]:
    if len(found.nodes) < 2:
        return [f"{found.case}: all commits have the same machine code and launches, so none of them changed its time"]
    if found.culprits:
        return [line for node in found.culprits for line in _culprit(found, node, subjects)]
    if found.ended == "decided":
        return [f"{found.case}: no commit changed its time ({found.posterior.none:.0%} sure)"]
    return [f"{found.case}: undecided, the {found.ended} ended the search; no change {found.posterior.none:.0%}"]


def _culprit(found: Bisection, node: HistoryNode, subjects: Mapping[str, str]) -> list[str]:
    number = found.nodes.index(node)
    sure = min(1.0, float(found.posterior.at[number]))
    first = node.commits[0]
    several = f", or one of {len(node.commits) - 1} after it" if node.measured != first else ""
    head = f"{found.case}: changed by {first[:_SHORT]} {subjects.get(first, '')}{several} ({sure:.1%} sure)"
    was, now = (dict(one.code.resources) for one in (found.nodes[number - 1], node))
    lines = [f"  {entry}: {change}" for entry in now if (change := _changes(was.get(entry), now[entry]))]
    return [head, *(lines or ["  registers, spills and shared memory are the same"])]


def _changes(was: object, now: object) -> str:
    if was is None:
        return "a new entry"
    before, after = vars(was), vars(now)
    words = (f"{name.replace('_', ' ')} {before[name]} -> {after[name]}" for name in after)
    return ", ".join(word for name, word in zip(after, words, strict=True) if before[name] != after[name])
