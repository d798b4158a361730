"""Tuning sessions and measured policies in the terminal, sessions also as plain values."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.selection import Decided, mean_speedup
from prism_bench.report.plain import batch_targets
from prism_bench.report.terminal.tables import FittedColumn, fitted
from prism_bench.spec.case import Case
from prism_bench.spec.workload import written
from prism_bench.units import count_text, energy_text, ratio_text, share_text, time_text
from prism_bench.workflows.tuning.crossover import (
    ALWAYS,
    FORMS,
    MEASURED_PARTS,
    Batch,
    CrossoverRow,
    Measured,
    Window,
    costs,
    pick,
    shape_text,
)

# A tuning session as a table and as JSON: what was tried, what is launched from now on, what the default costs.


def session_view(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> Group:
    """Return a table with a row for each case, and lines about all cases together."""
    least = decisions[0].searched.least if decisions else "time"
    columns = (
        FittedColumn("case"),
        FittedColumn("default", numbers=True),
        FittedColumn(least, numbers=True),
        FittedColumn("speedup" if least == "time" else "less energy"),
        FittedColumn("launched from now on"),
        FittedColumn("tried", numbers=True, goes=2),
        FittedColumn("why", goes=1),
    )
    table = fitted("launch configurations", columns, [(_row(decided), None) for decided in decisions])
    return Group(table, *_fronts(decisions), *[Text(line) for line in _words(decisions, left, seconds)])


def _fronts(decisions: Sequence[Decided]) -> Iterator[RenderableType]:
    """Yield the Pareto fronts of the cases in which the quickest configuration does not take the least energy."""
    columns = [FittedColumn("case"), FittedColumn("time", numbers=True), FittedColumn("energy", numbers=True)]
    rows = [
        (
            (
                decided.searched.default.name,
                time_text(seconds),
                energy_text(joules),
                task.partition("@")[2] or "default",
            ),
            None,
        )
        for decided in decisions
        for task, seconds, joules in decided.searched.front
        if len(decided.searched.front) > 1
    ]
    if rows:
        yield fitted("less time or less energy", [*columns, FittedColumn("configuration")], rows)


def _row(decided: Decided) -> tuple[str | Text, ...]:
    tried = f"{decided.searched.tried}" + (
        f" of {decided.searched.space}" if decided.searched.tried < decided.searched.space else ""
    )
    tried += f", {len(decided.searched.refused)} refused" if decided.searched.refused else ""
    tried = "skipped" if decided.searched.skipped else tried
    (usual, now), text = decided.values, time_text if decided.searched.least == "time" else energy_text
    if not decided.adopted:
        return (decided.searched.default.name, text(usual), "", "", "the default", tried, decided.reason)
    low, high = decided.interval
    gain = Text(f"{ratio_text(decided.gain)} ({low:.3f} to {high:.3f})", "green")
    return (
        decided.searched.default.name,
        text(usual),
        text(now),
        gain,
        written(decided.chosen.configuration),
        tried,
        decided.reason,
    )


def _words(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> Iterator[str]:
    adopted = [decided for decided in decisions if decided.adopted]
    mean, of_these = mean_speedup(decisions), mean_speedup(adopted)
    tuned = [decided for decided in decisions if not decided.searched.skipped]
    text = f"{len(adopted)} of {count_text(len(tuned), 'case')} leave their default"
    text += f": {ratio_text(of_these)} among themselves, {ratio_text(mean)} over all" if adopted else ""
    tried = sum(decided.searched.tried for decided in decisions)
    yield f"{text} (geometric means). {count_text(tried, 'configuration')} tried in {seconds:.0f} s."
    for decided in decisions:
        reasons = list(decided.searched.refused.items())
        more = f" ({len(reasons) - 1} more of this case)" if len(reasons) > 1 else ""
        what = "skipped" if decided.searched.skipped else "refused"
        yield from (f"{what}: {task}: {reason}{more}" for task, reason in reasons[:1])
    if left:
        yield f"not tuned, for lack of time: {', '.join(case.name for case in left)}"


def session_json(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> dict[str, Any]:
    """Return the session as plain values; seconds and joules are medians, of each configuration those of the search."""
    return {
        "seconds": round(seconds, 1),
        "mean_speedup": mean_speedup(decisions),
        "left": [case.name for case in left],
        "cases": [_plain(decided) for decided in decisions],
    }


def _plain(decided: Decided) -> dict[str, Any]:
    usual, now = (None if value != value else value for value in decided.values)
    low, high = decided.interval
    by_energy = decided.searched.least == "energy"
    unit = "joules" if by_energy else "seconds"
    front = [{"task": task, "seconds": seconds, "joules": joules} for task, seconds, joules in decided.searched.front]
    energies = {"joules_searched": dict(decided.searched.joules), "front": front} if by_energy else {}
    return {
        "case": decided.searched.default.name,
        "space": decided.searched.space,
        "tried": decided.searched.tried,
        "refused": dict(decided.searched.refused),
        "skipped": decided.searched.skipped,
        "searched": dict(decided.searched.seconds),
        "default": decided.searched.default.configuration,
        "configuration": decided.chosen.configuration,
        "adopted": decided.adopted,
        f"default_{unit}": usual,
        unit: now,
        "speedup": decided.gain,
        "interval": [low, high],
        "default_costs": share_text(decided.gain - 1) if decided.adopted else None,
        "reason": decided.reason,
        "least": decided.searched.least,
        **energies,
    }


# Measured policies, with what it would cost to always take one form.


def measured_view(measured: Measured, tolerance: float = 1e-3, parts: Sequence[str] = MEASURED_PARTS) -> RenderableType:
    """Return a table for each of the parts that was measured; of products two, of float32 and of float16 operands."""
    shown: list[RenderableType] = []
    for part in parts:
        if not getattr(measured, part):
            shown.append(Text(f"{part}: not measured here yet"))
        elif part == "matmul":
            shown += _products(measured.matmul, "float32", tolerance)
            shown.append(_products_table(measured.matmul, "float16", tolerance))
        elif part == "windows":
            shown.append(_windows(measured.windows))
        else:
            shown += _batches(measured.batches)
    return Group(*shown)


def _products(rows: Sequence[CrossoverRow], operands: str, tolerance: float) -> Iterator[RenderableType]:
    yield _products_table(rows, operands, tolerance)
    for cost in costs(rows, ALWAYS, operands, tolerance):
        worst = f"at worst {ratio_text(cost.worst)} at {shape_text(cost.worst_at)}"
        mean = f"{ratio_text(cost.mean)} of the measured policy's time (geometric mean)"
        yield Text(f"{cost.policy}: {mean}, {worst}")


def _products_table(rows: Sequence[CrossoverRow], operands: str, tolerance: float) -> Table:
    """Return a row for each measured shape: each form's time, and the quickest form."""
    title = f"products of {operands} operands, conversion counted, within {tolerance:g}"
    table = Table(title=title, title_justify="left")
    for name in ("m x k x n", *FORMS, "measured"):
        table.add_column(name, justify="right" if name in FORMS else "left")
    for row in rows:
        best = pick([row], row.shape, operands=operands, tolerance=tolerance)
        times = (time_text(row.total(form, operands)) for form in FORMS)
        cells = (
            time if row.errors[form] <= tolerance else Text(f"{time} (error {row.errors[form]:.1g})", "dim")
            for form, time in zip(FORMS, times, strict=True)
        )
        table.add_row(shape_text(row.shape), *cells, Text(best.form, "green"))
    return table


def _windows(rows: Sequence[Window]) -> Table:
    table = Table(title="entropy windows by image", title_justify="left")
    for name in ("image", "window", "time", "mean entropy", "from window 16", "other segment"):
        table.add_column(name, justify="left" if name == "image" else "right")
    for row in rows:
        table.add_row(
            f"{row.rows} x {row.cols}",
            str(row.window),
            time_text(row.seconds),
            f"{row.entropy:.3f} bits",
            f"{row.difference:.3f} bits",
            share_text(row.moved),
        )
    return table


def _batches(rows: Sequence[Batch]) -> Iterator[RenderableType]:
    table = Table(title=f"LSTM batches: {rows[0].steps} steps", title_justify="left")
    for name in ("batch", "time", "samples a second", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(str(row.batch), time_text(row.seconds), f"{row.rate:,.0f}", f"{row.error:.1e}")
    yield table
    for target, batch in batch_targets(rows).items():
        kept = f"{batch} is the largest that keeps it" if batch else "none keeps it"
        yield Text(f"under {time_text(target)}: {kept}")
