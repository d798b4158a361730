"""Coverage of the newest run: what was measured, what was only verified, and what is missing with its reason."""

from collections import Counter
from collections.abc import Iterator

from prism_bench.report.site.context import SiteContext
from prism_bench.units import count_text

_MOST = 3  # reasons that are named


def coverage(context: SiteContext) -> list[tuple[str, str]]:
    """Return names and values of the run's coverage, in words; a line with nothing to report is left out."""
    return list(_lines(context))


def _lines(context: SiteContext) -> Iterator[tuple[str, str]]:
    reading, record = context.reading, context.record
    own = [case for case in reading.cases if case.ceiling is None]
    timed = [case for case in own if any(one.samples and one.subject == "kernel" for one in case.measurements)]
    title = f"Timed on the {record.stand_in.name}" if record.stand_in else "Timed"
    yield title, f"{len(timed)} of {count_text(len(own), 'case')}{_by_label(timed)}"
    if reading.edges:
        verified = sum(case.status == "ok" for case in reading.edges)
        yield "Edge cases", f"{verified} of {len(reading.edges)} verified"
    ceilings = [case.kernel for case in reading.cases if case.ceiling is not None and case.status == "ok"]
    yield "Ceilings", ", ".join(dict.fromkeys(ceilings)) or "none measured: times have no limit to be held against"
    reasons = Counter(case.reason or "the record gives no reason" for case in own if case.status != "ok")
    if reasons:
        yield "Not timed", _reasons(reasons)
    empty = Counter(
        (one.reason or "no reason").splitlines()[0]
        for case in own for one in case.measurements if one.subject.startswith("peer:") and not one.samples
    )  # fmt: skip
    if empty:
        yield "Peers without a time", _reasons(empty)
    older = sum(one.origin != "newest" for one in context.cases.values() if one.case.ceiling is None)
    if older:
        yield "Not in this run", f"{count_text(older, 'case')}, shown from older records"
    if not record.complete:
        yield "Cut short", "cases that the run did not reach are missing"


def _by_label(cases: list) -> str:
    counts = Counter(case.label for case in cases)
    words = ", ".join(f"{counts[label]} at {label}" for label in sorted(counts))
    return f": {words}" if words else ""


def _reasons(reasons: Counter[str]) -> str:
    """Return the number of cells and their most frequent reasons, each once."""
    named = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(_MOST))
    left = len(reasons) - _MOST
    rest = f"; and {count_text(left, 'other reason')}" if left > 0 else ""
    return f"{sum(reasons.values())}, because: {named}{rest}"
