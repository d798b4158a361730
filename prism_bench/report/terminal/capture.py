"""Captures of profilers in the terminal: the kernels of ncu, and the timelines of nsys and CUPTI."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.bounds.captures import (
    CapturedKernel,
    captured_kernels,
    faster,
    launch_values,
    ordered_advice,
    short_advice,
    short_names,
    worthwhile,
)
from prism_bench.analysis.bounds.profiles import KernelTotal, LaunchLedger
from prism_bench.profilers.metrics import (
    LOGICAL,
    ProfiledLaunch,
    ProfiledValue,
    ProfilerAdvice,
    chips,
    combined,
    why_missing,
)
from prism_bench.report.terminal.tables import FittedColumn, fitted, middle_cut
from prism_bench.units import bytes_text, count_text, rate_text, share_text, time_text
from prism_bench.workflows.tracing import LaunchCost

# Launches of ncu: an answer for each, or for each kernel of many.

MOST_ROWS = 20
_ONE_BY_ONE = 8  # launches; more of the same kernels are added up
_FEW = 3  # rows, below which further advice is shown
_SMALL_GRID = 0.5  # waves
_LEAST_NAME, _LONGEST_NAME = 16, 40


def capture_json(launches: Sequence[ProfiledLaunch]) -> list[dict[str, Any]]:
    """Return the launches of a capture, with the metric set where the names of its metrics are known.

    `bottleneck` is the answer in words, `missing` has the metrics without a value, and why.
    """
    return [
        {
            "id": launch.id,
            "process": launch.process,
            "device": launch.device,
            "kernel": launch.kernel,
            "grid": launch.grid,
            "block": launch.block,
            "capability": launch.capability,
            "bottleneck": captured_kernels([launch], by_name=False)[0].verdict,
            "values": _values([launch]),
            "missing": _missing(launch),
            "metrics": {name: asdict(quantity) for name, quantity in launch.metrics.items()},
            "rules": [{**asdict(rule), "faster": faster(rule)} for rule in ordered_advice(launch.rules)],
        }
        for launch in launches
    ]


def capture_view(
    launches: Sequence[ProfiledLaunch], *, everything: bool = False, most: int = MOST_ROWS
) -> RenderableType:
    """Return a line for each launch, or each kernel of many launches, the longest first: what limits it, and advice.

    With `everything` each launch with all that was counted. Processes and devices are named where there are several.
    """
    if everything:
        return _every_launch(launches)
    by_name = len(launches) > _ONE_BY_ONE and len({launch.kernel for launch in launches}) < len(launches)
    kernels = captured_kernels(launches, by_name=by_name)
    names = short_names([kernel.kernel for kernel in kernels])
    several = [key for key in ("process", "device") if len({getattr(kernel, key) for kernel in kernels}) > 1]
    rows: list[tuple[list[str], Text]] = []
    for kernel in kernels[:most]:
        advice = worthwhile(kernel.advice)
        cells = [names[kernel.kernel], *(_known(getattr(kernel, key)) for key in several)]
        cells += [str(kernel.launches)] if by_name else []
        cells += [time_text(kernel.seconds)] + ([share_text(kernel.share)] if len(kernels) > 1 else [])
        verdict = Text(kernel.verdict, style="yellow" if kernel.limit else "")
        rows.append((cells, verdict + _reason(advice[:1], kernel.waves)))
        for rule in advice[1:_FEW] if len(kernels) <= _FEW else ():
            rows.append(([""] * len(cells), Text(f"also {_advice_text(rule)}", style="dim")))
    numbers = [*several, *(["launches"] if by_name else []), "time", *(["share"] if len(kernels) > 1 else [])]
    return Group(Answers(numbers, rows), *_below(launches, kernels, most))


class Answers:
    """A table of answers: a name, columns of `numbers`, and the bottleneck.

    A name takes a third of the line at most, and the last column is folded.
    """

    def __init__(self, numbers: Sequence[str], rows: Sequence[tuple[Sequence[str], Text]]) -> None:
        self._numbers, self._rows = numbers, rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", show_header="share" in self._numbers)
        table.add_column("kernel", no_wrap=True)
        for title in self._numbers:
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("bottleneck", overflow="fold")
        for (name, *cells), verdict in self._rows:
            table.add_row(middle_cut(name, max(_LEAST_NAME, options.max_width // 3)), *cells, verdict)
        yield table


def _reason(advice: Sequence[ProfilerAdvice], waves: float | None) -> str:
    """Return the best advice, else that the grid leaves more than half of the device idle."""
    if advice:
        return f": {_advice_text(advice[0])}"
    is_small = waves is not None and waves < _SMALL_GRID
    return f"; its grid fills {share_text(waves)} of the device" if is_small else ""


def _advice_text(rule: ProfilerAdvice) -> str:
    times = faster(rule)
    return f"{short_advice(rule)} (ncu: up to {times:.2g}x)" if times else f"{short_advice(rule)} (ncu)"


def _below(launches: Sequence[ProfiledLaunch], kernels: Sequence[CapturedKernel], most: int) -> Iterator[Text]:
    """Yield what is not shown, and how to see it."""
    if len(kernels) > most:
        hidden = sum(kernel.seconds or 0.0 for kernel in kernels[most:])
        yield Text(f"{len(kernels) - most} more rows, {time_text(hidden)} in all: --limit {len(kernels)}", style="dim")
    if not any(kernel.seconds for kernel in kernels):
        yield Text("no duration was counted: the rows are in the order of the file", style="yellow")
    missing = {name for launch in launches for name in _missing(launch) if name in _SOURCES or "." in name}
    if missing:
        yield Text(f"{count_text(len(missing), 'counter')} without a value: --all names them and why", style="yellow")
    rules = sum(len(launch.rules) for launch in launches)
    counted = max(len(launch.metrics) for launch in launches)
    more = f" and {count_text(rules, 'rule')} of ncu" if rules else ""
    yield Text(f"--all shows {count_text(counted, 'counter')} a launch{more}; {NO_TIMES}", style="dim")


NO_TIMES = "times under a profiler are no benchmark times"
_SOURCES = {source for metric in LOGICAL.values() for source in metric.sources}


def _every_launch(launches: Sequence[ProfiledLaunch]) -> RenderableType:
    """Return each launch with its values, the metrics without one, and the rules of ncu, the best first."""
    several = tuple(key for key in ("process", "device") if len({getattr(launch, key) for launch in launches}) > 1)
    lines: list[Text] = []
    for launch in launches:
        place = "".join(f"  {key} {_known(getattr(launch, key))}" for key in several)
        lines.append(Text(f"{launch.kernel}  grid {launch.grid}  block {launch.block}{place}", style="bold"))
        missing = _missing(launch)
        is_labelled = any(": " in name for name in launch.metrics)  # the labels have the same values
        logical = {} if is_labelled else launch_values(launch)
        values = {name: _logical_text(name, value) for name, value in logical.items()}
        values |= {
            name: _value_text(name, quantity)
            for name, quantity in launch.metrics.items()
            if quantity.value is not None and name not in missing and name not in _SOURCES
        }
        lines += [Text(f"  {name} = {value}") for name, value in values.items()]
        lines += _missing_lines(missing)
        for rule in ordered_advice(launch.rules):
            times = faster(rule)
            gain = f", up to {times:.2g}x" if times else ""
            lines.append(Text(f"  rule of ncu ({rule.kind}{gain}): {rule.text}", style="dim"))
    return Group(*lines)


def _logical_text(name: str, value: float) -> str:
    return _value_text(name, ProfiledValue(value, LOGICAL[name].unit))


def _value_text(name: str, quantity: ProfiledValue) -> str:
    """Return the value as people write it: `21.1 ms`, `3.54 MB`, `62 %`, `196 GB/s`, `32 register/thread`."""
    value, unit = quantity.value, quantity.unit
    if value is None:
        return quantity.text
    if unit == "s":
        return time_text(value)
    if unit == "B":
        return bytes_text(value)
    if unit in ("B/s", "Hz"):
        return rate_text(value, unit)
    if unit == "1" and (name.endswith(("_share", "_rate", "[%]")) or "pct" in name or "occupancy" in name):
        return share_text(value)
    number = f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
    return number if unit in ("1", "") else f"{number} {unit}"


def _missing_lines(missing: Mapping[str, str]) -> list[Text]:
    """Return a line for each reason with the metrics that have no value for it."""
    names: dict[str, list[str]] = {}
    for name, reason in missing.items():
        names.setdefault(reason, []).append(name)
    return [Text(f"  no value of {', '.join(of)}: {reason}", style="yellow") for reason, of in names.items()]


def _missing(launch: ProfiledLaunch) -> dict[str, str]:
    """Return why a counter of the launch has no value, by its name; words, such as a policy's, are values."""
    chip = chips().get(launch.capability or "")
    reasons = {
        name: why_missing(name, quantity, chip)
        for name, quantity in launch.metrics.items()
        if quantity.value is not None or quantity.is_missing
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _values(launches: Sequence[ProfiledLaunch]) -> dict[str, dict[str, Any]]:
    """Return the metric set over launches of one chip; nothing where the chip is unknown."""
    chip = chips().get(launches[0].capability or "")
    return combined(launches, chip, "all") if chip else {}


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)


