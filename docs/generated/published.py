"""Figures, rules and choices that the design documents publish, next to those of the newest record of the H200."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from lab.published.choices import POLICIES
from lab.published.comparison import PublishedComparison, compared_chains, comparison_of, summaries
from lab.published.figures import FigureVerdict, quoted
from lab.published.rules import REMARKED, remarks

from docs.generated import catalogue
from docs.generated.markdown import code, joined, plain, table
from docs.readme import ROOT, newest
from prism_bench.analysis.run_analysis import metric_words, read
from prism_bench.extensions.fusion.benefit import ComparedRow
from prism_bench.extensions.fusion.benefit.saving import STAGES, source
from prism_bench.extensions.fusion.report.terminal import Footnotes, quantity_text, verdict
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.report.plain import machine_name
from prism_bench.units import ratio_text, share_text, time_text
from prism_bench.workflows.tuning.crossover import pick, shape_text

PATH = "reference/published.md"
REPORTS = ROOT / "reports"


@cache
def page() -> str:
    """Return the page about the newest record of the H200."""
    path = newest()
    return page_of(store.read(path), path.relative_to(ROOT), REPORTS)


def page_of(record: RunRecord, name: Path, reports: Path) -> str:
    """Return the page about a record; `name` is the file it names, `reports` has the folders tuning and profiles."""
    compared = comparison_of(read(record, catalogue.found(), must_be_held=False), reports / "tuning")
    chains = compared_chains(record, catalogue.found(), reports / "profiles")
    return joined(
        [
            "# Published figures",
            _lead(compared, name),
            "## Times and budgets",
            *_figures(compared.figures),
            "## Rules of thumb",
            *_rules(compared),
            "## Choices",
            *_choices(compared),
            "## Fusion chains",
            *_chains(chains),
        ]
    )


def _lead(compared: PublishedComparison, name: Path) -> str:
    record = compared.reading.record
    budgets = [figure.verdict for figure in compared.figures if figure.published.budget is not None]
    met = f" Published budgets met: {budgets.count('met')} of {len(budgets)}." if budgets else ""
    return (
        f"What the design documents state, compared with what was measured here.{met} Quoted figures bind nobody: a "
        f"missed one is no finding of a run. This page is generated from the record {code(name.as_posix())}, "
        f"measured on {plain(machine_name(record))} on {record.created[:10]} at commit {code(record.commit)}."
    )


def _figures(figures: Sequence[FigureVerdict]) -> Iterator[str]:
    if not figures:
        yield "This record timed none of the published kernels at their size."
        return
    yield (
        f"Published columns are quoted from the {quoted()['source']}; they were not measured here. They are "
        f"{quoted()['clock']}, so the verdict compares them with our end-to-end time."
    )
    head = (
        "kernel at S0",
        "published workload",
        "published mean",
        "published budget",
        "ours, end to end",
        "ours, cold",
        "verdict",
    )
    yield table(head, map(_figure, figures))


def _figure(figure: FigureVerdict) -> tuple[str, ...]:
    quote = figure.published
    mean = f"{time_text(quote.low)} to {time_text(quote.high)}"
    budget = time_text(quote.budget) if quote.budget else "none stated"
    ours = time_text(figure.end_to_end), time_text(figure.cold)
    return code(quote.kernel), quote.workload, mean, budget, *ours, figure.verdict or "no budget"


def _rules(compared: PublishedComparison) -> Iterator[str]:
    rules = summaries(compared.verdicts)
    if not rules:
        yield "No rule applies to a case of this record."
        return
    counts = [
        (
            rule["rule"],
            metric_words(rule["metric"]),
            time_text(rule["limit"]) if rule["rule"] in ("slow", "target mean") else f"{rule['limit']:.3g}",
            rule["kept"],
            rule["broken"],
            rule["unmeasured"],
        )
        for rule in rules
    ]
    yield (
        "The guide's rules, with the number of cases at S0. Each rule about samples uses all whole calls of a case. "
        "`degraded` compares every case with the baseline."
    )
    yield table(("rule", "metric", "limit", "kept", "broken", "unmeasured"), counts)
    found = remarks(compared.verdicts)
    if found:
        rows = table(("case", "rule", "measured"), [(code(note.case), note.kind, note.message) for note in found])
        title = f"Cases that break the rules {', '.join(REMARKED)}"
        yield f'??? note "{title}"\n\n' + "\n".join(f"    {line}" for line in rows.splitlines())


def _choices(compared: PublishedComparison) -> Iterator[str]:
    measured = compared.measured
    if measured is None:
        yield "Not measured on this machine: `prism-bench tune --policy` times forms, windows and batches."
        return
    yield f"By the policies that `prism-bench tune --policy` measured on {measured.created[:10]}."
    if measured.matmul:
        yield (
            "The form of a product of float32 operands that is measured to be fastest, conversion included, and the "
            "form that each published rule picks. Below, the time of a rule's picks over that of the fastest forms."
        )
        picks = zip(measured.matmul, *(cost.forms for cost in compared.costs), strict=True)
        rows = [(shape_text(row.shape), pick([row], row.shape).form, *forms) for row, *forms in picks]
        yield table(("m x k x n", "fastest", *POLICIES), rows)
        yield table(
            ("rule", "geometric mean", "worst", "at"),
            [
                (cost.policy, ratio_text(cost.mean), ratio_text(cost.worst), shape_text(cost.worst_at))
                for cost in compared.costs
            ],
        )
    yield table(
        ("image", "the guide's window", "time", "difference from window 16", "pixels in another segment"),
        [
            (
                f"{row.rows} x {row.cols}",
                row.window,
                time_text(row.seconds),
                f"{row.difference:.3f} bits",
                share_text(row.moved),
            )
            for row in compared.windows
        ],
    )
    yield table(
        ("LSTM, latency", "the guide's batch", "its time", "largest measured batch within it"),
        [
            (f"under {time_text(row.seconds)}", row.guide, time_text(row.guide_seconds), row.measured or "none")
            for row in compared.batches
        ],
    )


def _chains(chains: Sequence[ComparedRow]) -> Iterator[str]:
    yield (
        f"Quoted: {source()}. Ours are the cold times and the launches of separate launches (`baseline`), of partial "
        "and of full fusion, and the counters of the newest profile. The verdict holds full fusion against the target. "
        "See [fusion](../guides/fusion.md)."
    )
    notes = Footnotes()
    rows = [row for chain in chains for row in _chain(chain, notes)]
    yield table(("quantity", *STAGES, "target", "verdict"), rows)
    yield "\n".join(f"- \\[{number}\\] {plain(reason)}" for number, reason in notes.numbered())


def _chain(chain: ComparedRow, notes: Footnotes) -> Iterator[tuple[str, ...]]:
    quote, text = chain.published, quantity_text(chain.published.quantity)
    target = f"{'&gt;' if quote.at_least else '&lt;'} {text(quote.target)}"
    yield f"**{quote.name}**, published", *(text(quote.stages[stage]) for stage in STAGES), target, ""
    for ours in chain.ours:
        values: Mapping[str, str] = {
            stage: plain(notes.mark(figure.reason)) if figure.value is None else text(figure.value)
            for stage, figure in ours.stages.items()
        }
        yield plain(ours.what), *(values[stage] for stage in STAGES), "", verdict(ours.met, "missed")
