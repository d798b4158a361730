"""Profiles of cases in the terminal: bottlenecks, and why a case takes its time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from prism_bench.analysis.bounds.bottleneck import PARTS, SourceLine
from prism_bench.analysis.bounds.why import COUNTERS, CodeAgainst, CountedNear, Fix, Why, WhyCounter
from prism_bench.analysis.run_analysis import Finding
from prism_bench.report.headline import times_text
from prism_bench.report.plain import changes_of, code_difference_json
from prism_bench.report.terminal.capture import NO_TIMES, Answers
from prism_bench.report.terminal.tables import FittedColumn, FittedTable, fitted
from prism_bench.units import bytes_text, count_text, ratio_text, share_text, time_text

# Shares of peaks and the bottleneck of each case.

_SHARES = ("dram_share", "l2_share", "fp32_share", "tensor_share", "sfu_share", "issue_share", "occupancy")
_HEADINGS = ("bound", "duration", "launches", "DRAM", "of model", *_SHARES, "registers", "local")
# Columns that a narrow terminal leaves out, the first to go first; case, bottleneck and time stay.
_DISPENSABLE = ("local", "registers", "sfu_share", "tensor_share", "fp32_share", "launches", "l2_share",
                "occupancy", "issue_share", "of model", "DRAM")  # fmt: skip
_GRAVITY_STYLES = {"bad": "red", "untrusted": "yellow"}


def profile_json(lines: Sequence[dict[str, Any]], findings: Sequence[Finding], kept: Sequence[Path]) -> dict[str, Any]:
    """Return what `prism-bench profile --json` prints."""
    return {
        "cases": list(lines),
        "findings": [asdict(finding) for finding in findings],
        "kept": [str(path) for path in kept],
    }


def profile_view(
    lines: Sequence[dict[str, Any]], findings: Sequence[Finding], *, everything: bool = False, most: int | None = None
) -> RenderableType:
    """Return a line for each case with its bottleneck, and findings.

    Failed cases come first, then the least busy ones, those bound by their launch, and skipped ones.

    With `everything` the table of all shares. `most` rows are shown; None for all.
    """
    texts = findings_view([finding for finding in findings if everything or finding.kind != "bytes"])
    if everything:
        return Group(profile_table(lines), texts)
    worst = sorted(lines, key=_order)[:most]
    rows = [
        (
            [str(row["case"]).split("[")[0], row["label"] or "", time_text(row.get("profiler_duration"))],
            Text(_answer(row), style=_style_of(row)),
        )
        for row in worst
    ]
    hidden = len(lines) - len(worst)
    more = [Text(f"{count_text(hidden, 'more case')}: --limit {len(lines)}", style="dim")] if hidden else []
    last = Text(f"--all shows every share and counter; {NO_TIMES}", style="dim")
    return Group(Answers(["label", "time"], rows), texts, *more, last)


def findings_view(findings: Sequence[Finding]) -> Group:
    """Return a line for each finding."""
    return Group(
        *(
            Text(f"{finding.case or 'capture'}: {finding.message}", style=_GRAVITY_STYLES.get(finding.gravity, ""))
            for finding in findings
        )
    )


def _order(row: Mapping[str, Any]) -> tuple[int, bool, float]:
    return {"ok": 1, "skipped": 2}.get(row["status"], 0), row["bound"] == "launch", _busiest(row) or 0.0


def _style_of(row: Mapping[str, Any]) -> str:
    return {"ok": "", "skipped": "yellow"}.get(row["status"], "red")


def _busiest(row: Mapping[str, Any]) -> float | None:
    return max((share for metric, _ in PARTS.values() if (share := row.get(metric)) is not None), default=None)


_MEMORY = ("dram", "l2", "l1")


def _answer(row: Mapping[str, Any]) -> str:
    """Return what limits the case, and whether DRAM moved more than it must."""
    bound = row["bound"]
    if row["status"] != "ok":
        return str(row["status"])
    if bound is None:
        return str(row["evidence"]).splitlines()[0]
    if bound == "launch":
        return "launch-bound: hardly longer than an empty kernel"
    shares = {part: share for metric, part in PARTS.values() if (share := row.get(metric)) is not None}
    busiest = max(shares, key=lambda part: shares[part])
    kind = bound if bound == "latency" else "memory" if bound in _MEMORY else "compute"
    text = f"{kind}-bound: {busiest} {share_text(shares[busiest])}"
    if bound == "latency" and row.get("occupancy") is not None:
        text += f", occupancy {share_text(row['occupancy'])}"
    if row["bytes_verdict"] == "more":
        text += f"; DRAM moves {ratio_text(row['dram_ratio'])} the bytes it must"
    return text


def profile_table(lines: Sequence[dict[str, Any]]) -> FittedTable:
    """Return shares of peaks, DRAM bytes over the compulsory ones, and the bottleneck of each case.

    A column without any figure is left out.
    """
    cells = [_cells(row) for row in lines]
    filled = [i for i in range(len(_HEADINGS)) if any(line[i] != "-" for line in cells)]
    columns = [FittedColumn("kernel"), FittedColumn("label"), *(_column(_HEADINGS[i]) for i in filled)]
    named = [
        (
            (row["case"].split("[")[0], row["label"], *(line[i] for i in filled)),
            _style_of(row) or None,
        )
        for row, line in zip(lines, cells, strict=True)
    ]
    return fitted("counted by the profiler; its durations are no benchmark times", columns, named)


def _column(heading: str) -> FittedColumn:
    """Return the column of figures with this heading."""
    goes = _DISPENSABLE.index(heading) + 1 if heading in _DISPENSABLE else None
    return FittedColumn(heading.replace("_share", ""), numbers=True, goes=goes)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (share_text(row.get(name)) for name in _SHARES)
    parts = [row.get(name) for name in ("local_loads", "local_stores")]
    local = None if None in parts else sum(filter(None, parts))
    facts = (row["bound"] or "-", time_text(row.get("profiler_duration")), _count(row.get("launches")))
    memory = (bytes_text(row["dram_bytes"]), share_text(row["dram_ratio"]))
    return (*facts, *memory, *shares, _count(row.get("profiled_registers")), _count(local))


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


# Why a case takes its time, in a terminal: at most fifteen lines of what the kernel's page shows.

MOST = 15  # lines
_VERDICT, _FIXES, _LINES, _NOTES = 4, 3, 3, 2  # lines of each part at most; of notes, how many


def why_view(account: Why) -> RenderableType:
    """Return the account in at most `MOST` lines of the terminal.

    Lines are cut at its edge, but for the verdict and for the names and commands of notes, which are folded.
    """
    return _Account(account)


@dataclass
class _Part:
    """Lines of one subject; where the terminal has too few for all, no more than the last ones go, down to `least`."""

    lines: list[Text]
    least: int

    @property
    def spare(self) -> int:
        return len(self.lines) - self.least


class _Account:
    def __init__(self, account: Why) -> None:
        self._account = account

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = list(_parts(self._account, console, options.max_width))
        texts = [Text(f"note      {note}", style="dim") for note in self._account.notes[:_NOTES]]
        notes = [_folded(text, console, options.max_width) for text in texts]
        while len(notes) > 1 and sum(part.least for part in parts) + sum(map(len, notes)) > MOST:
            notes.pop()  # a note with a command is shown in whole, or not at all
        _shorten(parts, MOST - sum(map(len, notes)))
        yield from [line for lines in (*(part.lines for part in parts), *notes) for line in lines][:MOST]


def _shorten(parts: Sequence[_Part], most: int) -> None:
    """Remove the last lines of the parts that can spare most, until there are no more than `most`."""
    while sum(len(part.lines) for part in parts) > most and any(part.spare for part in parts):
        max(reversed(parts), key=lambda part: part.spare).lines.pop()


def _parts(account: Why, console: Console, width: int) -> Iterator[_Part]:
    """Yield the parts from the first line to the last, without notes."""
    verdict = Text(account.verdict, style="bold yellow" if account.bottleneck else "bold")
    folded = _folded(verdict, console, width)[:_VERDICT]
    yield _Part([*_cut([Text(account.case, style="bold")]), *folded], 1 + len(folded))
    counters = [*_counters(account.counters), *_counted_in(account)]
    sources = account.lines or (account.near.lines if account.near else ())
    for lines, least in (
        (counters, COUNTERS),
        (_near(account.near), 1 + COUNTERS),
        ([Text(f"{'' if place else 'tables':<10}{line}") for place, line in enumerate(account.tables)], 2),
        (_roof(account), 1),
        (_fixes(account), 1),
        (_lines(sources), 1),
        (_code(account.code), 1),
    ):
        cut = _cut(lines)
        yield _Part(cut, min(least, len(cut)))


def _folded(text: Text, console: Console, width: int) -> list[Text]:
    return list(text.wrap(console, width, overflow="fold"))


def _cut(lines: Iterable[Text]) -> list[Text]:
    """Return the lines so that each is cut at the edge of the terminal."""
    cut = list(lines)
    for line in cut:
        line.no_wrap, line.overflow = True, "ellipsis"
    return cut


def _counters(counters: Iterable[WhyCounter]) -> Iterator[Text]:
    for counter in counters:
        yield Text(f"  {counter.text:>8}  {counter.meaning}")


def _counted_in(account: Why) -> Iterator[Text]:
    if account.counted_in:
        yield Text(f"          counted in {account.counted_in}", style="dim")


def _near(near: CountedNear | None) -> Iterator[Text]:
    """Yield what was counted at another workload."""
    if near is None:
        return
    yield Text(f"at {near.label:<7}{near.verdict}")
    yield from _counters(near.counters)


def _roof(account: Why) -> Iterator[Text]:
    if account.roof:
        roof = account.roof
        least = f"{time_text(roof.seconds)} cold; the {roof.limit} limit allows {time_text(roof.least)}"
        yield Text(f"roof      {least}: {share_text(roof.share)} of it reached")
    elif account.seconds:
        yield Text(f"time      {time_text(account.seconds)} cold")


def _fixes(account: Why) -> Iterator[Text]:
    for number, fix in enumerate(account.fixes[:_FIXES]):
        yield Text(f"{'' if number else 'fix':<10}{fix.words}{_gain(account, fix)}")


def _gain(account: Why, fix: Fix) -> str:
    """Return the time that a fix would bring at best, and how many times as fast that is."""
    if fix.seconds is None:
        return ""
    faster = f", {times_text(account.roof.seconds / fix.seconds)} as fast" if account.roof else ""
    return f": {time_text(fix.seconds)}{faster}"


def _lines(lines: Sequence[SourceLine]) -> Iterator[Text]:
    for number, line in enumerate(lines[:_LINES]):
        stall = f" ({line.stall})" if line.stall else ""
        text = f"  {line.text.strip()}" if line.text else ""
        yield Text(f"{'' if number else 'source':<10}{line.file}:{line.line} {share_text(line.share)}{stall}{text}")


def _code(code: CodeAgainst | None) -> Iterator[Text]:
    """Yield how the machine code differs from the earlier run's."""
    if code is None:
        return
    if code.state == "unknown":
        yield Text(f"code      {code.note}")
        return
    facts = [f"{name.replace('_', ' ')} {was} to {now}" for name, (was, now) in code.facts.items()]
    facts += ["launched otherwise"] if code.relaunched else []
    yield Text(f"code      {code.state} since {code.before}")
    if facts:
        yield Text(f"          {', '.join(facts)}")
    for entry in code_difference_json(code.entries)[:1]:
        yield Text(f"          {entry['entry']}: {', '.join(changes_of(entry)) or 'other operands or another order'}")
    if code.note:
        yield Text(f"          {code.note}", style="dim")
