"""Newest counters of every case, from whichever record of a profiler has them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prism_bench.run_record import CaseResult, RunRecord


@dataclass(frozen=True)
class Counted:
    """A case as a record of counters has it, and that record with the name of its file."""

    case: CaseResult
    record: RunRecord
    file: str

    @property
    def rank(self) -> tuple[bool, bool, str]:
        """Greater is better: counted at all, more than DRAM bytes alone, newer."""
        profile = self.case.profile
        return bool(profile.get("values")), profile.get("set") != "traffic", self.record.created


def newest_counted(records: Iterable[tuple[Path, RunRecord]]) -> dict[str, Counted]:
    """Return the best of each case by name; a case without counters is as the newest record has it."""
    found: dict[str, Counted] = {}
    for path, record in records:
        for case in record.cases:
            one = Counted(case, record, path.name)
            if case.name not in found or one.rank > found[case.name].rank:
                found[case.name] = one
    return found
