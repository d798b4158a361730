"""Measured policies as tables and as JSON, with what each published rule would have cost."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from prism_bench.tuning.crossover import FORMS, POLICIES, cost, pick, shape_text
from prism_bench.tuning.guide import TARGETS, batch_of, largest_within, window_of
from prism_bench.tuning.measured import Measured
from prism_bench.units import ratio_text, share_text, time_text


@dataclass(frozen=True)
class Asked:
    """Which parts to show, and for products what they are given, how exact they must be, and one shape if any."""

    parts: tuple[str, ...]
    operands: str = "float32"
    tolerance: float = 1e-3
    shape: Mapping[str, int] | None = None


def measured_view(measured: Measured, asked: Asked) -> Group:
    """A table per part that was measured."""
    views = {"matmul": _matmul, "windows": _windows, "batches": _batches}
    shown = []
    for part in asked.parts:
        rows = getattr(measured, part)
        shown += views[part](rows, asked) if rows else [Text(f"{part}: not measured here yet")]
    return Group(*shown)


def _matmul(rows, asked):
    if asked.shape:
        found = pick(rows, asked.shape, operands=asked.operands, tolerance=asked.tolerance)
        expected = f", about {time_text(found.seconds)}" if found.seconds else ""
        yield Text(f"{shape_text(asked.shape)} of {asked.operands}: {found.form}{expected} ({found.reason})")
    table = Table(
        title=f"products of {asked.operands} operands, conversion counted, within {asked.tolerance:g}",
        title_justify="left",
    )
    for name in ("m x k x n", *FORMS, "measured", *POLICIES):
        table.add_column(name, justify="right" if name in FORMS else "left")
    for row in rows:
        best = pick([row], row.shape, operands=asked.operands, tolerance=asked.tolerance)
        times = [_time(row, form, asked) for form in FORMS]
        rules = [_picked(rule(**row.shape), best.form) for rule in POLICIES.values()]
        table.add_row(shape_text(row.shape), *times, Text(best.form, "green"), *rules)
    yield table
    for name in [*POLICIES, *(f"always {form}" for form in FORMS)]:
        yield Text(_costs(cost(rows, name, asked.operands, asked.tolerance)))


def _time(row, form, asked):
    text = time_text(row.total(form, asked.operands))
    return text if row.errors[form] <= asked.tolerance else Text(f"{text} (error {row.errors[form]:.1g})", "dim")


def _picked(form, best):
    return Text(form, "" if form == best else "red")


def _costs(found):
    worst = f"at worst {ratio_text(found.worst)} at {shape_text(found.worst_at)}"
    return f"{found.policy}: {ratio_text(found.mean)} of the measured policy's time (geometric mean), {worst}"


def _windows(rows, asked):
    table = Table(title="entropy windows: the guide's choice by pixels", title_justify="left")
    for name in ("image", "window", "guide", "time", "mean entropy", "from window 16", "other segment"):
        table.add_column(name, justify="left" if name == "image" else "right")
    for row in rows:
        chosen = "chosen" if window_of(row.rows * row.cols) == row.window else ""
        table.add_row(f"{row.rows} x {row.cols}", str(row.window), chosen, time_text(row.seconds),
                      f"{row.entropy:.3f} bits", f"{row.difference:.3f} bits", share_text(row.moved))  # fmt: skip
    yield table


def _batches(rows, asked):
    table = Table(title=f"LSTM batches: {rows[0].steps} steps", title_justify="left")
    for name in ("batch", "time", "samples a second", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(str(row.batch), time_text(row.seconds), f"{row.rate:,.0f}", f"{row.error:.1e}")
    yield table
    for target, guide, measured in batch_policies(rows):
        found = f"{measured} is the largest that keeps it" if measured else "none keeps it"
        yield Text(f"under {time_text(target)}: the guide takes {guide[0]}, {time_text(guide[1])}; {found}")


def batch_policies(rows) -> list[tuple[float, tuple[int, float], int | None]]:
    """For each target the guide's batch just below it with its time, and the largest measured one that keeps it; none
    where the guide's has no time.
    """
    seconds = {row.batch: row.seconds for row in rows}
    guide = {target: batch_of(target * 0.999) for target in TARGETS}
    return [
        (target, (batch, seconds[batch]), largest_within(seconds, target))
        for target, batch in guide.items()
        if batch in seconds
    ]


def measured_json(measured: Measured, asked: Asked) -> dict:
    """Whose they are, the rows of the parts asked for, and what follows from them."""
    plain = {key: getattr(measured, key) for key in ("machine", "device", "backend", "toolchain", "created")}
    plain |= {part: [asdict(row) for row in getattr(measured, part)] for part in asked.parts}
    if "matmul" in asked.parts and measured.matmul:
        how = {"operands": asked.operands, "tolerance": asked.tolerance}
        names = [*POLICIES, *(f"always {form}" for form in FORMS)]
        plain["policies"] = [asdict(cost(measured.matmul, name, **how)) for name in names]
        plain["picked"] = [asdict(pick([row], row.shape, **how)) for row in measured.matmul]
        plain["totals"] = [{form: row.total(form, asked.operands) for form in row.seconds} for row in measured.matmul]
        if asked.shape:
            plain["asked"] = asdict(pick(measured.matmul, asked.shape, **how))
    if "batches" in asked.parts and measured.batches:
        plain["targets"] = [
            {"seconds": target, "guide": guide[0], "guide_seconds": guide[1], "measured": found}
            for target, guide, found in batch_policies(measured.batches)
        ]
    return plain
