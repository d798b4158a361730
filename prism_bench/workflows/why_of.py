"""Why a case of a record takes its time: what the record, the newest profiles and an earlier run know of it."""

from contextlib import suppress
from pathlib import Path

from prism_bench.analysis.bounds.largest import is_timed, largest
from prism_bench.analysis.bounds.profile_table import newest_counted
from prism_bench.analysis.bounds.why import Why, why_in
from prism_bench.errors import ResultsError, unknown
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord


def why_of(record: RunRecord, name: str, runs: Path, profiles: Path) -> Why:
    """Return why the case takes its time, from profiles below `profiles` and the run before it below `runs`.

    A kernel's name, or one of its variants', chooses its largest case, as the kernel's page does.
    """
    counted = newest_counted(store.readable(profiles, str(record.machine.get("id", ""))))
    case = _named(record, name)
    return why_in(record, case, counted, _before(record, case, runs))


def _named(record: RunRecord, name: str) -> CaseResult:
    sized = [case for case in record.cases if not case.is_edge]
    found = next((case for case in record.cases if case.name == name), None)
    found = found or largest([case for case in sized if name in (case.kernel, case.name.partition("[")[0])])
    if found is None:
        known = {case.name for case in record.cases} | {case.name.partition("[")[0] for case in record.cases}
        raise unknown("kernel or case", name, known)
    return found


def _before(record: RunRecord, case: CaseResult, runs: Path) -> tuple[str, CaseResult] | None:
    """Return the newest earlier run of the machine and backend that timed the case, by name, and its case."""
    for facts in reversed(store.read_history(runs).before(record)):
        with suppress(ResultsError):
            cases = store.read(runs / facts.file).cases
            same = next((one for one in cases if one.name == case.name and one.code), None)
            if same and (case.is_edge or is_timed(same)):
                return Path(facts.file).name.removesuffix(".json.gz"), same
    return None
