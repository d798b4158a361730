"""What a call enqueued, and whether its work is ordered with the stream that is timed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prism_bench.units import count_text

Kind = Literal["work", "record", "wait", "pin"]
LEGACY = (0, 1)  # the handles of the legacy default stream


@dataclass(frozen=True)
class Operation:
    """One call into the driver or runtime: a kernel, copy, set or graph is `work`; `pin` sets L2 aside."""

    kind: Kind
    name: str
    stream: int = 0
    event: int = 0


@dataclass(frozen=True)
class Observed:
    """What one call of the callable enqueued until it returned (`inside`), and what came after that (`later`)."""

    inside: tuple[Operation, ...]
    later: tuple[Operation, ...] = ()

    @property
    def work(self) -> int:
        """The operations that work on the device."""
        return sum(one.kind == "work" for one in self.inside)


def strays(stream: int, operations: Sequence[Operation], same: Sequence[int] = ()) -> list[Operation]:
    """Return work that is not timed: on a stream that does not begin after `stream`, or that `stream` never waits for.

    Streams in `same` are ordered with `stream` anyway.
    """
    timed = {stream, *same}
    clocks = {one: {stream: 0} for one in timed}  # by stream: how far it comes after the work of others
    events: dict[int, dict[int, int]] = {}
    early, elsewhere = [], []
    for at, one in enumerate(operations, 1):
        clock = clocks.setdefault(one.stream, {})
        if one.kind == "wait":
            for other, reached in events.get(one.event, {}).items():
                clock[other] = max(clock.get(other, 0), reached)
            continue
        if one.kind == "work" and stream not in clock:
            early.append(one)
        elif one.kind == "work" and one.stream not in timed:
            elsewhere.append((at, one))
        clock[one.stream] = at
        if one.kind == "record":
            events[one.event] = dict(clock)
    seen = [clocks[one] for one in timed]
    return early + [one for at, one in elsewhere if not any(clock.get(one.stream, 0) >= at for clock in seen)]


def complaint(stream: int, calls: Sequence[Observed], same: Sequence[int] = ()) -> str | None:
    """Return why these calls cannot be timed on `stream`; None where nothing speaks against it."""
    for call in calls:
        late = [one for one in call.later if one.kind == "work"]
        if late:
            return f"the call enqueues work after it has returned ({_names(late)}): a thread works on behind it"
        pinned = [one for one in call.inside if one.kind == "pin"]
        if pinned:
            return f"the call sets a part of L2 aside ({_names(pinned)}), so caches cannot be cleared"
        loose = strays(stream, call.inside, same)
        if loose:
            return (
                f"the call uses another stream: {len(loose)} of its {count_text(call.work, 'operation')} "
                f"({_names(loose)}) are not "
                "ordered with the timed one"
            )
    idle = sum(not call.work for call in calls)
    if 0 < idle < len(calls):
        return f"the call enqueues nothing in {idle} of {count_text(len(calls), 'call')}"
    return None


def _names(operations: Sequence[Operation]) -> str:
    return ", ".join(sorted({one.name for one in operations}))