# Timelines of nsys and CUPTI: kernels by their time, then gaps and copies; ranges on demand.

CAUSES = ("sync", "host", "launch", "queued")


def timeline_json(account: LaunchLedger, costs: Mapping[str, LaunchCost]) -> dict[str, Any]:
    """Return what `prism-bench profile --json` prints of a timeline."""
    return {**asdict(account), "costs": {name: asdict(cost) for name, cost in costs.items()}}


def timeline_view(
    account: LaunchLedger, costs: Mapping[str, LaunchCost], *, ranges: bool, most: int = MOST_ROWS
) -> RenderableType:
    """Return the kernels by their time, gaps and copies in a line, and notes; with `ranges` a row for each range."""
    total = account.total
    devices = f" on {count_text(len(account.devices), 'device')}" if len(account.devices) > 1 else ""
    title = f"{account.source}: {time_text(total.span)}{devices}, busy {share_text(total.busy_share)}"
    kernels = _totals("kernel", account.kernels, total.kernel_seconds, most)
    lines = [*_hidden(account.kernels, most), f"{_gaps(account)}; {_copies(account)}"]
    if account.ranges and not ranges:
        count = len(account.ranges) + account.left_out
        lines.append(f"{count_text(count, 'range')} with their gaps and copies: --all")
    parts: list[RenderableType] = [Text(title, style="bold"), kernels, *map(Text, lines)]
    if account.ranges and ranges:
        parts.append(_ranges(account))
        if account.left_out:
            parts.append(Text(f"{count_text(account.left_out, 'shorter range')} left out: --limit shows more"))
    parts += [
        Text(f"{name}: the host takes {time_text(cost.plain)} to launch it, {time_text(cost.watched)} while watched")
        for name, cost in costs.items()
    ]
    return Group(*parts, *(Text(f"note: {note}", style="dim") for note in account.notes))


