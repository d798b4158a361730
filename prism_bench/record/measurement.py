"""Samples and measurements: what one metric of one case was, grouped by process, with its evidence.

Evidence is the state of the device while a measurement was made: why its number may be trusted, or may not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from prism_bench import display
from prism_bench.errors import ResultsError
from prism_bench.spec.metric import value_text
from prism_bench.units import rate_text, share_text

# A clock below this share of the best one of its session is throttled, or not yet awake.
CLOCK_SHARE = 0.75

# Values of a record's file.
Int = Annotated[int, Meta(ge=-(2**62), le=2**62)]
Count = Annotated[int, Meta(ge=0, le=2**62)]
Name = Annotated[str, Meta(max_length=2_000)]
Text = Annotated[str, Meta(max_length=1_000_000)]
Named = Annotated[str, Meta(min_length=1, max_length=2_000)]

Span = tuple[float, float, float]


@dataclass(frozen=True)
class Sample:
    """One timed launch: `seconds`; the SM clock it ran at in hertz and the host's launch cost, where they were read."""

    seconds: float
    clock: float | None = None
    launch_seconds: float | None = None


class Evidence(Struct, frozen=True, gc=False):
    """The state of one device in a window of `seconds`, by `readings` readings.

    `spans` are (lowest, median, highest) by quantity: `sm_clock` and `memory_clock` in hertz, `power` in watts
    (`power_average` where only a mean is offered), `temperature` in degrees Celsius, `utilization` as a share.
    `reasons` are the shares of the readings in which the driver gave that reason for a lower clock; `throttled` the
    seconds of the window by cause, from the driver's own counters, which see what falls between two readings.
    `neighbours` are other processes on the device, as text. `events` are Xid and memory errors that fell into the
    window. `missing` has the reason why a quantity is null, `lost` since when and why the device did not answer.
    """

    seconds: float
    readings: Count
    spans: Mapping[Name, Span] = {}
    reasons: Mapping[Name, float] = {}
    throttled: Mapping[Name, float] = {}
    neighbours: tuple[Text, ...] = ()
    busy_neighbours: bool = False
    events: tuple[Text, ...] = ()
    missing: Mapping[Name, Text] = {}
    lost: Text | None = None

    def highest(self, quantity: str) -> float | None:
        """Return the largest value that was read; None without a reading."""
        span = self.spans.get(quantity)
        return span[2] if span else None


class Energy(Struct, frozen=True, gc=False):
    """Energy of one launch in `joules`, from the driver's counter over a `window` of seconds with `launches` in it.

    `uncertainty` is half of the 95 % interval in joules: the counter's own noise, and when it was seen to move. It does
    not contain the error of the board's sensor. Without joules there is a `reason`. Older records have no more.
    `net_joules` are without the `idle_power` in watts that the board drew at rest just before, with `net_uncertainty`.
    `step` is the time in seconds between two moves of the counter. `scope` is what it counts: `gpu`, or `module` (GPU,
    CPU and their memory); None where the board offers no power to decide by. `disagreement` is the counter over power
    integrated in the same time, less 1.
    """

    joules: float | None = None
    uncertainty: float | None = None
    window: float | None = None
    launches: Count | None = None
    reason: Text | None = None
    idle_power: float | None = None
    net_joules: float | None = None
    net_uncertainty: float | None = None
    step: float | None = None
    scope: Name | None = None
    disagreement: float | None = None


