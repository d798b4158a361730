"""Sides of many claims measured in one run, so that processes start once and ceilings are measured once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prism_bench.catalogue import Catalogue
from prism_bench.extensions.claims.document import PEER, ClaimContest
from prism_bench.extensions.claims.making import ClaimEffort, measured_builds, with_ceilings
from prism_bench.record.run_record import RunRecord
from prism_bench.run import run
from prism_bench.run.builds import Build
from prism_bench.spec.case import Case


@dataclass(frozen=True)
class Contestants:
    """The cases of a claim's two sides; without a `baseline` it is a peer of the kernel."""

    kernel: Case
    baseline: Case | None = None


@dataclass(frozen=True)
class JointRecords:
    """What one run measured: `builds` are the records of the baselines and of the kernels, of peers the same twice."""

    builds: tuple[RunRecord, RunRecord]

    def contest(self, sides: Contestants, metric: str, peer: str = "") -> ClaimContest:
        """Return the contest of two sides that the run measured; `peer` names the baseline where it is one."""
        name = sides.kernel.name
        if sides.baseline is None:
            return ClaimContest(metric, self.builds[1:], (0, name, "kernel"), (0, name, f"{PEER}{peer}"))
        return ClaimContest(metric, self.builds, (1, name, "kernel"), (0, sides.baseline.name, "kernel"))


def measured_together(catalogue: Catalogue, sides: Sequence[Contestants], effort: ClaimEffort) -> JointRecords:
    """Return the records of all sides: of kernels next to their peers, or of two builds in turn, never of both."""
    kernels = list(dict.fromkeys(one.kernel for one in sides))
    baselines = list(dict.fromkeys(one.baseline for one in sides if one.baseline))
    if not baselines:
        record = run(catalogue, effort.backend, kernels, effort.settings, effort.report)
        return JointRecords((record, record))
    a, b = (Build(name, catalogue, tuple(cases)) for name, cases in (("baseline", baselines), ("kernel", kernels)))
    first, second = measured_builds((a, b), effort)
    return JointRecords((first, with_ceilings(second, effort)))


def with_ceilings_of(effort: ClaimEffort, records: JointRecords) -> ClaimEffort:
    """Return the effort with the ceilings that a run measured, so that the next one need not."""
    found = tuple(case for case in records.builds[1].cases if case.ceiling and case.measurements)
    return replace(effort, ceilings=found) if any(case.ceiling != "launch" for case in found) else effort
