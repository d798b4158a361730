"""One function measured for a test: verified, timed in rounds until its limits are decided, verified again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from prism_bench.api.inspected import TimedCallable
from prism_bench.errors import MeasurementInvalid
from prism_bench.pytest_plugin.answers import Answers, Verification
from prism_bench.pytest_plugin.clocks import FunctionClock
from prism_bench.pytest_plugin.outcome import TestedTime
from prism_bench.pytest_plugin.promises import JudgedPromise, TestedTimes, judged
from prism_bench.pytest_plugin.timed_test import TimedTest
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import TESTED, CaseResult
from prism_bench.record.schema import Status

LABEL = "test"
START, MORE, MOST = 5, 5, 15  # rounds


@dataclass(frozen=True)
class Measuring:
    """What every test of a session is measured with; `ceiling` measures the copy ceiling on first use."""

    clock: FunctionClock
    device: str
    noise: float
    ceiling: Callable[[], float | None]

    def tested(self, name: str, test: TimedTest) -> TestedTime:
        """Return the result of one test of a function."""
        answers = Answers(test, self.clock.settle)
        verified = answers.check()
        if verified.problem:
            return self._without_times(_case(name, test, verified, "wrong", verified.problem), verified)
        try:
            times, promises = self._timed(name, test, verified)
        except MeasurementInvalid as error:
            return self._without_times(_case(name, test, verified, "failed", f"cannot be trusted: {error}"), verified)
        again = answers.check()
        if again.problem:
            problem = f"right before it was timed, and then {again.problem}"
            return self._without_times(_case(name, test, again, "wrong", problem), again)
        return TestedTime(times.case, self.device, verified.words, times, promises, noise=self.noise)

    def _without_times(self, case: CaseResult, verified: Verification) -> TestedTime:
        return TestedTime(case, self.device, verified.words, problem=case.reason)

    def _timed(
        self, name: str, test: TimedTest, verified: Verification
    ) -> tuple[TestedTimes, tuple[JudgedPromise, ...]]:
        """Return the times, after more rounds where a limit is in the interval."""
        subjects = _subjects(name, test)
        ceiling = self.ceiling_for(test)
        found = self.clock.rounds(subjects, START)
        while True:
            times = _times(_case(name, test, verified), found, test.metric, ceiling)
            promises = judged(test, times, self.noise)
            decided = all(one.verdict != "undecided" for one in promises)
            if decided or len(found[0].processes) >= MOST:
                return times, promises
            more = self.clock.rounds(subjects, MORE)
            found = [merged(pair) for pair in zip(found, more, strict=True)]

    def ceiling_for(self, test: TimedTest) -> float | None:
        """Return the copy ceiling where a limit needs it; MeasurementInvalid where it could not be measured."""
        ceiling = self.ceiling() if test.share is not None else None
        if test.share is not None and not ceiling:
            raise MeasurementInvalid("the copy ceiling could not be measured, so that at_least cannot be judged")
        return ceiling


def _subjects(name: str, test: TimedTest) -> list[TimedCallable]:
    assert callable(test.function), "only functions are timed here"
    own = TimedCallable(partial(test.function, *test.arrays), test.metric, name, test.bytes, test.flops)
    if test.peer is None:
        return [own]
    peer = partial(test.peer, *test.arrays)
    return [own, TimedCallable(peer, test.metric, f"peer:{_name_of(test.peer)}")]


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)


def _times(case: CaseResult, found: list[Measurement], metric: str, ceiling: float | None) -> TestedTimes:
    """Return the times of a case whose measurements are the function's and, if there is one, the peer's."""
    measurements = (replace(found[0], subject="kernel"), *found[1:])
    for one in measurements:
        if not one.valid:
            raise MeasurementInvalid(f"{one.subject}: {one.reason}")
    return TestedTimes(replace(case, measurements=measurements), metric, next(iter(found[1:]), None), ceiling)


def _case(
    name: str, test: TimedTest, verified: Verification, status: Status = "ok", reason: str | None = None
) -> CaseResult:
    return CaseResult(
        name=name, kernel=name, family=TESTED, label=LABEL, workload={}, bytes=test.bytes or 0,
        flops=test.flops, status=status, reason=reason, verification=verified.entries,
    )  # fmt: skip
