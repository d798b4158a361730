"""What changes from one toolchain to the next, in the terminal and as plain values."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.report.plain import code_difference_json, comparison_json
from prism_bench.report.terminal.comparison import comparison_view
from prism_bench.report.terminal.tables import FittedColumn, fitted
from prism_bench.report.terminal.verification import complaint_lines
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import together
from prism_bench.workflows.toolchains import ChangedOnDevice, KernelChange, ToolchainComparison

_MOST_KINDS = 3  # of instructions in a cell, those that changed most
_COLUMNS = (
    FittedColumn("kernel"),
    FittedColumn("sm", numbers=True),
    FittedColumn("entries", numbers=True, goes=2),
    FittedColumn("registers", numbers=True),
    FittedColumn("spilled B", numbers=True),
    FittedColumn("shared B", numbers=True, goes=1),
    FittedColumn("code B", numbers=True),
    FittedColumn("compile s", numbers=True, goes=3),
    FittedColumn("instructions", goes=4),
)


def toolchains_json(
    comparisons: Sequence[ToolchainComparison], launched: Sequence[ChangedOnDevice | None]
) -> list[dict[str, object]]:
    """Return what `prism-bench compile --toolchains --json` prints; pairs are [before, after].

    `device` is null where nothing was launched. `code_bytes` include the padding of functions, those in
    `code_difference` do not.
    """
    return [
        {
            "toolchains": [toolchain.name for toolchain in comparison.toolchains],
            "compilers": list(comparison.compilers),
            "changes": [
                {
                    "kernel": change.kernel,
                    "architecture": change.architecture,
                    "entries": [row.entry for row, _ in change.rows],
                    **{name: list(pair) for name, pair in change.totals().items()},
                    "compile_seconds": list(change.seconds),
                    "steps": list(change.steps),
                    "code_difference": code_difference_json(change.entries),
                    "code_note": change.note,
                }
                for change in comparison.changes
            ],
            "same": list(comparison.same),
            "complaints": [asdict(complaint) for complaint in comparison.complaints],
            "left_out": [asdict(complaint) for complaint in comparison.left_out],
            "device": outcome
            and {
                "name": outcome.device,
                "bits": [asdict(bits) for bits in outcome.bits],
                "times": comparison_json(outcome.times),
            },
        }
        for comparison, outcome in zip(comparisons, launched, strict=True)
    ]


def toolchain_view(comparison: ToolchainComparison, launched: ChangedOnDevice | None = None) -> RenderableType:
    """Return the kernels whose machine code changed between two toolchains, then every step and complaint in red.

    What was `launched` of them follows: bits of the outputs, and times.
    """
    old, new = (
        " ".join([compiler, *toolchain.options]) if compiler else toolchain.name
        for compiler, toolchain in zip(comparison.compilers, comparison.toolchains, strict=True)
    )
    changed, same = (count_text(len(kernels), "kernel") for kernels in (comparison.changed, comparison.same))
    parts: list[RenderableType] = [Text(f"{old} -> {new}: machine code of {changed} changed, of {same} not")]
    if comparison.changes:
        rows = [(tuple(_toolchain_cells(change)), "red" if change.steps else None) for change in comparison.changes]
        parts.append(fitted("", _COLUMNS, rows))
    steps: dict[tuple[str, str], list[str]] = {}
    for change in comparison.changes:
        for step in change.steps:
            steps.setdefault((change.kernel, step), []).append(f"sm_{change.architecture}")
    parts += [Text(f"{kernel} on {', '.join(on)}: {step}", style="red") for (kernel, step), on in steps.items()]
    parts += [Text(line, style="red") for line in complaint_lines(comparison.complaints)]
    notes = {change.note: None for change in comparison.changes if change.note and not _is_listed(change)}
    parts += [Text(text, style="dim") for text in (*notes, *together(comparison.left_out))]
    return Group(*parts, *(_launched(launched) if launched else ()))


def _launched(outcome: ChangedOnDevice) -> Iterator[RenderableType]:
    """Yield the counts of the cases by the bits of their outputs, each case with other bits, and the times."""
    counts = Counter(case.bits for case in outcome.bits)
    counted = ", ".join(f"{bits} in {count_text(count, 'case')}" for bits, count in counts.items())
    yield Text(f"bits of the outputs on {outcome.device}: {counted}")
    for case in outcome.bits:
        if case.bits != "equal":
            yield Text(f"{case.case}: {case.bits}: {case.reason}", style="yellow")
    yield comparison_view(outcome.times)


def _is_listed(change: KernelChange) -> bool:
    return all(entry.is_listed for entry in change.entries)


def _toolchain_cells(change: KernelChange) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    for entry in change.entries:
        kinds.update({kind: after - before for kind, (before, after) in entry.kinds.items()})
    moved = sorted(((kind, count) for kind, count in kinds.items() if count), key=lambda pair: -abs(pair[1]))
    yield from (change.kernel, change.architecture, str(len(change.rows)))
    yield from (str(a) if a == b else f"{a} -> {b}" for a, b in change.totals().values())
    yield " -> ".join(f"{seconds:.2f}" for seconds in change.seconds)
    yield ", ".join(f"{kind} {count:+d}" for kind, count in moved[:_MOST_KINDS]) or change.note or "the same counts"
