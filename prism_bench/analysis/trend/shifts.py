"""Shifts: steps of one cause put together, reported once however many cases moved."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from prism_bench.analysis.findings import Finding, Gravity, metric_words, value_text
from prism_bench.analysis.trend.step import Step
from prism_bench.record.identity import Owner
from prism_bench.units import count_text, share_text

RECENT = 30  # records of a series for which a step to the worse is held against it; afterwards it is history
# Where these changed, times before and after were not made alike: no code has become slower.
_NOT_THE_CODE = ("protocol", "device", "clock")
_NAMED = 3


@dataclass(frozen=True)
class Shift:
    """Steps of one machine that begin with one record, in one direction, by one cause."""

    steps: tuple[Step, ...]

    @property
    def first(self) -> Step:
        return self.steps[0]

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that moved, each once."""
        return tuple(dict.fromkeys(step.key.case for step in self.steps))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that moved, each once."""
        return tuple(dict.fromkeys(step.key.metric for step in self.steps))

    @property
    def largest(self) -> Step:
        """The step that moved most."""
        return max(self.steps, key=lambda step: max(step.ratio, 1 / step.ratio))

    @property
    def ratio(self) -> float:
        """The ratio of the step that is largest."""
        return self.largest.ratio

    def gravity(self, recent: int = RECENT) -> Gravity:
        """Return `bad` where a kernel has become worse and still is, by a cause in the code or around it."""
        held = [
            step for step in self.steps
            if step.worse and not step.recovered and step.age <= recent and step.key.subject == "kernel"
        ]  # fmt: skip
        return "bad" if held and self.first.cause.kind not in _NOT_THE_CODE else "note"

    def finding(self, recent: int = RECENT) -> Finding:
        """Return the finding of all its steps."""
        case, metric = (found[0] if len(found) == 1 else None for found in (self.cases, self.metrics))
        return Finding(self.gravity(recent), "step", case, self.message, metric, self.ratio)

    @property
    def message(self) -> str:
        """One sentence: what moved, by how much, since when, why."""
        step = self.first
        why = "; ".join((step.cause.words, *(f"also {words}" for words in step.cause.also)))
        recovered = ", meanwhile recovered" if step.worse and all(one.recovered for one in self.steps) else ""
        where = f" in {step.key.environment}" if step.key.environment else ""
        return f"{self._what} {self._by}{where} since {step.since} ({step.record}){recovered}: {why}{self._commits}"

    @property
    def _what(self) -> str:
        whose = {step.key.subject for step in self.steps} - {"kernel"}
        subject = f"{', '.join(sorted(whose)).replace(':', ' ')} " if whose else ""
        metrics = ", ".join(metric_words(metric) for metric in self.metrics)
        if len(self.cases) == 1:
            return f"{self.cases[0]}, {subject}{metrics}:"
        more = f" and {len(self.cases) - _NAMED} more" if len(self.cases) > _NAMED else ""
        return f"{count_text(len(self.cases), 'case')} ({', '.join(self.cases[:_NAMED])}{more}), {subject}{metrics}:"

    @property
    def _by(self) -> str:
        changes = sorted(abs(step.ratio - 1) for step in self.steps)
        word = "worse by" if self.first.worse else "better by"
        if len(changes) > 1:
            least, usual, most = (share_text(share) for share in (changes[0], median(changes), changes[-1]))
            return f"{word} {least} each," if least == most else f"{word} {least} to {most}, {usual} typically,"
        before, after = (value_text(self.first.key.metric, value) for value in (self.first.before, self.first.after))
        return f"{word} {share_text(changes[0])} ({before} -> {after})"

    @property
    def _commits(self) -> str:
        old, new = self.first.commits
        return f" [{old[:8]}..{new[:8]}]" if old and new and old != new else ""


def shifts(steps: Iterable[Step]) -> list[Shift]:
    """Return the steps put together, in the order of their first ones."""
    found: dict[tuple[Owner, str, bool, str, str], list[Step]] = {}
    for step in steps:
        words = "" if step.cause.kind == "clock" else step.cause.words  # every case has its own reading of the clock
        identity = step.key.owner, step.record, step.worse, step.cause.kind, words
        found.setdefault(identity, []).append(step)
    return [Shift(tuple(together)) for together in found.values()]


def findings(found: Sequence[Shift], recent: int = RECENT) -> list[Finding]:
    """Return one finding for each shift, the grave ones first."""
    return sorted((shift.finding(recent) for shift in found), key=lambda finding: finding.gravity != "bad")
