"""Sides of many claims measured in one run, so that processes start once and ceilings are measured once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prism_bench.catalogue import Catalogue
from prism_bench.extensions.claims.document import PEER, ClaimContest
from prism_bench.extensions.claims.making import ClaimMeasurement
from prism_bench.record.run_record import RunRecord
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


def measured_together(
    catalogue: Catalogue, sides: Sequence[Contestants], measurement: ClaimMeasurement
) -> JointRecords:
    """Return the records of all sides: of kernels next to their peers, or of two builds in turn, never of both."""
    kernels = list(dict.fromkeys(pair.kernel for pair in sides))
    baselines = list(dict.fromkeys(pair.baseline for pair in sides if pair.baseline))
    if not baselines:
        record = measurement.peers(catalogue, kernels)
        return JointRecords((record, record))
    a, b = (Build(name, catalogue, tuple(cases)) for name, cases in (("baseline", baselines), ("kernel", kernels)))
    first, second = measurement.builds((a, b))
    return JointRecords((first, measurement.with_ceilings(second)))


def with_ceilings_of(measurement: ClaimMeasurement, records: JointRecords) -> ClaimMeasurement:
    """Return the measurement with the ceilings that a run measured, so that they are not measured again."""
    ceilings = tuple(case for case in records.builds[1].cases if case.ceiling and case.measurements)
    return (
        replace(measurement, ceilings=ceilings) if any(case.ceiling != "launch" for case in ceilings) else measurement
    )