@dataclass(frozen=True)
class MeasurementFields:
    """Fields of a measurement, in memory and in a file, which differ in how they keep `processes` and `clocks`."""

    metric: Named
    subject: Named
    processes: Sequence[Any]
    clocks: Sequence[Sequence[float]] = ()
    throttled: Count = 0
    valid: bool = True
    reason: Text | None = None
    notes: tuple[Text, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    energy: Energy | None = None
    boards: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Measurement(MeasurementFields):
    """The samples of one metric of one subject (`kernel`, or `peer:<name>`), one group per process.

    `processes` are seconds and `clocks` hertz. An empty measurement has a `reason`. An invalid one keeps its samples
    and the reason why they cannot be trusted. `evidence` is the device's state, one per process in which something
    watched it; `energy` that of one launch. `boards` are the UUIDs of the GPUs, one per process, where several of them
    measured it.
    """

    processes: tuple[tuple[float, ...], ...]
    clocks: tuple[tuple[float, ...], ...] = ()

    @property
    def samples(self) -> tuple[float, ...]:
        """All samples, process after process."""
        return tuple(sample for process in self.processes for sample in process)

    @property
    def distrusted(self) -> bool:
        """Whether a kernel's own samples cannot be trusted; empty cells and libraries do not count.

        Nor does an energy: it is missing then, and the times next to it are as good as without it.
        """
        return self.subject == "kernel" and bool(self.samples) and not self.valid and self.metric != "energy"

    @property
    def launch_energy(self) -> Energy | None:
        """The energy of a launch; only the reason where its own measurement cannot be trusted."""
        return self.energy if self.valid or self.metric != "energy" else Energy(reason=self.reason)

    @property
    def median(self) -> float | None:
        """The median of the processes' medians, in seconds; None where nothing was measured."""
        from statistics import median

        medians = [median(process) for process in self.processes if process]
        return median(medians) if medians else None

    @property
    def spread(self) -> float | None:
        """Half the range between the processes' medians over their median: the error bar between processes."""
        from statistics import median

        medians = [median(process) for process in self.processes if process]
        if len(medians) < 2:
            return None
        return (max(medians) - min(medians)) / 2 / median(medians)

    @property
    def clock(self) -> float | None:
        """The median SM clock in hertz."""
        from statistics import median

        clocks = [clock for process in self.clocks for clock in process if clock]
        return median(clocks) if clocks else None

    def __repr__(self) -> str:
        """Return one line: `<Measurement kernel cold_time: 12.3 us (n=72)>`."""
        return f"<{type(self).__name__} {self}>"

    def _repr_html_(self) -> str:
        """Return the line of the measurement over a picture of its samples, one line of dots per process."""
        groups = [(f"process {number}", process) for number, process in enumerate(self.processes, 1)]
        samples = self.samples
        ends = (value_text(self.metric, min(samples)), value_text(self.metric, max(samples))) if samples else None
        return display.view(str(self), display.dots(groups, ends))

    def __str__(self) -> str:
        if self.median is None:
            return f"{self.subject} {self.metric}: not measured ({self.reason})"
        text = f"{self.subject} {self.metric}: {value_text(self.metric, self.median)}"
        text += f" (n={len(self.samples)}"
        if self.spread is not None:
            text += f", processes within {share_text(self.spread)}"
        if self.clock:
            text += f", {rate_text(self.clock, 'Hz')}"
        return text + ")" + ("" if self.valid else f"  INVALID: {self.reason}")


def merged(parts: Sequence[Measurement]) -> Measurement:
    """Return one measurement from those of several processes of the same case; it is invalid if any part is."""
    head = parts[0]
    if any((part.metric, part.subject) != (head.metric, head.subject) for part in parts):
        raise ResultsError("only measurements of one metric and subject can be merged")
    filled = [part for part in parts if part.samples]
    faults = [part.reason for part in parts if part.reason and (not part.valid or not filled)]
    boards_known = all(len(part.boards) == len(part.processes) for part in filled)
    return Measurement(
        metric=head.metric,
        subject=head.subject,
        processes=tuple(process for part in filled for process in part.processes),
        clocks=tuple(clock for part in filled for clock in part.clocks),
        throttled=sum(part.throttled for part in parts),
        valid=all(part.valid for part in parts),
        reason=faults[0] if faults else None,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        evidence=tuple(evidence for part in filled for evidence in part.evidence),
        energy=next((part.energy for part in parts if part.energy), None),
        boards=tuple(board for part in filled for board in part.boards) if boards_known else (),
    )


class PackedSamples(Struct, frozen=True, gc=False):
    """The samples of one process: `counts` of a `unit` in seconds."""

    unit: float
    counts: list[Int]


@dataclass(frozen=True)
class MeasurementFile(MeasurementFields):
    """A measurement as its file keeps it, with `clocks` in megahertz."""

    processes: tuple[PackedSamples, ...]
    clocks: tuple[tuple[int | float, ...], ...] = ()

    def unpacked(self, fault: str | None = None) -> Measurement:
        """Return the measurement; invalid by its own reason, else by the `fault` that its values have."""
        fields: dict[str, Any] = vars(self) | {
            "processes": tuple(tuple(count * group.unit for count in group.counts) for group in self.processes),
            "clocks": tuple(tuple(mhz * 1e6 for mhz in process) for process in self.clocks),
        }
        if fault and self.valid:
            fields |= {"valid": False, "reason": fault}
        return Measurement(**fields)


_SMALLEST, _MOST_COUNTS = -30, 2**53


def packed(samples: Sequence[float]) -> dict[str, Any]:
    """Return samples as `PackedSamples` in plain JSON, with a decimal unit that leaves the smallest four digits.

    A sample that is no number becomes a count of 0, which no reader takes for a time.
    """
    positive = [sample for sample in samples if 0 < sample < math.inf]
    exponent = math.floor(math.log10(min(positive))) - 3 if positive else 0
    unit = float(f"1e{max(exponent, _SMALLEST)}")
    return {"unit": unit, "counts": [whole(sample / unit) for sample in samples]}


def whole(ratio: float) -> int:
    """Return the ratio rounded; 0 where it is no number, or larger than a float counts exactly."""
    return round(ratio) if abs(ratio) < _MOST_COUNTS else 0


def plain_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as plain JSON values, without empty fields and spans that contain no number."""
    fields = msgspec.structs.asdict(evidence)
    fields["spans"] = {name: span for name, span in evidence.spans.items() if all(map(math.isfinite, span))}
    return {key: _plain(value) for key, value in fields.items() if value or key in ("seconds", "readings")}


def plain_energy(energy: Energy | None) -> dict[str, Any] | None:
    """Return the energy as plain JSON values, without unknown ones; None without energy."""
    fields = msgspec.structs.asdict(energy) if energy else None
    return fields and {key: _plain(value) for key, value in fields.items() if value is not None}


def _plain(value: object) -> object:
    """Return the value as JSON has it, with floats of four significant digits."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in cast("Mapping[str, object]", value).items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in cast("tuple[object, ...]", value)]
    return float(f"{value:.4g}") if isinstance(value, float) else value
