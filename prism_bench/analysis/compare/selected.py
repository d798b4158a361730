"""A comparison with the cases that were not measured: those of the same machine code, and those that do not build."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from prism_bench.analysis.compare.comparable import is_other_unit, software_changes
from prism_bench.analysis.compare.comparison import UNMEASURED, ComparedCase, RecordComparison
from prism_bench.analysis.compare.control import Control
from prism_bench.analysis.compare.selection import SelectedCase, Selection, clock_shift, shortcut_doubts
from prism_bench.measure.limits import valid
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import RunRecord
from prism_bench.units import count_text

Records = tuple[RunRecord, RunRecord]
_USUAL = "cold_time"


def with_selection(comparison: RecordComparison, selection: Selection, records: Records) -> RecordComparison:
    """Return the comparison of what was measured, with all other cases and with the doubts about them."""
    judged = {one.case for one in comparison.cases}
    rows = _Rows(comparison.names, comparison.cases[0].metric if comparison.cases else _USUAL)
    rest = [row for one in selection.cases if one.case not in judged for row in rows.of(one)]
    cases = (*comparison.cases, *rest)
    unmeasured = sum(one.verdict == UNMEASURED for one in cases)
    doubts = tuple(
        f"{doubt}: {count_text(unmeasured, 'case')} without a measurement may "
        "take another time, too; --all-cases measures all"
        for doubt in (_doubts(comparison, records) if unmeasured else ())
    )
    return replace(comparison, cases=cases, selection=selection, doubts=doubts)


def unmeasured(names: tuple[str, str], selection: Selection, notes: tuple[str, ...]) -> RecordComparison:
    """Return the comparison of two builds of which no case was measured, because none has changed."""
    rows = [row for one in selection.cases for row in _Rows(names, _USUAL).of(one)]
    return RecordComparison(names, tuple(rows), Control(), notes, selection=selection)


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of cases without times: the names of the sides, and the metric of the other rows."""

    names: tuple[str, str]
    metric: str

    def of(self, one: SelectedCase) -> Iterator[ComparedCase]:
        """Yield the row of a case; none of one that was to be measured and has no result."""
        if one.role == "does not build":
            reason = f"{self.names[one.broken == 'b']} does not build: {one.problem}"
            gravity = "bad" if one.broken == "b" else "note"
            yield ComparedCase(one.case, self.metric, "not compared", reason, gravity=gravity)
        elif one.role in ("same machine code", "control"):
            yield ComparedCase(one.case, self.metric, UNMEASURED)


def _doubts(comparison: RecordComparison, records: Records) -> list[str]:
    around = [changes for changes in [software_changes(*records)] if changes]
    kernels = {case.kernel for case in records[1].cases}
    if any(is_other_unit(*records, kernel) for kernel in kernels):
        around.append("another unit of the device")
    return shortcut_doubts(clock_shift(_control(comparison, records)), around)


def _control(comparison: RecordComparison, records: Records) -> Iterator[tuple[Measurement, Measurement]]:
    """Yield the measurements of the cases of identical machine code."""
    for one in comparison.cases:
        sides = [record.case(one.case) for record in records] if one.identical else []
        pair = [found for case in sides if case and (found := valid(case, one.metric))]
        if len(pair) == 2:
            yield pair[0], pair[1]
