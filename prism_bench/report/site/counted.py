"""What a profiler counted of a case, and the bottleneck that follows."""

from functools import lru_cache
from typing import Any

from prism_bench import store
from prism_bench.analysis.bounds.bound import bound_of, check_bytes, empty_duration
from prism_bench.analysis.bounds.profile_table import Counted, newest_counted
from prism_bench.analysis.summary import cache_bytes
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.shown import ShownCase
from prism_bench.run_record import CaseResult, RunRecord


def counted(context: SiteContext, told: ShownCase) -> dict[str, Any]:
    """Return the counters of the case from its own record, else from the newest profile of its machine that has it.

    `by` is None where nothing was counted, and `evidence` is the reason; `source` is the record they are from.
    """
    if told.case.profile.get("values"):
        return _counted_by(told.reading.record, told.case, None)
    found = counters(str(context.places.profiles), context.machine).get(told.case.name)
    if found and found.case.profile.get("values"):
        return _counted_by(found.record, found.case, found.file)
    return {"by": None, "evidence": "no profiler has counted it", "counters": {}, "source": None}


def _counted_by(record: RunRecord, case: CaseResult, source: str | None) -> dict[str, Any]:
    bound, checked = bound_of(case, empty_duration(record.cases)), check_bytes(case, cache_bytes(record.machine))
    return {
        "by": bound.by, "evidence": bound.evidence, "counters": case.profile["values"], "source": source,
        "tool": case.profile.get("tool"), "created": record.created, "commit": record.commit,
        "dram": {"verdict": checked.verdict, "words": checked.words, "counted": checked.counted,
                 "ratio": checked.ratio},
    }  # fmt: skip


@lru_cache(8)
def counters(folder: str, machine: str) -> dict[str, Counted]:
    """Return by case what the records of a machine's profilers have newest."""
    return newest_counted(store.readable(folder, machine))
