"""Every case as the newest run before its own has it: what its machine code is compared with."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.analysis.bounds.largest import is_timed
from prism_bench.record import store
from prism_bench.record.raw_source import is_present
from prism_bench.record.run_record import CaseResult
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts, utc
from prism_bench.report.site.shown import ShownCase, newest_with


def earlier_cases(
    history: History, own: Sequence[Facts], runs: Path, cases: Iterable[ShownCase]
) -> dict[str, tuple[Facts, CaseResult]]:
    """Return by name the newest run before a case's own that timed it, and the case as it has it, without times.

    Only cases with machine code are compared. Each record is read once, and of it no more than these cases are kept.
    """
    wanted: dict[str, set[str]] = {}
    for one in cases:
        if one.case.code:
            wanted.setdefault(utc(one.created), set()).add(one.case.name)
    places: dict[str, tuple[Facts, set[str]]] = {}
    for created, names in wanted.items():
        place = next((place for place, one in enumerate(own) if one.created == created), None)
        before = [one for one in own if one.created < created] if place is None else own[:place]
        for facts, held in newest_with(history, before, names):
            places.setdefault(facts.file, (facts, set()))[1].update(held)
    return {case.name: (facts, case) for facts, names in places.values() for case in _cases(runs / facts.file, names)}


def _cases(path: Path, names: set[str]) -> list[CaseResult]:
    if not is_present(path):
        return []
    cases = store.read(path, edges=False).cases
    return [replace(one, measurements=()) for one in cases if one.name in names and one.code and is_timed(one)]
