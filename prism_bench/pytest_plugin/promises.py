"""Limits of a test and their verdicts: missed only where the whole interval is beyond the limit and the noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prism_bench.analysis.compare.estimate import Estimate, estimate
from prism_bench.analysis.compare.medians import medians
from prism_bench.analysis.uncertainty import interval_of
from prism_bench.pytest_plugin.timed_test import TimedTest
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.units import rate_text, share_text, time_text

PromiseWord = Literal["met", "missed", "undecided"]


@dataclass(frozen=True)
class JudgedPromise:
    """One limit, in words, with its `verdict` and what was found."""

    limit: str
    verdict: PromiseWord
    found: str


@dataclass(frozen=True)
class TestedTimes:
    """Times that limits are held to: the case, its metric, the peer to beat, the copy ceiling in bytes per second."""

    case: CaseResult
    metric: str
    peer: Measurement | None = None
    ceiling: float | None = None

    @property
    def own(self) -> Measurement:
        """The function's own times."""
        found = self.case.measurement(self.metric)
        assert found is not None, "only cases with times are judged"
        return found

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the function's time in seconds."""
        return interval_of(self.case, self.metric, self.own.median or 0.0)

    @property
    def against_peer(self) -> Estimate | None:
        """The function's time over the peer's, with its error."""
        return estimate(medians(self.peer.processes), medians(self.own.processes)) if self.peer else None


def judged(test: TimedTest, times: TestedTimes, noise: float) -> tuple[JudgedPromise, ...]:
    """Return the verdict on every limit of the test; `noise` is the smallest relative excess that counts."""
    return tuple(_judged(test, times, noise))


def _judged(test: TimedTest, times: TestedTimes, noise: float) -> Iterator[JudgedPromise]:
    if test.longest is not None:
        limit = f"at most {time_text(test.longest)}"
        yield JudgedPromise(limit, verdict(times.interval, test.longest, noise), f"{_excess(times, test.longest)}")
    if test.share is not None and times.ceiling:
        yield _of_share(test.share, times, times.ceiling, noise)
    compared = times.against_peer
    if compared is not None and test.least_speedup and times.peer:
        low, high = compared.interval()
        found = (
            f"{1 / compared.ratio:.3f}x of paired medians ({1 / high:.3f} to {1 / low:.3f})"
            if low
            else "one round shows no spread"
        )
        limit = f"at least {test.least_speedup:g}x as fast as {times.peer.subject.removeprefix('peer:')}"
        yield JudgedPromise(limit, verdict((low, high), 1 / test.least_speedup, noise), found)


def _of_share(share: float, times: TestedTimes, ceiling: float, noise: float) -> JudgedPromise:
    """Return the verdict on a share of the copy ceiling: a limit on the time that its bytes may take."""
    longest = times.case.bytes / (share * ceiling)
    low, high = (times.case.bytes / seconds / ceiling for seconds in times.interval[::-1])
    found = f"{share_text(low)} to {share_text(high)} of {rate_text(ceiling, 'B/s')}"
    return JudgedPromise(
        f"at least {share_text(share)} of the copy ceiling", verdict(times.interval, longest, noise), found
    )


def verdict(interval: tuple[float, float], limit: float, noise: float) -> PromiseWord:
    """Return whether an interval keeps a limit: missed where all of it is beyond limit and noise, met where all is in.

    Everything else is undecided, and a test does not fail for it.
    """
    low, high = interval
    if low > limit * (1 + noise):
        return "missed"
    return "met" if high <= limit else "undecided"


def _excess(times: TestedTimes, limit: float) -> str:
    ratio = (times.own.median or 0.0) / limit - 1
    return f"{share_text(abs(ratio))} {'above' if ratio > 0 else 'below'} the limit"
