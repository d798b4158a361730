"""The site's page of claims: what the design documents state, next to what was measured here."""

from dataclasses import asdict

from prism_bench.errors import ResultsError
from prism_bench.extensions.claims.choices import POLICIES
from prism_bench.extensions.claims.comparison import Claims, claims_of, figures_plain, summaries
from prism_bench.extensions.claims.figures import quoted
from prism_bench.extensions.claims.rules import remarks
from prism_bench.report.site.attention import case_link
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page


def page(context: SiteContext) -> Page:
    """Return the page; a file that cannot be read is named and leaves the rest of the site as it is."""
    view: dict[str, object] = {"created": context.record.created, "problem": None, **quoted_source()}
    try:
        claims = claims_of(context.reading, context.places.tuning)
    except ResultsError as error:
        return Page("claims", "Claims", {**view, "problem": str(error)})
    return Page("claims", "Claims", {**view, **_parts(context, claims)}, {"rules": list(POLICIES)})


def quoted_source() -> dict[str, object]:
    """Return what is quoted, and by which clock its figures were taken."""
    return {"source": quoted()["source"], "clock": quoted()["clock"]}


def _parts(context: SiteContext, claims: Claims) -> dict[str, object]:
    picked = [
        {"shape": row.shape,
         **{name: rule(row.shape["m"], row.shape["k"], row.shape["n"]) for name, rule in POLICIES.items()}}
        for row in (claims.measured.matmul if claims.measured else ())
    ]  # fmt: skip
    return {
        "figures": [{**one, "link": case_link(context, one["case"])} for one in figures_plain(claims.figures)],
        "rules": summaries(claims.verdicts),
        "remarks": [{**vars(one), "link": case_link(context, one.case)} for one in remarks(claims.verdicts)],
        "policies": [asdict(one) for one in claims.costs], "picked": picked,
        "windows": [asdict(one) for one in claims.windows],
        "targets": [asdict(one) for one in claims.batches],
    }  # fmt: skip
