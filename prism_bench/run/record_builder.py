"""Builder of run records: every kind of run gets machine, software, commit, catalogue and times from here."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from prism_bench.catalogue import Catalogue
from prism_bench.io import project
from prism_bench.io.files import default_folder
from prism_bench.record import identity
from prism_bench.record.identity import boards_in
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.peer import PeerFacts

NOT_TIMED = "not timed, because "  # begins the reason of a case whose kernel is wrong at an edge

BUILT_IN = "built-in"  # the name of this package's catalogue in records


class RunSpan(NamedTuple):
    """When a run started, the seconds that it has taken, and whether it measured everything it should."""

    started: datetime
    seconds: float
    complete: bool


@dataclass(frozen=True)
class RunClock:
    """The clock of a run, which starts when it is made."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    counter: float = field(default_factory=lambda: time.perf_counter())

    def span(self, complete: bool) -> RunSpan:
        """Return the time from the start until now."""
        return RunSpan(self.started, time.perf_counter() - self.counter, complete)


@dataclass(frozen=True)
class RecordBuilder:
    """Builds the records of a run on one catalogue and backend; `facts` are the backend's facts of the device."""

    catalogue: Catalogue
    backend: str
    facts: Mapping[str, Any]

    def build(
        self, span: RunSpan, cases: Iterable[CaseResult], *, protocol: Mapping[str, Any],
        monitor: Iterable[dict[str, Any]] = (), spent: Mapping[str, float] | None = None,
    ) -> RunRecord:  # fmt: skip
        """Return the record of what was measured within `span`."""
        commit, dirty = identity.commit_of(self.catalogue.folder)
        return RunRecord(
            created=identity.timestamp(span.started),
            backend=self.backend,
            machine=identity.machine(self.facts),
            software=identity.software(self.facts.get("software", {})),
            protocol=dict(protocol),
            cases=tuple(cases),
            commit=commit,
            dirty=dirty,
            catalogue=catalogue_name(self.catalogue.folder),
            complete=span.complete,
            duration=round(span.seconds, 1),
            monitor=tuple(monitor),
            spent=dict(spent or {}),
            boards=boards_in(self.facts),
            committed=identity.committed_at(self.catalogue.folder, commit),
        )

    def written_bytes(self, cases: Iterable[CaseResult]) -> dict[str, int]:
        """Return the bytes that each timed case writes, by name."""
        known = {case.name: self.catalogue.anywhere(case.name) for case in cases if case.measurements}
        return {name: sum(one.sizes.nbytes(array.name) for array in one.spec.outputs) for name, one in known.items()}


def catalogue_name(folder: Path) -> str:
    """Return the name of a catalogue in records: `built-in`, or its folder; of a project as it is configured."""
    if folder == default_folder():
        return BUILT_IN
    configuration = project.current()
    return str(configuration.keys.catalogue if configuration and configuration.has(folder) else folder)


def record_order(case: CaseResult) -> tuple[str, ...]:
    """Return the sort key of a case in a record: family, kernel, variant and label, whatever was measured first."""
    return case.family, case.kernel, case.variant or "", case.label, case.name


def combined(results: Sequence[CaseResult]) -> CaseResult:
    """Return one result of a case: the first process's facts, the samples of all, the status of the first failure.

    A peer that has no time in one of the processes has none, and a note where its facts differ between them.
    """
    bad = next((result for result in results if result.status != "ok"), None)
    lost = dict(cell for result in reversed(results) for cell in _without_time(result).items())
    notes = fact_notes([result.peers for result in results])
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in (one for result in results for one in result.measurements):
        if measurement.subject not in lost:
            groups.setdefault((measurement.metric, measurement.subject), []).append(measurement)
    measurements = [*(merged(parts) for parts in groups.values()), *lost.values()]
    noted = [replace(one, notes=(*one.notes, *notes.get(one.subject, ()))) for one in measurements]
    status, reason = (bad.status, bad.reason) if bad else ("ok", None)
    return replace(
        results[0], measurements=() if bad else tuple(noted), status=status, reason=reason,
        peers=merged_facts([result.peers for result in results]),
        spent=seconds_of(result.spent for result in results),
    )  # fmt: skip


def _without_time(result: CaseResult) -> dict[str, Measurement]:
    """Return by subject the empty cell of each peer that has no time in any metric."""
    timed = {one.subject for one in result.measurements if one.samples}
    peers = [one for one in result.measurements if one.subject.startswith("peer:") and one.subject not in timed]
    return {one.subject: one for one in reversed(peers)}


def merged_facts(tables: Sequence[Mapping[str, PeerFacts]]) -> dict[str, PeerFacts]:
    """Return what all processes know of each peer; the first one's word counts where they differ."""
    facts: dict[str, PeerFacts] = {}
    for table in tables:
        for name, known in table.items():
            facts[name] = {**known, **facts.get(name, {})}
    return facts


def fact_notes(tables: Sequence[Mapping[str, PeerFacts]]) -> dict[str, list[str]]:
    """Return by subject the notes on peers whose launches or version differ between the processes."""
    notes: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        for fact in ("launches", "version"):
            known: list[object] = [table.get(name, {}).get(fact) for table in tables]
            values = list(dict.fromkeys(str(value) for value in known if value is not None))
            if len(values) > 1:
                notes.setdefault(f"peer:{name}", []).append(f"its processes differ in {fact}: {' and '.join(values)}")
    return notes


def seconds_of(tables: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of tables of seconds by name."""
    total: dict[str, float] = {}
    for table in tables:
        for name, seconds in table.items():
            total[name] = round(total.get(name, 0.0) + seconds, 4)
    return total
