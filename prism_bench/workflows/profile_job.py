"""A profile of cases: which tool makes it, where its record is kept, and the record that takes its counters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from prism_bench.analysis.bounds.ledger import ledger
from prism_bench.analysis.bounds.profile_table import csv_text, newest_counted, newest_rows
from prism_bench.analysis.bounds.traced_profile import profiles
from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.io.saving import Saver
from prism_bench.profilers import ncu_csv, ncu_report
from prism_bench.profilers.launches import ProfiledLaunch
from prism_bench.record import identity, store
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.case import Case
from prism_bench.workflows import profiling, tracing
from prism_bench.workflows.profiling import ProfilePlan

# Failures of ncu with which counters are closed to us, and only a tracer can work; others are for the user to see.
CLOSED = ("not_installed", "permission", "library_not_loaded", "driver_mismatch", "device_not_supported")


@dataclass(frozen=True)
class ProfileJob:
    """The cases to profile, on which backend, and the folder of reports."""

    backend: Backend
    catalogue: Catalogue
    cases: Sequence[Case]
    reports: Path

    @cached_property
    def place(self) -> store.RecordPlace:
        """The place of the record, for every version of it."""
        return store.RecordPlace(self.reports)

    def counted(self, plan: ProfilePlan, report: Callable[[str], object]) -> RunRecord:
        """Return what ncu counted; ProfilerFailed where it counted nothing at all. `report` takes the progress."""
        plan = replace(plan, folder=self.reports / "captures", tried=self._last_tried(plan.chosen))

        def show(progress: tuple[int, str]) -> None:
            report(f"{progress[0]} of {len(self.cases)} profiled, {progress[1]}")

        return profiling.profile(self.catalogue, self.backend, list(self.cases), plan, show, keep=Saver(self.keep))

    def traced(self, tool: str, seconds: float) -> RunRecord:
        """Return the launches, gaps and copies that nsys or CUPTI traced."""
        names = [case.task for case in self.cases]
        where = (self.catalogue, self.backend.name)
        if tool == "nsys":
            timeline, repeats = tracing.trace_with_nsys(*where, names, self.reports / "captures", seconds), 1
        else:
            traced = tracing.trace_cases(*where, {name: [name] for name in names}, seconds=seconds)
            timeline, repeats = traced.timeline, tracing.REPEATS
        found = profiles(ledger(timeline, most=len(names)), repeats)
        return profiling.record_of_profiles(self.catalogue, self.backend, list(self.cases), found)

    def keep(self, record: RunRecord) -> tuple[Path, Path]:
        """Keep the record, and the table of the newest counters of every case of this machine; return both paths."""
        path = self.place.save(record)
        table = newest_rows(newest_counted(store.readable(self.place.root, path.parent.name)))
        write_atomically(path.parent / "metrics.csv", csv_text(table).encode())
        return path, path.parent / "metrics.csv"

    def merged(self, record: RunRecord, into: Path) -> Path:
        """Put the profiles into the cases of the record at `into`, of the same machine; return its path."""
        other = store.read(into)
        if other.machine.get("id") != record.machine["id"]:
            raise ResultsError(
                f"{into}: measured on {other.machine.get('id')}, profiled on {record.machine['id']}; "
                "counters are added to times of the same machine only"
            )
        found = {case.name: case.profile for case in record.cases if case.profile}
        cases = tuple(replace(case, profile=found.get(case.name, case.profile)) for case in other.cases)
        return store.save(replace(other, cases=cases), into)

    def _last_tried(self, chosen: str) -> dict[str, str]:
        """Return when this set was last tried on each case on this machine, by the readable records of the folder."""
        tried: dict[str, str] = {}
        for _, record in store.readable(self.reports, identity.machine(self.backend.facts())["id"]):
            if any(case.profile.get("set") == chosen for case in record.cases):
                tried = {case.name: record.created for case in record.cases if case.status != "skipped"} | tried
        return tried


def read_capture(path: Path) -> list[ProfiledLaunch]:
    """Return the launches of a capture of ncu, a report or its CSV."""
    return list((ncu_report if path.suffix == ".ncu-rep" else ncu_csv).read(path))