def summary_view(kind: str, totals: Sequence[KernelTotal], most: int = MOST_ROWS) -> RenderableType:
    """Return the rows of a summary of nsys by their time; `kind` is what they are, in the plural."""
    whole = sum(total.seconds for total in totals)
    return Group(_totals(kind.removesuffix("s"), totals, whole, most), *map(Text, _hidden(totals, most)))


def _totals(noun: str, totals: Sequence[KernelTotal], whole: float, most: int) -> RenderableType:
    """Return a row for each kernel, call, transfer or range, with its part of the `whole` seconds."""
    names = short_names([total.name for total in totals]) if noun == "kernel" else {}
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(noun, no_wrap=True)
    for title in ("launches" if noun == "kernel" else "number", "total", "mean", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    for total in totals[:most]:
        times = (time_text(total.seconds), time_text(total.seconds / total.launches))
        name = middle_cut(names.get(total.name, total.name), _LONGEST_NAME)
        table.add_row(Text(name), str(total.launches), *times, share_text(total.seconds / whole if whole else None))
    return table


def _hidden(totals: Sequence[KernelTotal], most: int) -> list[str]:
    """Return a line on the rows that are not shown, if any."""
    seconds = sum(total.seconds for total in totals[most:])
    return [f"{len(totals) - most} more rows take {time_text(seconds)}: --limit {len(totals)}"] if seconds else []


def _gaps(account: LaunchLedger) -> str:
    total = account.total
    if not total.gap_count:
        return "no gaps"
    by_time = sorted(total.gaps.items(), key=lambda item: -item[1].seconds)
    causes = ", ".join(f"{cause} {time_text(gaps.seconds)}" for cause, gaps in by_time)
    return f"{count_text(total.gap_count, 'gap')} of {time_text(total.idle)} ({causes})"


def _copies(account: LaunchLedger) -> str:
    total = account.total
    if not total.copies:
        return "no copies"
    copied = f"{bytes_text(total.copied_bytes)} in {time_text(account.copy_seconds)}"
    return f"{count_text(total.copies, 'copy', 'copies')} of {copied}"


def _ranges(account: LaunchLedger) -> RenderableType:
    """Return a row for each range, with its gaps by cause."""
    graphs = ("graphs",) if account.total.graphs else ()
    numbers = ("kernels", *graphs, "launch calls", "busy", "span", "idle", "gaps", *CAUSES, "copies")
    going = (*CAUSES, "gaps", "launch calls", "span", *graphs)
    columns = [FittedColumn("range")]
    columns += [
        FittedColumn(name, numbers=True, goes=going.index(name) + 1 if name in going else None) for name in numbers
    ]
    rows: list[tuple[tuple[str, ...], None]] = []
    for row in account.ranges:
        causes = (time_text(row.gaps[word].seconds) if word in row.gaps else "-" for word in CAUSES)
        times = (share_text(row.busy_share), time_text(row.span), time_text(row.idle), str(row.gap_count))
        counts = (str(row.kernels), *(str(row.graphs) for _ in graphs), str(row.launch_calls))
        copies = f"{row.copies} ({bytes_text(row.copied_bytes)})" if row.copies else "-"
        rows.append(((row.name or "all", *counts, *times, *causes, copies), None))
    return fitted("", columns, rows)
