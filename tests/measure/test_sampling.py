"""The loop keeps what it takes; a throttled sample is repeated and counted, and giving up is said."""

from itertools import chain, count, repeat

from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.measure.sampling import OWN_DOING
from prism_bench.record.measurement import Sample

FAST, SLOW = 2e9, 1e9
TEN = Criterion(precision=0.0, min_samples=10, max_samples=10, seconds=1e9)


def gate(**changes):
    return ClockGate(**{"pause": lambda seconds: None, **changes})


def series(clocks, criterion=TEN, the_gate=None, clock=lambda: 0.0):
    """The series taken from samples of one second at these clocks."""
    taken = (Sample(float(index), one) for index, one in enumerate(clocks, 1))
    return sample(lambda: next(taken), criterion, the_gate or gate(), clock)


def seconds(found):
    return [one.seconds for one in found.samples]


def test_every_sample_at_full_clock_is_kept_in_order():
    found = series(repeat(FAST))
    assert ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0, False) == (seconds(found), found.throttled, found.gave_up)


def test_a_throttled_sample_is_repeated_and_counted():
    found = series(chain([FAST, FAST, SLOW], repeat(FAST)))
    assert [1, 2, 4, 5, 6, 7, 8, 9, 10, 11] == seconds(found)
    assert (1, False) == (found.throttled, found.gave_up)


def test_a_clock_at_the_share_passes_and_below_it_does_not():
    assert 0 == series(chain([FAST, 0.75 * FAST], repeat(FAST))).throttled
    assert 1 == series(chain([FAST, 0.749 * FAST], repeat(FAST))).throttled


def test_each_repetition_rests_first():
    rests = []
    series(chain([FAST, SLOW, SLOW], repeat(FAST)), the_gate=gate(rest=0.05, pause=rests.append))
    assert [0.05, 0.05] == rests


def test_throttling_beyond_patience_gives_up_keeps_what_comes_and_says_so():
    found = series(chain([FAST], repeat(SLOW)), the_gate=gate(patience=3))
    assert (10, True) == (len(found.samples), found.gave_up)
    assert [SLOW] * 9 == [one.clock for one in found.samples[1:]]
    assert 3 == found.throttled


def test_samples_without_a_clock_pass():
    found = series(chain([FAST], repeat(None)))
    assert (10, 0) == (len(found.samples), found.throttled)


def test_a_clock_that_was_still_asleep_is_repeated_too():
    """Nothing faster was known when the first samples came; once it is, they count as throttled like any other."""
    found = series(chain([SLOW, SLOW], repeat(FAST)))
    assert [FAST] * 10 == [one.clock for one in found.samples]
    assert (2, False) == (found.throttled, found.gave_up)


def test_the_gate_remembers_the_fastest_clock_of_the_session():
    the_gate = gate(patience=0)
    series(repeat(FAST), the_gate=the_gate)
    assert FAST == the_gate.fastest
    assert series(repeat(SLOW), the_gate=the_gate).gave_up


def test_time_ends_the_loop_whatever_the_precision():
    ticks = count()
    found = series(
        repeat(FAST), Criterion(precision=0.0, max_samples=100, seconds=5.0), clock=lambda: float(next(ticks))
    )
    assert 4 == len(found.samples)  # the fifth look at the clock after the first reads five seconds


def test_at_least_one_sample_is_taken():
    found = series(repeat(FAST), Criterion(seconds=0.0))
    assert [1] == seconds(found)


class Heavy:
    """Work that holds the clock down; a launch without work has the clocks of `light`, one after the other."""

    def __init__(self, light, before=()):
        self._clocks, self._light = chain(before, repeat(SLOW)), iter(light)

    def __call__(self):
        return Sample(1.0, next(self._clocks))

    def light(self):
        return Sample(1e-6, next(self._light))


def test_work_that_holds_the_clock_down_by_itself_keeps_its_samples():
    rests = []
    found = sample(Heavy(repeat(FAST)), TEN, gate(rest=0.05, pause=rests.append))
    assert (False, False, 0) == (found.limited, found.gave_up, found.throttled), "nothing faster was known"
    known = gate(rest=0.05, pause=rests.append)
    known.accepts(Sample(1.0, FAST))
    found = sample(Heavy(repeat(FAST)), TEN, known)
    assert (True, False, 0, 10) == (found.limited, found.gave_up, found.throttled, len(found.samples))
    assert [0.05] * OWN_DOING == rests


def test_a_device_that_is_slow_without_work_is_throttled_as_ever():
    known = gate(patience=4)
    known.accepts(Sample(1.0, FAST))
    found = sample(Heavy(chain([FAST, FAST, SLOW], repeat(SLOW))), TEN, known)
    assert (False, True, 4) == (found.limited, found.gave_up, found.throttled)
