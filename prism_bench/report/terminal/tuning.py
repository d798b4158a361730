"""Tuning sessions and measured policies as tables and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.selection import Decided, mean_speedup
from prism_bench.spec.case import Case
from prism_bench.spec.workload import written
from prism_bench.units import count_text, ratio_text, share_text, time_text
from prism_bench.workflows.tuning.crossover import (
    ALWAYS,
    FORMS,
    TARGETS,
    Batch,
    CrossoverCost,
    CrossoverRow,
    Measured,
    Rule,
    Window,
    costs,
    largest_within,
    pick,
    shape_text,
)

# A tuning session as a table and as JSON: what was tried, what is launched from now on, what the default costs.


def session_view(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> Group:
    """Return a table with a row for each case, and lines about all cases together."""
    table = Table(title="launch configurations", title_justify="left")
    for name in ("case", "tried", "default", "launched from now on", "time", "speedup", "the default costs", "why"):
        table.add_column(name, overflow="fold", justify="right" if name in ("tried", "default", "time") else "left")
    for one in decisions:
        table.add_row(*_row(one))
    return Group(table, *[Text(line) for line in _words(decisions, left, seconds)])


def _row(one: Decided) -> tuple[RenderableType, ...]:
    tried = f"{one.searched.tried}" + (f" of {one.searched.space}" if one.searched.tried < one.searched.space else "")
    tried += f", {len(one.searched.refused)} refused" if one.searched.refused else ""
    usual, now = one.seconds
    if not one.adopted:
        return (one.searched.default.name, tried, time_text(usual), "the default", "", "", "", one.reason)
    low, high = one.interval
    speedup = Text(f"{ratio_text(one.speedup)} ({low:.3f} to {high:.3f})", "green")
    return (
        one.searched.default.name,
        tried,
        time_text(usual),
        written(one.chosen.configuration),
        time_text(now),
        speedup,
        f"{time_text(usual - now)} of each launch",
        one.reason,
    )


def _words(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> Iterator[str]:
    adopted = [one for one in decisions if one.adopted]
    mean, of_these = mean_speedup(decisions), mean_speedup(adopted)
    words = f"{len(adopted)} of {count_text(len(decisions), 'case')} leave their default"
    words += f": {ratio_text(of_these)} among themselves, {ratio_text(mean)} over all" if adopted else ""
    tried = sum(one.searched.tried for one in decisions)
    yield f"{words} (geometric means). {count_text(tried, 'configuration')} tried in {seconds:.0f} s."
    for one in decisions:
        reasons = list(one.searched.refused.items())
        more = f" ({len(reasons) - 1} more of this case)" if len(reasons) > 1 else ""
        yield from (f"refused: {task}: {reason}{more}" for task, reason in reasons[:1])
    if left:
        yield f"not tuned, for lack of time: {', '.join(case.name for case in left)}"


def session_json(decisions: Sequence[Decided], left: Sequence[Case], seconds: float) -> dict[str, Any]:
    """Return the session as plain values; seconds are medians, each configuration has its time of the search."""
    return {
        "seconds": round(seconds, 1),
        "mean_speedup": mean_speedup(decisions),
        "left": [case.name for case in left],
        "cases": [_plain(one) for one in decisions],
    }


def _plain(one: Decided) -> dict[str, Any]:
    usual, now = (None if value != value else value for value in one.seconds)
    low, high = one.interval
    return {
        "case": one.searched.default.name,
        "space": one.searched.space,
        "tried": one.searched.tried,
        "refused": dict(one.searched.refused),
        "searched": dict(one.searched.seconds),
        "default": one.searched.default.configuration,
        "configuration": one.chosen.configuration,
        "adopted": one.adopted,
        "default_seconds": usual,
        "seconds": now,
        "speedup": one.speedup,
        "interval": [low, high],
        "default_costs": share_text(one.speedup - 1) if one.adopted else None,
        "reason": one.reason,
    }


# Measured policies as tables and as JSON, with what it would cost to always take one form.


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
    yield _matmul_table(rows, asked, {})
    for found in costs(rows, ALWAYS, asked.operands, asked.tolerance):
        yield Text(_cost_words(found))


def _matmul_table(rows: Sequence[CrossoverRow], asked: Asked, rules: Mapping[str, Rule]) -> Table:
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


def _cost_words(found: CrossoverCost) -> str:
    """Return what a rule costs, as one line."""
    worst = f"at worst {ratio_text(found.worst)} at {shape_text(found.worst_at)}"
    return f"{found.policy}: {ratio_text(found.mean)} of the measured policy's time (geometric mean), {worst}"


def _windows(rows: Sequence[Window], asked: Asked) -> Iterator[RenderableType]:
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
