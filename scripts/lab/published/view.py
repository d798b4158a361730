"""Published figures in the terminal: next to ours, rules with how many cases keep them, choices with their cost."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.published.choices import POLICIES
from lab.published.comparison import PublishedComparison, summaries
from lab.published.figures import FigureVerdict, quoted
from lab.published.rules import remarks
from prism_bench.analysis.findings import metric_words
from prism_bench.report.terminal.fitted_table import FittedColumn, fitted
from prism_bench.report.terminal.policies import Asked, cost_words, matmul_table
from prism_bench.units import share_text, time_text

_COLUMNS = (
    FittedColumn("kernel at S0"), FittedColumn("published workload", goes=2),
    FittedColumn("published mean", numbers=True, goes=3), FittedColumn("published budget", numbers=True),
    FittedColumn("ours, end to end", numbers=True), FittedColumn("ours, cold", numbers=True, goes=1),
    FittedColumn("verdict"),
)  # fmt: skip
_STYLES = {"met": "green", "missed": "bold red", "undecided": "yellow"}


def published_view(compared: PublishedComparison) -> Group:
    """Return all parts for a console; a part without anything to compare with is named."""
    return Group(*_figures(compared), *_rules(compared), *_choices(compared))


def _figures(compared: PublishedComparison) -> Iterator[RenderableType]:
    if not compared.figures:
        yield Text("This record timed none of the published kernels at their size.")
        return
    yield fitted(f"figures quoted from the {quoted()['source']}", _COLUMNS,
                 [(_figure(one), None) for one in compared.figures])  # fmt: skip
    yield Text(f"  quoted times are {quoted()['clock']}; the verdict compares our end-to-end time", style="dim")


def _figure(one: FigureVerdict) -> list[Text | str]:
    quote = one.published
    mean = f"{time_text(quote.low)} to {time_text(quote.high)}"
    budget = time_text(quote.budget) if quote.budget else "none stated"
    ours = [time_text(seconds) if seconds else "-" for seconds in (one.end_to_end, one.cold)]
    verdict = Text(one.verdict or "no budget", _STYLES.get(one.verdict or "", "dim"))
    return [quote.kernel, quote.workload, mean, budget, *ours, verdict]


def _rules(compared: PublishedComparison) -> Iterator[RenderableType]:
    found = summaries(compared.verdicts)
    if not found:
        return
    table = Table(title="rules of thumb", title_justify="left")
    for name in ("rule", "metric"):
        table.add_column(name)
    for name in ("limit", "kept", "broken", "unmeasured"):
        table.add_column(name, justify="right")
    for one in found:
        limit = time_text(one["limit"]) if one["rule"] in ("slow", "target mean") else f"{one['limit']:.3g}"
        counts = (str(one["kept"]), str(one["broken"]), str(one["unmeasured"]))
        table.add_row(one["rule"], metric_words(one["metric"]), limit, *counts)
    yield table
    for remark in remarks(compared.verdicts):
        yield Text.assemble((f"{remark.kind}: ", "yellow"), f"{remark.case}: {remark.message}")


def _choices(compared: PublishedComparison) -> Iterator[RenderableType]:
    if compared.measured is None:
        yield Text("No policy was measured on this machine: prism-bench select --measure.")
        return
    if compared.measured.matmul:
        yield matmul_table(compared.measured.matmul, Asked(("matmul",)), POLICIES)
        yield from (Text(cost_words(one)) for one in compared.costs)
    for row in compared.windows:
        words = f"the guide takes window {row.window} for {row.rows} x {row.cols}: {time_text(row.seconds)}"
        yield Text(f"{words}, {row.difference:.3f} bits from window 16, {share_text(row.moved)} in another segment")
    for one in compared.batches:
        words = f"{one.measured} is the largest that keeps it" if one.measured else "none keeps it"
        yield Text(
            f"under {time_text(one.seconds)}: the guide takes {one.guide}, {time_text(one.guide_seconds)}; {words}"
        )
