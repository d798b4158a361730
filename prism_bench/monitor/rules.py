"""Rules that decide from evidence whether a measurement is worth keeping."""

from collections.abc import Iterator
from dataclasses import dataclass

from prism_bench.monitor.quantities import HARMFUL
from prism_bench.record.measurement import CLOCK_SHARE, Evidence
from prism_bench.units import rate_text, share_text


@dataclass(frozen=True)
class Rules:
    """What makes a measurement invalid, and how often it may be tried again.

    An active power limit is reported and does not count as throttling: a board that works hard runs that way, the
    same in every run. A clock below `clock_share` of the session's best does, whatever held it down. A case is measured
    again up to `repeats` times after a `rest` in seconds, as long as a process has not spent `patience` seconds so.
    """

    clock_share: float = CLOCK_SHARE
    repeats: int = 2
    rest: float = 0.5
    patience: float = 60.0

    def doubts(self, evidence: Evidence, best_clock: float | None = None) -> tuple[str, ...]:
        """Why what was measured meanwhile cannot be trusted; nothing where it can.

        `best_clock` is the highest SM clock of the session in hertz, for measurements whose clock counts.
        """
        return (*_throttled(evidence), *self._slow(evidence, best_clock), *_neighbours(evidence), *_errors(evidence))

    def _slow(self, evidence: Evidence, best: float | None) -> Iterator[str]:
        highest = evidence.highest("sm_clock")
        if best and highest and highest < self.clock_share * best:
            yield (
                f"the SM clock was {rate_text(highest, 'Hz')} at most, below {share_text(self.clock_share)} of this "
                f"session's best, {rate_text(best, 'Hz')}"
            )


def _throttled(evidence: Evidence) -> Iterator[str]:
    throughout = [word for word in HARMFUL if evidence.reasons.get(word, 0.0) >= 1.0]
    if throughout:
        yield f"throttled throughout: {', '.join(throughout)}"


def _neighbours(evidence: Evidence) -> Iterator[str]:
    if evidence.busy_neighbours:
        yield f"another process worked on the GPU: {', '.join(evidence.neighbours)}"


def _errors(evidence: Evidence) -> Iterator[str]:
    """Yield what ECC corrected cost no value and hardly any time; the rest casts doubt on both."""
    grave = [event for event in evidence.events if " corrected " not in event]
    if grave:
        yield f"{', '.join(grave)} during the measurement"


def remarks(evidence: Evidence) -> Iterator[str]:
    """Yield what a reader should know although it makes nothing invalid."""
    if evidence.lost:
        yield f"evidence {evidence.lost}"
    if evidence.neighbours and not evidence.busy_neighbours:
        yield f"idle on the same GPU: {', '.join(evidence.neighbours)}"
    for event in evidence.events:
        if " corrected " in event:
            yield event
