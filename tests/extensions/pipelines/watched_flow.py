"""A flow that remembers who waited for whom, so that a missing wait shows: clocks of lanes as vectors."""

from contextlib import contextmanager

from prism_bench.backends.base import Flow


class WatchedFlow(Flow):
    """`known[lane][other]` is how much of `other`'s work a lane's next work comes after; `work` names who did what."""

    def __init__(self):
        self.current, self.known, self.done, self.work = 0, {0: {}}, {}, []

    @contextmanager
    def lane(self, number):
        before, self.current = self.current, number
        yield
        self.current = before

    def enqueue(self, name):
        """The work `name` on the current lane, with what it comes after."""
        lane = self.current
        self.done[lane] = self.done.get(lane, 0) + 1
        self.known.setdefault(lane, {})[lane] = self.done[lane]
        self.work.append((name, lane, self.done[lane], dict(self.known[lane])))

    def comes_after(self, later, earlier):
        """Whether the last work of the first name cannot begin before the last one of the second has ended."""
        *_, (_, lane, place, _) = [work for work in self.work if work[0] == earlier]
        *_, (_, _, _, known) = [work for work in self.work if work[0] == later]
        return known.get(lane, 0) >= place

    def point(self):
        return {}

    def reached(self, point, lane):
        point.clear()
        point.update(self.known.get(lane, {}))

    def wait(self, lane, point):
        mine = self.known.setdefault(lane, {})
        mine.update({other: max(mine.get(other, 0), place) for other, place in point.items()})

    def captured(self, call):
        """A graph that is captured has the same waits each time it is replayed."""
        return call
