"""Measured policies as tables and as JSON, with what it would cost to always take one form."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.units import ratio_text, share_text, time_text
from prism_bench.workflows.tuning.crossover import (
    ALWAYS,
    FORMS,
    CrossoverCost,
    CrossoverRow,
    Rule,
    costs,
    pick,
    shape_text,
)
from prism_bench.workflows.tuning.measured import TARGETS, Batch, Measured, Window, largest_within


@dataclass(frozen=True)
class Asked:
    """Which parts to show, and for products what they are given, how exact they must be, and one shape if any."""

    parts: tuple[str, ...]
    operands: str = "float32"
    tolerance: float = 1e-3
    shape: Mapping[str, int] | None = None


def measured_view(measured: Measured, asked: Asked) -> Group:
    """Return a table for each part that was measured."""
    views = {"matmul": _matmul, "windows": _windows, "batches": _batches}
    shown = []
    for part in asked.parts:
        rows = getattr(measured, part)
        shown += views[part](rows, asked) if rows else [Text(f"{part}: not measured here yet")]
    return Group(*shown)


def _matmul(rows: Sequence[CrossoverRow], asked: Asked) -> Iterator[RenderableType]:
    if asked.shape:
        found = pick(rows, asked.shape, operands=asked.operands, tolerance=asked.tolerance)
        expected = f", about {time_text(found.seconds)}" if found.seconds else ""
        yield Text(f"{shape_text(asked.shape)} of {asked.operands}: {found.form}{expected} ({found.reason})")
    yield matmul_table(rows, asked, {})
    for found in costs(rows, ALWAYS, asked.operands, asked.tolerance):
        yield Text(cost_words(found))


def matmul_table(rows: Sequence[CrossoverRow], asked: Asked, rules: Mapping[str, Rule]) -> Table:
    """Return a row for each measured shape: each form's time, the quickest form, and what each of the rules picks."""
    title = f"products of {asked.operands} operands, conversion counted, within {asked.tolerance:g}"
    table = Table(title=title, title_justify="left")
    for name in ("m x k x n", *FORMS, "measured", *rules):
        table.add_column(name, justify="right" if name in FORMS else "left")
    for row in rows:
        best = pick([row], row.shape, operands=asked.operands, tolerance=asked.tolerance)
        times = [_time(row, form, asked) for form in FORMS]
        picked = [rule(row.shape["m"], row.shape["k"], row.shape["n"]) for rule in rules.values()]
        forms = [Text(form, "" if form == best.form else "red") for form in picked]
        table.add_row(shape_text(row.shape), *times, Text(best.form, "green"), *forms)
    return table


def _time(row: CrossoverRow, form: str, asked: Asked) -> Text | str:
    text = time_text(row.total(form, asked.operands))
    return text if row.errors[form] <= asked.tolerance else Text(f"{text} (error {row.errors[form]:.1g})", "dim")


def cost_words(found: CrossoverCost) -> str:
    """Return what a rule costs, as one line."""
    worst = f"at worst {ratio_text(found.worst)} at {shape_text(found.worst_at)}"
    return f"{found.policy}: {ratio_text(found.mean)} of the measured policy's time (geometric mean), {worst}"


def _windows(rows: Sequence[Window], asked: Asked) -> Iterator[RenderableType]:
    table = Table(title="entropy windows by image", title_justify="left")
    for name in ("image", "window", "time", "mean entropy", "from window 16", "other segment"):
        table.add_column(name, justify="left" if name == "image" else "right")
    for row in rows:
        table.add_row(f"{row.rows} x {row.cols}", str(row.window), time_text(row.seconds), f"{row.entropy:.3f} bits",
                      f"{row.difference:.3f} bits", share_text(row.moved))  # fmt: skip
    yield table


def _batches(rows: Sequence[Batch], asked: Asked) -> Iterator[RenderableType]:
    table = Table(title=f"LSTM batches: {rows[0].steps} steps", title_justify="left")
    for name in ("batch", "time", "samples a second", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(str(row.batch), time_text(row.seconds), f"{row.rate:,.0f}", f"{row.error:.1e}")
    yield table
    for target, batch in targets(rows).items():
        words = f"{batch} is the largest that keeps it" if batch else "none keeps it"
        yield Text(f"under {time_text(target)}: {words}")


def targets(rows: Sequence[Batch]) -> dict[float, int | None]:
    """Return the largest measured batch within each target of latency, None where no batch is."""
    seconds = {row.batch: row.seconds for row in rows}
    return {target: largest_within(seconds, target) for target in TARGETS}


def measured_json(measured: Measured, asked: Asked) -> dict[str, object]:
    """Return whose measurements they are, the rows of the parts asked for, and what follows from them."""
    plain = {key: getattr(measured, key) for key in ("machine", "device", "backend", "toolchain", "created")}
    plain |= {part: [asdict(row) for row in getattr(measured, part)] for part in asked.parts}
    if "matmul" in asked.parts and measured.matmul:
        how = {"operands": asked.operands, "tolerance": asked.tolerance}
        plain["policies"] = [asdict(one) for one in costs(measured.matmul, ALWAYS, **how)]
        plain["picked"] = [asdict(pick([row], row.shape, **how)) for row in measured.matmul]
        plain["totals"] = [{form: row.total(form, asked.operands) for form in row.seconds} for row in measured.matmul]
        if asked.shape:
            plain["asked"] = asdict(pick(measured.matmul, asked.shape, **how))
    if "batches" in asked.parts and measured.batches:
        found = targets(measured.batches).items()
        plain["targets"] = [{"seconds": target, "measured": batch} for target, batch in found]
    return plain
