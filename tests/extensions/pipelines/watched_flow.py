"""A flow that keeps vector clocks of its lanes, so that tests find a missing wait."""

from contextlib import contextmanager

from prism_bench.backends.base import Flow


class WatchedFlow(Flow):
    """`known[lane][other]` counts `other`'s work before a lane's next work; `work` has names, lanes and clocks."""

    def __init__(self):
        self.current, self.known, self.done, self.work = 0, {0: {}}, {}, []

    @contextmanager
    def lane(self, number):
        before, self.current = self.current, number
        yield
        self.current = before

    def enqueue(self, name):
        """Enqueue the work `name` on the current lane, with its clock."""
        lane = self.current
        self.done[lane] = self.done.get(lane, 0) + 1
        self.known.setdefault(lane, {})[lane] = self.done[lane]
        self.work.append((name, lane, self.done[lane], dict(self.known[lane])))

    def comes_after(self, later, earlier):
        """Return whether the last work `later` waits for the end of the last work `earlier`."""
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
