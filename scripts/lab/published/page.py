"""The site's page of published figures: what the design documents state, next to what was measured here."""

from dataclasses import asdict

from lab.published.choices import POLICIES
from lab.published.comparison import PublishedComparison, comparison_of, figures_plain, summaries
from lab.published.figures import quoted
from lab.published.rules import remarks
from prism_bench.errors import ResultsError
from prism_bench.report.site.attention import case_link
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.units import count_text


def page(context: SiteContext) -> Page:
    """Return the page; a file that cannot be read is named and leaves the rest of the site as it is."""
    view: dict[str, object] = {"created": context.record.created, "problem": None, **quoted_source()}
    try:
        compared = comparison_of(context.reading, context.places.tuning)
    except ResultsError as error:
        return Page("published", "Published figures", {**view, "problem": str(error)})
    return Page("published", "Published figures", {**view, **_parts(context, compared)}, {"rules": list(POLICIES)})


def quoted_source() -> dict[str, object]:
    """Return what is quoted, and by which clock its figures were taken."""
    return {"source": quoted()["source"], "clock": quoted()["clock"]}


def _parts(context: SiteContext, compared: PublishedComparison) -> dict[str, object]:
    picked = [
        {"shape": row.shape,
         **{name: rule(row.shape["m"], row.shape["k"], row.shape["n"]) for name, rule in POLICIES.items()}}
        for row in (compared.measured.matmul if compared.measured else ())
    ]  # fmt: skip
    met = [one for one in compared.figures if one.verdict == "met"]
    promised = [one for one in compared.figures if one.published.budget is not None]
    return {
        "answer": f"{len(met)} of {count_text(len(promised), 'published budget')} are met." if promised else "",
        "figures": [{**one, "link": case_link(context, one["case"])} for one in figures_plain(compared.figures)],
        "rules": summaries(compared.verdicts),
        "remarks": [{**vars(one), "link": case_link(context, one.case)} for one in remarks(compared.verdicts)],
        "policies": [asdict(one) for one in compared.costs], "picked": picked,
        "windows": [asdict(one) for one in compared.windows],
        "targets": [asdict(one) for one in compared.batches],
    }  # fmt: skip
