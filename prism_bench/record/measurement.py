"""Samples and measurements: what one metric of one case was, grouped by process, with its evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench import display
from prism_bench.errors import ResultsError
from prism_bench.record.evidence import Energy, Evidence
from prism_bench.units import rate_text, share_text, time_text


@dataclass(frozen=True)
class Sample:
    """One timed launch: `seconds`; the SM clock it ran at in hertz and the host's launch cost, where they were read."""

    seconds: float
    clock: float | None = None
    launch_seconds: float | None = None


@dataclass(frozen=True)
class Measurement:
    """The samples of one metric of one subject (`kernel`, or `peer:<name>`), one group per process.

    An empty measurement has a `reason`. An invalid one keeps its samples and the reason why they cannot be trusted.
    `evidence` is the device's state, one per process in which something watched it; `energy` that of one launch.
    `boards` are the UUIDs of the GPUs, one per process, where several of them measured it.
    """

    metric: str
    subject: str
    processes: tuple[tuple[float, ...], ...]
    clocks: tuple[tuple[float, ...], ...] = ()
    throttled: int = 0
    valid: bool = True
    reason: str | None = None
    notes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    energy: Energy | None = None
    boards: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[float, ...]:
        """All samples, process after process."""
        return tuple(sample for process in self.processes for sample in process)

    @property
    def distrusted(self) -> bool:
        """Whether a kernel's own samples cannot be trusted; empty cells and libraries do not count."""
        return self.subject == "kernel" and bool(self.samples) and not self.valid

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
        ends = (time_text(min(samples)), time_text(max(samples))) if samples else None
        return display.view(str(self), display.dots(groups, ends))

    def __str__(self) -> str:
        if self.median is None:
            return f"{self.subject} {self.metric}: not measured ({self.reason})"
        text = f"{self.subject} {self.metric}: {time_text(self.median)}"
        text += f" (n={len(self.samples)}"
        if self.spread is not None:
            text += f", processes within {share_text(self.spread)}"
        if self.clock:
            text += f", {rate_text(self.clock, 'Hz')}"
        return text + ")" + ("" if self.valid else f"  INVALID: {self.reason}")


def merged(parts: Sequence[Measurement]) -> Measurement:
    """One measurement out of the same one made in several processes; invalid if any part is."""
    first = parts[0]
    if any((part.metric, part.subject) != (first.metric, first.subject) for part in parts):
        raise ResultsError("only measurements of one metric and subject can be merged")
    filled = [part for part in parts if part.samples]
    faults = [part.reason for part in parts if part.reason and (not part.valid or not filled)]
    return Measurement(
        metric=first.metric,
        subject=first.subject,
        processes=tuple(process for part in filled for process in part.processes),
        clocks=tuple(clock for part in filled for clock in part.clocks),
        throttled=sum(part.throttled for part in parts),
        valid=all(part.valid for part in parts),
        reason=faults[0] if faults else None,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        evidence=tuple(one for part in filled for one in part.evidence),
        energy=next((part.energy for part in parts if part.energy), None),
        boards=_boards(filled),
    )


def _boards(parts: Sequence[Measurement]) -> tuple[str, ...]:
    """Return the board of each process; none where that of a process is not known."""
    known = all(len(part.boards) == len(part.processes) for part in parts)
    return tuple(board for part in parts for board in part.boards) if known else ()
