"""Replays of traces: on a scripted clock, on a pool that counts, and at random."""

from prism_bench.extensions.memory import Event, PoolLimits, SizeClassPool, Trace
from prism_bench.extensions.memory.replay import CountingSource, footprint, planned, replay, summary
from prism_bench.extensions.memory.trace import IN_USE, random_trace
from tests.extensions.memory.fake_device import Held

TOY = Trace(
    "toy", (Event(1, 5000, 0), Event(2, 600, 0), Event(1, 0, 0), Event(3, 8000, 0), Event(2, 0, 0), Event(3, 0, 0))
)


class Scripted:
    """A clock that advances by a fixed step at every call."""

    def __init__(self, step):
        self.now, self.step = 0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_operations_are_timed_separately():
    times = replay(TOY, lambda size: object(), clock=Scripted(1000))
    assert (3, 3) == (len(times.allocations), len(times.releases))
    assert {1e-6} == {round(s, 9) for s in (*times.allocations, *times.releases)}


def test_lanes_are_entered_where_the_stream_changes():
    entered = []

    class Lane:
        def __init__(self, number):
            self._number = number

        def __enter__(self):
            entered.append(self._number)

        def __exit__(self, *exception):
            """Nothing to leave."""

    events = (Event(1, 8, 0), Event(2, 8, 1), Event(3, 8, 1), Event(1, 0, 0), Event(2, 0, 0), Event(3, 0, 0))
    replay(Trace("two", events), lambda size: object(), [Lane(0), Lane(1)])
    assert [0, 1, 0] == entered


def test_footprint_has_the_peaks():
    source = CountingSource()
    pool = SizeClassPool(source, PoolLimits(slack=0.0))
    peaks = footprint(
        TOY,
        lambda size: Held(pool, size),
        used=lambda: 5 + pool.state().live,
        held=lambda: 6 + pool.state().held,
        device=lambda: 7 + sum(source.held.values()),
        external=lambda: pool.state().external_fragmentation,
    )
    assert (8600, 8192 + 1024, 8192 + 1024, 8192 + 1024) == (peaks.asked, peaks.used, peaks.held, peaks.device)
    assert (9216 / 8600, 1 - 8600 / 9216, None) == (peaks.overhead, peaks.internal, peaks.external)


def test_empty_trace_has_no_footprint():
    peaks = footprint(Trace("empty", ()), lambda size: object(), used=lambda: 1, held=lambda: 1, device=lambda: 7)
    assert (0, None) == (peaks.asked, peaks.overhead)


def test_overhead_without_allocator_counts_uses_the_device():
    unknown = {"used": lambda: None, "held": lambda: None}
    peaks = footprint(TOY, lambda size: object(), **unknown, device=lambda: 7)
    assert (None, None, 0, 0.0) == (peaks.used, peaks.held, peaks.device, peaks.overhead)


def test_planned_pool_counts_of_a_trace():
    state = planned(TOY)
    assert (1, 2, 9216, 0) == (state.hits, state.misses, state.peak_held, state.live)


def test_random_trace_is_synthetic_balanced_and_reproducible():
    trace = random_trace(2000)
    assert trace == random_trace(2000)
    assert trace.facts["synthetic"]
    assert (2000, 0) == (trace.allocations, trace.tracked().current)
    assert IN_USE / 2 < max(_in_use(trace)) < 2 * IN_USE


def _in_use(trace):
    live = 0
    for event in trace.events:
        live += 1 if event.size else -1
        yield live


def test_pool_holds_little_more_than_a_random_trace_uses():
    state = planned(random_trace(5000))
    assert state.peak_held <= 1.25 * state.peak_live
    assert state.hit_rate > 0.5


def test_a_summary_of_single_operations():
    statistics = summary([1e-6] * 99 + [1e-3])
    assert (100, 1e-6) == (statistics["count"], statistics["median"])
    assert statistics["p99"] > 1e-5
    assert {"count": 1} == summary([1e-6])
