"""The gate, a trend and boards in the terminal and as plain values."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import expm1
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.boards import ANCHORS, PROMISED, BoardAgreement, BoardFactor, BoardKind
from prism_bench.analysis.gate.checks import Gate, GateCheck, command
from prism_bench.analysis.trend import Trend
from prism_bench.analysis.trend.causes import RECENT, findings, shifts
from prism_bench.record.store import History
from prism_bench.report.gate import answers, headline, is_undecided, origin, title
from prism_bench.report.plain import alike, backend_text
from prism_bench.report.terminal.tables import names_text
from prism_bench.spec.metric import CODE, is_exact, timed_on
from prism_bench.units import count_text, share_text

# The gate in a terminal: the sentence, each part's count, what is wrong and how to see it again, the notes by kind.

_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow", "well": "green"}
_MOST_NOTES = 5


def view(gate: Gate) -> RenderableType:
    """Return what `check` prints, not cropped so that commands stay whole; names are text, never markup."""
    style = "bold red" if gate.concerns else "bold yellow" if gate.exit_code or is_undecided(gate) else "bold green"
    return Group(
        Text.assemble((headline(gate), style), f"  {origin(gate)}"),
        _parts(gate),
        *[line for check in gate.concerns for line in _concern(gate, check)],
        *_notes(gate),
    )


def _parts(gate: Gate) -> Table:
    grid = Table.grid(padding=(0, 2))
    for part in gate.parts:
        gravities = {check.gravity for check in part.checks}
        worst = next((gravity for gravity in ("untrusted", "bad", "well") if gravity in gravities), "note")
        grid.add_row(Text(title(part), style=_STYLES[worst]), Text(answers(part)))
    return grid


def _concern(gate: Gate, check: GateCheck) -> Iterator[Text]:
    yield Text.assemble((f"{check.answer}: ", _STYLES[check.gravity]), f"{_subject(check)}{check.message}")
    yield Text(f"    {command(gate.record, check)}", style="dim", no_wrap=True, overflow="ignore")  # to be copied


def _subject(check: GateCheck) -> str:
    named = check.case and not check.message.startswith(check.case)
    return f"{check.case}: " if named else ""


def _notes(gate: Gate) -> Iterator[Text]:
    """Yield the first few notes of each kind, those that differ only in numbers once, and the count of the rest."""
    kinds = defaultdict(list)
    for check in gate.checks:
        if check.gravity == "note":
            kinds[check.answer].append(check)
    for kind, notes in kinds.items():
        first = {(check.case or "", check.message): check for check in reversed(notes)}
        groups = alike((kind, check.case or "", check.message) for check in notes)
        for group in groups[:_MOST_NOTES]:
            yield _note(first[group.cases[0], group.text], also=group.cases[1:])
        rest = sum(len(group.cases) for group in groups[_MOST_NOTES:])
        if rest:
            yield Text(f"    and {rest} more {kind}: --json or --output shows them", style="dim")


def _note(check: GateCheck, also: Sequence[str]) -> Text:
    """Return a note; `also` names the cases of others like it."""
    text = Text.assemble((f"{check.answer}: ", _STYLES["note"]), f"{_subject(check)}{check.message}")
    kernels = list(dict.fromkeys(case.partition("[")[0] for case in also if case))
    return text.append(f" (also {names_text(kernels)})", style="dim") if kernels else text


# A trend: changed cases with causes, changes of the environment, measurements that were set aside.

_TREND_STYLES = {"bad": "bold red", "note": "yellow"}
_REASONS = 8
_NATURE = {  # of a metric with one value per record, by whether it is exact
    True: "exact, one value per record: a step needs no confirmation",
    False: "noisy, one value per compilation: a step needs three that agree, after eight before it",
}


def trend_view(trend: Trend, history: History, recent: int = RECENT) -> RenderableType:
    """Return what `trend` prints, for a Rich console."""
    moved = findings(shifts(trend.steps), recent)
    lines = [Text(_headline(trend, history), "bold green" if not moved else "bold yellow")]
    lines += [_line(_TREND_STYLES[finding.gravity], finding.kind, finding.message) for finding in moved]
    lines += [_line("dim", metric, _NATURE[is_exact(metric)]) for metric in CODE if metric in (history.metrics or ())]
    for point in trend.breakpoints:
        where = ", ".join(filter(None, (point.machine, point.backend, point.environment)))
        lines.append(_line("cyan", "breakpoint", f"{where}: {point.words} since {point.since}"))
    lines += [_line("yellow", "order", history.unordered)] if history.unordered else []
    lines += _set_aside(trend)
    return Group(*lines, *(_line("yellow", "left out", problem.reason) for problem in history.problems))


def _set_aside(trend: Trend) -> list[Text]:
    """Return a line for each of the most frequent reasons, and one for the rest."""
    reasons = sorted(trend.aside.items(), key=lambda item: -item[1])
    rest = sum(count for _, count in reasons[_REASONS:])
    lines = [_line("dim", "set aside", f"{count_text(count, 'measurement')}: {reason}") for reason, count in reasons]
    return lines[:_REASONS] + ([_line("dim", "set aside", f"{rest} more, see --json")] if rest else [])


def _line(style: str, kind: str, message: str) -> Text:
    return Text.assemble((f"{kind}: ", style), message)


def _headline(trend: Trend, history: History) -> str:
    machines = {facts.machine for facts in history.records}
    steps = count_text(len(trend.steps), "step") if trend.steps else "no step"
    where = f"{count_text(len(history.records), 'record')} of {count_text(len(machines), 'machine')}"
    return f"{steps} in {trend.series} series, {where}"


def trend_json(trend: Trend, history: History, recent: int = RECENT) -> dict[str, Any]:
    """Return the trend as plain JSON values."""
    return {
        "records": len(history.records),
        "points": trend.points,
        "series": trend.series,
        "findings": [
            {**vars(shift.finding(recent)), "cases": list(shift.cases), "metrics": list(shift.metrics)}
            for shift in shifts(trend.steps)
        ],
        "steps": [{**asdict(step), "ratio": step.ratio, "exact": is_exact(step.key.metric)} for step in trend.steps],
        "breakpoints": [asdict(point) for point in trend.breakpoints],
        "set_aside": dict(trend.aside),
        "order": history.unordered,
        "problems": [asdict(problem) for problem in history.problems],
    }


# Boards in the terminal and as plain values.

_SHOWN = 12  # characters of a UUID


def boards_view(kinds: Sequence[BoardKind]) -> RenderableType:
    """Return for each kind of GPU its boards, the factors between them, and A/A over them."""
    return Group(*(part for kind in kinds for part in _kind(kind)))


def _kind(kind: BoardKind) -> list[RenderableType]:
    title = f"{kind.machine}, {backend_text(kind.backend)}, {kind.metric}: {count_text(len(kind.boards), 'board')}"
    shown: list[RenderableType] = [Text(title, style="bold"), _boards(kind)]
    if kind.missing:
        why = "no kernel measures it, or no two boards have a time of it"
        shown.append(Text(f"anchors missing: {', '.join(kind.missing)} ({why})", style="yellow"))
    known = [_pairs(kind)] if any(factor.known for factor in kind.pairs.values()) else []
    return [*shown, *known, *_withheld(kind), Text(_agreement_words(kind.agreement)), Text("")]


def _boards(kind: BoardKind) -> Table:
    anchor_names = [name for name in ANCHORS.values() if name not in kind.missing] if len(kind.boards) > 1 else []
    grid = _grid("board", "VBIOS", "host", right=("power limit", "runs", *anchor_names))
    for row in kind.boards:
        watts = row.facts.get("power_limit")
        anchors = [f"{row.anchors[name]:.4f}" if name in row.anchors else "-" for name in anchor_names]
        grid.add_row(
            row.uuid,
            str(row.facts.get("vbios", "unknown")),
            str(row.facts.get("host", "unknown")),
            f"{watts:.0f} W" if watts else "unknown",
            str(row.runs),
            *anchors,
        )
    return grid


def _pairs(kind: BoardKind) -> Table:
    """Return a row for each pair of boards whose factor is known."""
    grid = _grid("boards", right=("factor", "95 % interval", "cases", "runs", "cases differ by"))
    for (first, second), factor in kind.pairs.items():
        if factor.known:
            low, high = factor.interval()
            grid.add_row(
                f"{first[:_SHOWN]} -> {second[:_SHOWN]}",
                f"{factor.ratio:.4f}",
                f"{low:.4f} to {high:.4f}",
                str(factor.units),
                " and ".join(map(str, factor.runs)),
                share_text(expm1(factor.scatter)),
            )
    return grid


def _withheld(kind: BoardKind) -> list[Text]:
    """Return a line for each reason for which factors are not known."""
    reasons = Counter(factor.reason for factor in kind.pairs.values() if factor.reason)
    return [
        Text(f"verdicts withheld between {count_text(count, 'pair')} of boards: {reason}", style="yellow")
        for reason, count in reasons.most_common()
    ]


def _grid(*left: str, right: Sequence[str]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for name in left:
        grid.add_column(name, overflow="fold")
    for name in right:
        grid.add_column(name, justify="right")
    return grid


def _agreement_words(agreement: BoardAgreement) -> str:
    if not agreement.given and not agreement.withheld:
        return "A/A over boards: no machine code was measured on two of them in several runs"
    verdicts = count_text(agreement.given, "verdict")
    text = f"A/A over boards: {agreement.false} of {verdicts} on one machine code call a change"
    promised = share_text(PROMISED)
    text += f" ({share_text(agreement.rate)}; at most {promised} is promised)" if agreement.rate is not None else ""
    plain = f"; boards taken for alike: {share_text(agreement.plain_rate)}" if agreement.plain_rate is not None else ""
    return text + plain + (f"; {agreement.withheld} withheld" if agreement.withheld else "")


def boards_json(kinds: Sequence[BoardKind]) -> dict[str, Any]:
    """Return the same as plain JSON values."""
    return {"kinds": [_kind_json(kind) for kind in kinds]}


def _kind_json(kind: BoardKind) -> dict[str, Any]:
    agreed = kind.agreement
    return {
        "machine": kind.machine,
        "backend": kind.backend,
        "timed": timed_on(kind.backend),
        "metric": kind.metric,
        "boards": [asdict(row) for row in kind.boards],
        "anchors_missing": list(kind.missing),
        "pairs": [_pair_json(pair, factor) for pair, factor in kind.pairs.items()],
        "agreement": {**asdict(agreed), "rate": agreed.rate, "plain_rate": agreed.plain_rate, "promised": PROMISED},
        "broken": kind.broken,
    }


def _pair_json(boards: tuple[str, str], factor: BoardFactor) -> dict[str, Any]:
    low, high = factor.interval()
    known = {
        "ratio": factor.ratio,
        "low": low,
        "high": high,
        "scatter": factor.scatter,
        "between_runs": factor.between_runs,
    }
    return {
        "boards": list(boards),
        "known": factor.known,
        "reason": factor.reason,
        "units": factor.units,
        "runs": list(factor.runs),
        **(known if factor.known else dict.fromkeys(known)),
    }
