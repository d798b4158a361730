"""What a profiler counted of a case: in its own record, else in the newest profile of its machine that has it."""

from functools import lru_cache
from typing import Any

from prism_bench.analysis.bounds.bound import check_bytes
from prism_bench.analysis.bounds.profile_table import Counted, newest_counted
from prism_bench.analysis.summary import cache_bytes
from prism_bench.record import store
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.shown import ShownCase


def counted_of(context: SiteContext, shown: ShownCase) -> Counted | None:
    """Return the case as the record of its counters has it; None where nothing was counted."""
    if shown.case.profile.get("values"):
        return Counted(shown.case, shown.reading.record, "")
    found = counters(str(context.places.profiles), context.machine).get(shown.case.name)
    return found if found and found.case.profile.get("values") else None


def counted(found: Counted | None) -> dict[str, Any]:
    """Return the counters with their units, the uncounted ones by reason, and DRAM bytes against those that must move.

    Empty where nothing was counted.
    """
    if found is None:
        return {"counters": {}, "source": None, "dram": None}
    uncounted: dict[str, list[str]] = {}
    for name, one in found.case.profile["values"].items():
        if one.get("value") is None:
            uncounted.setdefault(one.get("reason") or "no reason was recorded", []).append(name)
    checked, profile = check_bytes(found.case, cache_bytes(found.record.machine)), found.case.profile
    return {
        "counters": {name: [one["value"], one.get("unit", "")] for name, one in profile["values"].items()
                     if one.get("value") is not None},
        "uncounted": uncounted, "source": found.file or None, "tool": profile.get("tool"),
        "dram": {"verdict": checked.verdict, "words": checked.words, "counted": checked.counted,
                 "ratio": checked.ratio},
    }  # fmt: skip


@lru_cache(8)
def counters(folder: str, machine: str) -> dict[str, Counted]:
    """Return by case what the records of a machine's profilers have newest."""
    return newest_counted(store.readable(folder, machine))
