"""What the rules of fitness judge: readings of the device at rest, the evidence of the probe, and its samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prism_bench.monitor.reading import Process
from prism_bench.record.measurement import Evidence, Sample

Severity = Literal["no", "unknown", "care"]  # the gravest first
Kind = Literal["small", "bandwidth"]  # a kernel of a few microseconds; one that is bound by memory


@dataclass(frozen=True)
class GpuReading:
    """One GPU before anything is launched on it.

    `values` are in SI units by the names of `monitor.quantities`, and by those of `board.LIMITS`; `missing` has the
    reason why one is absent. `processes` is None where they are not known. `lost` is why the device does not answer.
    """

    name: str
    uuid: str | None = None
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    processes: tuple[Process, ...] | None = None
    is_slice: bool = False
    lost: str | None = None


@dataclass(frozen=True)
class ProbedKernel:
    """Cold launches of one case, in the order in which they were taken; none is left out.

    `bytes` are what a launch reads and writes at least; `peak` is what the memory bus carries in bytes per second.
    """

    case: str
    kind: Kind
    samples: tuple[Sample, ...]
    bytes: int = 0
    peak: float | None = None

    @property
    def seconds(self) -> tuple[float, ...]:
        """The times of the launches in seconds."""
        return tuple(sample.seconds for sample in self.samples)


@dataclass(frozen=True)
class FitnessFacts:
    """Everything that is judged. `unprobed` is why there was no probe; then `kernels` are empty."""

    reading: GpuReading
    kernels: Sequence[ProbedKernel] = ()
    evidence: Evidence | None = None
    unprobed: str | None = None

    def value(self, name: str) -> float | None:
        """Return a value of the reading; None where it was not read."""
        return self.reading.values.get(name)

    @property
    def clocks(self) -> tuple[float, ...]:
        """The SM clocks of the probe's launches in hertz, of those that carry one."""
        return tuple(sample.clock for kernel in self.kernels for sample in kernel.samples if sample.clock)


@dataclass(frozen=True)
class FitnessProblem:
    """What speaks against measuring: what was `found`, its `cause`, and what to change (`cure`).

    `severity` is `no` (times would be wrong), `care` (times are right, and not comparable or noisier than need be) or
    `unknown` (the facts that decide are missing).
    """

    severity: Severity
    found: str
    cause: str
    cure: str
