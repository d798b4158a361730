"""Table of metrics: one row per profiled case, with its bound and whether its DRAM bytes are what they must be.

Newest counters of every case, from whichever record of a profiler has them.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prism_bench.analysis.bounds.bound import bound_of, check_bytes, dram_bytes, empty_duration, peak_rates, value
from prism_bench.analysis.findings import Finding
from prism_bench.analysis.summary import cache_bytes
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import rate_text, share_text


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


ProfileRow = dict[str, float | str | None]
SAME_PEAK = 0.03
_FACTS = ("case", "label", "status", "reason")
_JUDGED = ("bound", "evidence", "dram_bytes", "compulsory_bytes", "dram_ratio", "bytes_verdict")


def rows(record: RunRecord) -> list[ProfileRow]:
    """Return a row per case: every logical metric (None if not counted), the bottleneck, the verdict on DRAM bytes."""
    empty, cached = empty_duration(record.cases), cache_bytes(record.machine)
    return [_row(case, empty, cached) for case in record.cases]


def _row(case: CaseResult, empty: float | None, cached: int) -> ProfileRow:
    bound, checked = bound_of(case, empty), check_bytes(case, cached)
    judged = (bound.by, bound.evidence, dram_bytes(case), case.bytes, checked.ratio, checked.verdict)
    counted = {name: value(case, name) for name in case.profile.get("values", {})}
    facts = {"case": case.name, "label": case.label, "status": case.status, "reason": case.reason}
    return {**facts, **dict(zip(_JUDGED, judged, strict=True)), **counted}


def newest_rows(counted: Mapping[str, Counted]) -> list[ProfileRow]:
    """Return a row per case, by name, with the file of the record that it is from."""
    found: list[ProfileRow] = []
    for _, one in sorted(counted.items()):
        row = _row(one.case, empty_duration(one.record.cases), cache_bytes(one.record.machine))
        found.append({**row, "record": one.file})
    return found


def csv_text(table: Sequence[ProfileRow]) -> str:
    """Return rows as CSV, numbers to five digits, an empty cell where nothing was counted."""
    names = list(dict.fromkeys([*_FACTS, *_JUDGED, *(name for row in table for name in row)]))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(one) for name, one in row.items()} for row in table)
    return text.getvalue()


def _cell(one: float | str | None) -> float | str | None:
    if isinstance(one, float):
        return f"{one:.5g}" if one % 1 else f"{one:.0f}"
    return one


def profile_findings(record: RunRecord) -> list[Finding]:
    """Return the findings of the profile: failed cases, unexplained DRAM bytes, peaks that disagree."""
    cached = cache_bytes(record.machine)
    found: list[Finding] = []
    for case in record.cases:
        if case.status != "ok":
            gravity = "note" if case.status == "skipped" else "bad"
            found.append(Finding(gravity, case.status, case.name, case.reason or "the record gives no reason"))
        checked = check_bytes(case, cached)
        if checked.verdict in ("more", "less"):
            ratio = share_text(checked.ratio) if checked.ratio is not None else "unknown"
            words = f"DRAM moved {checked.words} that must move ({ratio})"
            found.append(Finding("note", "bytes", case.name, words))
    return found + _peaks(record)


def _peaks(record: RunRecord) -> list[Finding]:
    rates = peak_rates(record.cases)
    if not rates or max(rates) - min(rates) <= 2 * SAME_PEAK * median(rates):
        return []
    words = f"rates over shares give DRAM peaks from {rate_text(min(rates), 'B/s')} to {rate_text(max(rates), 'B/s')}"
    return [Finding("untrusted", "peaks", None, f"{words}; they must agree")]
