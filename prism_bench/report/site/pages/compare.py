"""The newest run next to earlier ones, and any two records next to each other, case by case, with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import log
from typing import Any

from prism_bench.analysis.boards import BoardFactor
from prism_bench.analysis.compare import comparable, comparison, estimate, noise, verdict
from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison
from prism_bench.record.store.points import Facts
from prism_bench.report.plain import comparison_json
from prism_bench.report.site.answers import case_link, compare_answer
from prism_bench.report.site.context import SiteContext, name_of
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.spec.metric import ELSEWHERE, MEASURED, STAND_INS, is_host_time

_ORDER = ("slower", "faster", "inconclusive", "not compared", "same")
_UNKNOWN = {
    "ratio": None,
    "low": None,
    "high": None,
    "floor": None,
    "shift": 1.0,
}  # of a case that could not be compared
# The rules as the verdict's script gets them, so that each of their figures is in one place.
RULES_SHOWN = {
    **asdict(verdict.RULES), "ticks": verdict.TICKS, "least_clock": verdict.LEAST_CLOCK,
    "clock_level": verdict.CLOCK_LEVEL, "named": verdict.NAMED, "alpha": estimate.ALPHA,
    "power": estimate.POWER, "outgrown": estimate.OUTGROWN, "sampled": estimate.SAMPLED,
    "supported": estimate.SUPPORTED,
    "trimmed": estimate.TRIMMED, "few": estimate.FEW, "witnesses": estimate.WITNESSES,
    "needed": estimate.NEEDED, "stale": estimate.STALE, "changed": verdict.CHANGED, "enough": noise.ENOUGH,
    "by_chance": noise.BY_CHANCE, "outer": noise.OUTER, "halvings": noise.HALVINGS, "turns": noise.TURNS,
    "huber": noise.HUBER, "certain": noise.CERTAIN, "span": noise.SPAN, "least_error": noise.LEAST_ERROR,
    "shown": comparable.SHOWN, "host_times": [name for name in {**MEASURED, **ELSEWHERE} if is_host_time(name)],
    "software": comparable.SOFTWARE, "stands_out": comparison.STANDS_OUT, "unmeasured": BoardFactor().sure_error,
}  # fmt: skip
_REACH = log(1.25)  # a whisker's picture ends here; what is beyond touches its edge


def page(context: SiteContext, record_lists: Sequence[Mapping[str, object]]) -> Page:
    """Return the page that compares the newest run with earlier ones, and any two records."""
    pairs = [_pair(context, facts, comparison) for facts, comparison in context.comparisons]
    newest = next(((name_of(facts), comparison) for facts, comparison in context.comparisons), None)
    cases = sum(not case.is_edge for case in context.record.cases)
    view = {
        "night": context.record.created,
        "answer": compare_answer(newest, cases),
        "against": pairs,
        "shelves": record_lists,
        "rules": RULES_SHOWN,
    }
    pages = {kernel: f"{kernel_page(kernel)}.html" for kernel in context.kernels}
    stand_ins = {backend: stand_in.name for backend, stand_in in STAND_INS.items()}
    look = {"order": _ORDER, "reach": _REACH, "pages": pages, "stand_ins": stand_ins}
    offered = sum(int(str(listed["records"])) for listed in record_lists)
    shown = {"whisker": whisker, "look": look, "offered": offered}
    drawn = {"shelves": record_lists, "rules": RULES_SHOWN, "look": look}
    scripts = ("plot.js", "verdict.js", "compare.js")
    return Page("compare", "Compare", view, shown, scripts=scripts, drawn=drawn, empty=offered < 2)


def _pair(context: SiteContext, facts: Facts, comparison: RecordComparison | str) -> dict[str, Any]:
    identity = {"file": facts.file, "created": facts.created, "commit": facts.commit, "name": name_of(facts)}
    if isinstance(comparison, str):
        return {**identity, "reason": comparison}
    ordered = sorted(comparison.cases, key=_rank)
    plain = comparison_json(comparison)
    rows = {case["case"]: case for case in plain.pop("cases")}
    cases = [{**_UNKNOWN, **rows[case.case], "link": case_link(context, case.case)} for case in ordered]
    return {**identity, "reason": None, **plain, "cases": cases}


def _rank(case: ComparedCase) -> tuple[int, float]:
    """Sort changes first, the largest ahead."""
    size = abs(case.judgement.estimate.log) if case.judgement else 0.0
    return _ORDER.index(case.verdict), -size


def whisker(ratio: float, low: float | None, high: float | None) -> dict[str, float]:
    """Return places from 0 to 100 of the ratio and of its interval's ends, 50 for no change at all."""
    ends = {"at": ratio, "low": low or ratio, "high": high or ratio}
    return {name: round(50 + 50 * max(-1.0, min(1.0, log(value) / _REACH)), 1) for name, value in ends.items()}
