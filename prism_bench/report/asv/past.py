"""What all records together say about each machine: its steps, its breakpoints, what was set aside."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prism_bench.analysis.trend import Breakpoint, Course, Key, Step, Trend, trend
from prism_bench.analysis.trend.choice import kept_floors
from prism_bench.analysis.trend.shifts import Shift, shifts
from prism_bench.analysis.trend.windows import courses
from prism_bench.record import store
from prism_bench.record.store import History


@dataclass(frozen=True)
class Past:
    """A `history` and its `trend`."""

    history: History
    trend: Trend

    def records(self, machine: str) -> int:
        """Return how many records of the machine there are."""
        return sum(facts.machine == machine for facts in self.history.records)

    def shifts(self, machine: str) -> list[Shift]:
        """Return the machine's shifts, the newest first."""
        return [one for one in reversed(self._shifts) if one.first.key.machine == machine]

    def breakpoints(self, machine: str) -> list[Breakpoint]:
        """Return where something changed that may move every series of the machine, the newest first."""
        return [one for one in reversed(self.trend.breakpoints) if one.machine == machine]

    @cached_property
    def _shifts(self) -> list[Shift]:
        return shifts(self.trend.steps)

    @cached_property
    def series(self) -> Mapping[Key, Course]:
        """The series that a step is drawn on: of each shift that of its largest step."""
        wanted = {shift.largest.key for shift in self._shifts}
        return {one.key: one for one in courses(self.history, wanted)} if wanted else {}

    def place(self, step: Step) -> int:
        """Return the first run of the step's new level in its series."""
        records = self.series[step.key].records.tolist()
        return next(place for place, one in enumerate(records) if self.history.records[one].file == step.record)


def past_of(runs: Path) -> Past:
    """Return the past of all records below `runs`, with the noise floors that are kept next to them."""
    history = store.read_history(runs)
    return Past(history, trend(history, kept_floors(history, runs.parent / "noise")))
