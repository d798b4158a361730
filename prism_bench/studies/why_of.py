"""Why a case of a record takes its time: what the record, the newest profiles and an earlier run know of it."""

from collections.abc import Collection
from pathlib import Path

from prism_bench import store
from prism_bench.analysis.bounds.profile_table import newest_counted
from prism_bench.analysis.bounds.why import Why, why_in
from prism_bench.errors import unknown
from prism_bench.run_record import CaseResult, RunRecord


def why_of(record: RunRecord, name: str, runs: Path, profiles: Path) -> Why:
    """Return why the case takes its time, from profiles below `profiles` and the run before it below `runs`.

    A kernel's name chooses its largest case, of those that a profiler has counted where there are such.
    """
    counted = newest_counted(store.readable(profiles, str(record.machine.get("id", ""))))
    case = _named(record, name, counted)
    return why_in(record, case, counted, _before(record, case, runs))


def _named(record: RunRecord, name: str, counted: Collection[str]) -> CaseResult:
    found = [case for case in record.cases if case.name == name]
    if not found:
        of_kernel = [case for case in record.cases if case.name.partition("[")[0] == name and not case.is_edge]
        found = sorted(of_kernel, key=lambda case: (bool(case.measurements), case.name in counted, case.bytes))
    if not found:
        known = {case.name for case in record.cases} | {case.name.partition("[")[0] for case in record.cases}
        raise unknown("kernel or case", name, known)
    return found[-1]


def _before(record: RunRecord, case: CaseResult, runs: Path) -> tuple[str, CaseResult] | None:
    """Return the newest earlier run of the machine and backend that has the case, by name, and its case."""
    for path, other in store.readable(runs, str(record.machine.get("id", ""))):
        if other.created < record.created and other.backend == record.backend:
            same = next((one for one in other.cases if one.name == case.name and one.code), None)
            if same:
                return path.name.removesuffix(".json.gz"), same
    return None
