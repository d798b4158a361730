"""Measuring of both sides of a claim, in turn: two builds, or a kernel and its peers in one run."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from prism_bench.catalogue import Catalogue, discover
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run import Progress, Settings, Watching, run
from prism_bench.run.ceilings import ceiling_cases
from prism_bench.run.interleave import Build, interleaved, pair_settings
from prism_bench.spec.case import Case

PROCESSES = 5  # of each side: Student's t of 8 degrees of freedom


@dataclass(frozen=True)
class ClaimEffort:
    """How both sides are measured: the backend, fresh processes of each, seeds of verification, and the progress.

    `ceilings` are results of ceiling benchmarks that were measured on this machine just before.
    """

    backend: str
    processes: int = PROCESSES
    seeds: tuple[int, ...] = (0, 1)
    report: Callable[[Progress], object] = lambda event: None
    ceilings: tuple[CaseResult, ...] = ()

    @property
    def settings(self) -> Settings:
        """The settings of a run with peers."""
        return Settings(
            processes=self.processes, peer_processes=self.processes, peer_repeated_within=None, seeds=self.seeds,
            cpu_baseline=False, watching=Watching(energy=False),
        )  # fmt: skip


def measured_builds(builds: tuple[Build, Build], effort: ClaimEffort) -> tuple[RunRecord, RunRecord]:
    """Return the records of two builds, whose processes took turns."""
    return interleaved(builds, effort.backend, pair_settings(effort.settings), effort.report)


def measured_peers(catalogue: Catalogue, case: Case, effort: ClaimEffort) -> RunRecord:
    """Return the record of a case and all of its peers; on a device it has the ceilings of the machine."""
    return run(catalogue, effort.backend, [case], effort.settings, effort.report)


def with_ceilings(record: RunRecord, effort: ClaimEffort) -> RunRecord:
    """Return the record with the ceilings of the machine, which are measured now where they are not known."""
    if any(case.ceiling and case.ceiling != "launch" for case in record.cases):
        return record
    known = {case.name for case in record.cases}
    more = [case for case in effort.ceilings or measured_ceilings(effort) if case.name not in known]
    return replace(record, cases=(*record.cases, *more))


def measured_ceilings(effort: ClaimEffort) -> tuple[CaseResult, ...]:
    """Return the results of the bundled catalogue's ceiling benchmarks, each in one process; on a device only."""
    if effort.backend != "cuda":
        return ()
    bundled = discover()
    settings = replace(effort.settings, processes=1, peers=False)
    found = run(bundled, effort.backend, ceiling_cases(bundled), settings, effort.report)
    return tuple(case for case in found.cases if case.ceiling)
