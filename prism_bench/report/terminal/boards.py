"""Boards in the terminal and as plain values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import expm1
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.boards.agreement import BoardAgreement
from prism_bench.analysis.boards.factors import BoardFactor
from prism_bench.analysis.boards.kinds import ANCHORS, PROMISED, BoardKind
from prism_bench.report.machine import backend_text
from prism_bench.spec.metric import timed_on
from prism_bench.units import count_text, share_text

_SHOWN = 12  # characters of a UUID


def boards_view(kinds: Sequence[BoardKind]) -> RenderableType:
    """Return for each kind of GPU its boards, the factors between them, and A/A over them."""
    return Group(*(one for kind in kinds for one in _kind(kind)))


def _kind(kind: BoardKind) -> list[RenderableType]:
    title = f"{kind.machine}, {backend_text(kind.backend)}, {kind.metric}: {count_text(len(kind.boards), 'board')}"
    shown: list[RenderableType] = [Text(title, style="bold"), _boards(kind)]
    if kind.missing:
        why = "no kernel measures it, or no two boards have a time of it"
        shown.append(Text(f"anchors missing: {', '.join(kind.missing)} ({why})", style="yellow"))
    known = [_pairs(kind)] if any(factor.known for factor in kind.pairs.values()) else []
    return [*shown, *known, *_withheld(kind), Text(_agreement_words(kind.agreement)), Text("")]


def _boards(kind: BoardKind) -> Table:
    found = [name for name in ANCHORS.values() if name not in kind.missing] if len(kind.boards) > 1 else []
    grid = _grid("board", "VBIOS", "host", right=("power limit", "runs", *found))
    for row in kind.boards:
        watts = row.facts.get("power_limit")
        anchors = [f"{row.anchors[name]:.4f}" if name in row.anchors else "-" for name in found]
        grid.add_row(
            row.uuid, str(row.facts.get("vbios", "unknown")), str(row.facts.get("host", "unknown")),
            f"{watts:.0f} W" if watts else "unknown", str(row.runs), *anchors,
        )  # fmt: skip
    return grid


def _pairs(kind: BoardKind) -> Table:
    """Return a row for each pair of boards whose factor is known."""
    grid = _grid("boards", right=("factor", "95 % interval", "cases", "runs", "cases differ by"))
    for (one, other), factor in kind.pairs.items():
        if factor.known:
            low, high = factor.interval()
            grid.add_row(
                f"{one[:_SHOWN]} -> {other[:_SHOWN]}", f"{factor.ratio:.4f}", f"{low:.4f} to {high:.4f}",
                str(factor.units), " and ".join(map(str, factor.runs)), share_text(expm1(factor.scatter)),
            )  # fmt: skip
    return grid


def _withheld(kind: BoardKind) -> list[Text]:
    """Return a line for each reason for which factors are not known."""
    reasons = Counter(factor.reason for factor in kind.pairs.values() if factor.reason)
    return [Text(f"verdicts withheld between {count_text(count, 'pair')} of boards: {reason}", style="yellow")
            for reason, count in reasons.most_common()]  # fmt: skip


def _grid(*left: str, right: Sequence[str]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for name in left:
        grid.add_column(name, overflow="fold")
    for name in right:
        grid.add_column(name, justify="right")
    return grid


def _agreement_words(found: BoardAgreement) -> str:
    if not found.given and not found.withheld:
        return "A/A over boards: no machine code was measured on two of them in several runs"
    verdicts = count_text(found.given, "verdict")
    words = f"A/A over boards: {found.false} of {verdicts} on one machine code call a change"
    promised = share_text(PROMISED)
    words += f" ({share_text(found.rate)}; at most {promised} is promised)" if found.rate is not None else ""
    plain = f"; boards taken for alike: {share_text(found.plain_rate)}" if found.plain_rate is not None else ""
    return words + plain + (f"; {found.withheld} withheld" if found.withheld else "")


def boards_json(kinds: Sequence[BoardKind]) -> dict[str, Any]:
    """Return the same as plain JSON values."""
    return {"kinds": [_kind_json(kind) for kind in kinds]}


def _kind_json(kind: BoardKind) -> dict[str, Any]:
    agreed = kind.agreement
    return {
        "machine": kind.machine, "backend": kind.backend, "timed": timed_on(kind.backend), "metric": kind.metric,
        "boards": [asdict(row) for row in kind.boards], "anchors_missing": list(kind.missing),
        "pairs": [_pair_json(pair, factor) for pair, factor in kind.pairs.items()],
        "agreement": {**asdict(agreed), "rate": agreed.rate, "plain_rate": agreed.plain_rate, "promised": PROMISED},
        "broken": kind.broken,
    }  # fmt: skip


def _pair_json(boards: tuple[str, str], factor: BoardFactor) -> dict[str, Any]:
    low, high = factor.interval()
    known = {"ratio": factor.ratio, "low": low, "high": high, "scatter": factor.scatter,
             "between_runs": factor.between_runs}  # fmt: skip
    return {
        "boards": list(boards), "known": factor.known, "reason": factor.reason, "units": factor.units,
        "runs": list(factor.runs), **(known if factor.known else dict.fromkeys(known)),
    }  # fmt: skip
