"""What a test found, and the words in which a failure reports it."""

import shlex
from dataclasses import dataclass

from prism_bench.pytest_plugin.promises import JudgedPromise, TestedTimes
from prism_bench.record.run_record import TESTED, CaseResult
from prism_bench.spec.case import test_of
from prism_bench.units import count_text, ratio_text, time_text

NOT_VERIFIED = "nothing was verified: give reference= or peer="


@dataclass(frozen=True)
class TestedTime:
    """Result of one call of the fixture.

    `case` is what the session's record keeps, `times` its times with intervals (None where there are none), `verified`
    what its result was compared with, `problem` why it has no time that can be trusted.
    """

    __test__ = False  # pytest collects classes of this name otherwise

    case: CaseResult
    device: str
    verified: str = NOT_VERIFIED
    times: TestedTimes | None = None
    promises: tuple[JudgedPromise, ...] = ()
    problem: str | None = None
    noise: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the test fails: a wrong result, a time that cannot be trusted, or a limit that is missed."""
        return self.problem is not None or any(one.verdict == "missed" for one in self.promises)

    @property
    def seconds(self) -> float | None:
        """The median time in seconds, None without one."""
        return self.times.own.median if self.times else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the time in seconds, None without one."""
        return self.times.interval if self.times else None

    @property
    def line(self) -> str:
        """One line for the summary of a session."""
        words = [self._measured() if self.times else self.problem or "", *self._peer()]
        words += [f"{one.limit}: {one.verdict}" for one in self.promises]
        words += [NOT_VERIFIED] if self.verified == NOT_VERIFIED else []
        return f"{self.case.name}: {'; '.join(filter(None, words))}"

    def __str__(self) -> str:
        rows = [("measured", self._measured()), *(("peer", words) for words in self._peer())] if self.times else []
        rows += [("limit", f"{one.limit}: {one.verdict}, {one.found}") for one in self.promises]
        rows += [("verified", self.verified), ("device", self.device), ("repeat", self._repeat())]
        text = "\n".join(f"  {name:9} {words}" for name, words in rows)
        return f"{self.case.name}: {self.problem or self._headline()}\n{text}"

    def _headline(self) -> str:
        missed = [one.limit for one in self.promises if one.verdict == "missed"]
        beyond = f", by more than the noise of {self.noise:.1%}" if missed else ""
        return f"not {' and not '.join(missed)}{beyond}" if missed else "well"

    def _measured(self) -> str:
        assert self.times, "asked only with times"
        own, (low, high) = self.times.own, self.times.interval
        groups = (
            count_text(len(own.processes), "round")
            if self.case.family == TESTED
            else count_text(len(own.processes), "process", "processes")
        )
        kind = self.times.metric.replace("_", " ")
        return f"{time_text(own.median)} ({time_text(low)} to {time_text(high)}), {kind}, {groups}"

    def _peer(self) -> list[str]:
        if self.times is None or self.times.peer is None or self.times.peer.median is None:
            return []
        peer, own = self.times.peer, self.times.own.median
        ratio = ratio_text(peer.median / own if peer.median and own else None)
        return [f"{peer.subject.removeprefix('peer:')} takes {time_text(peer.median)}, {ratio} the time"]

    def _repeat(self) -> str:
        return shlex.join(["pytest", test_of(self.case.name)])
