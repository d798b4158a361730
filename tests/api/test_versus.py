"""`prism_bench.compare`: refusals, the order of rounds, the verdict, how it prints; and the real thing on a device."""

import re

import numpy as np
import pytest

import prism_bench
from prism_bench.api.callables import alternated, compared
from prism_bench.errors import UsageError
from prism_bench.record.measurement import Measurement


def sides(factor, rounds=8, noise=0.002):
    rng = np.random.default_rng(3)

    def side(name, seconds):
        def once():
            level = seconds * (1 + noise * rng.standard_normal())
            return Measurement("cold_time", name, (tuple(level * (1 + noise * rng.standard_normal(24))),))

        return once

    return alternated(side("old", 1e-4), side("new", factor * 1e-4), rounds)


@pytest.mark.parametrize(("factor", "verdict"), [(0.8, "faster"), (1.0, "same"), (1.25, "slower")])
def test_the_verdict_is_on_the_second_callable(factor, verdict):
    found = compared(*sides(factor))
    low, high = found.interval
    assert verdict == found.verdict
    assert low < factor < high


def test_it_prints_a_sentence_and_shows_every_sample():
    found = compared(*sides(0.8))
    assert str(found).startswith("new is faster than old: 80")
    assert repr(found).startswith("<CallableComparison new is faster")
    assert 2 * 8 * 24 == found._repr_html_().count("<circle")


def test_the_times_that_are_printed_have_the_ratio():
    """The medians of rounds on two levels were 227 and 232 us, next to 1.108x."""
    levels = {"old": (190e-6, 195e-6, 227e-6, 229e-6, 230e-6), "new": (229e-6, 230e-6, 232e-6, 257e-6, 238e-6)}
    sides = [Measurement("cold_time", name, tuple((one,) * 9 for one in times)) for name, times in levels.items()]
    text = str(compared(*sides))
    after, before = (float(one) for one in re.findall(r"([\d.]+) us", text))
    assert after / before == pytest.approx(1 + float(re.search(r"([+-][\d.]+) %", text)[1]) / 100, rel=0.005)


def test_noise_is_no_change():
    found = compared(*sides(1.01, rounds=3, noise=0.05))
    assert "inconclusive" == found.verdict
    assert "new is not clearly different from old" in str(found)


def test_rounds_alternate_which_side_is_first():
    order = []

    def side(name):
        return lambda: order.append(name) or Measurement("cold_time", name, ((1e-6,),))

    a, b = alternated(side("a"), side("b"), 4)
    assert "abbaabba" == "".join(order)
    assert (4, 4) == (len(a.processes), len(b.processes))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"second": 7}, "two callables without arguments, not int"), ({"mode": "warm"}, "one of cold, hot"),
     ({"rounds": 2}, "needs at least 3")],
)  # fmt: skip
def test_bad_arguments_are_refused_before_anything_runs(arguments, problem):
    second = arguments.pop("second", lambda: None)
    with pytest.raises(UsageError, match=problem):
        prism_bench.compare(lambda: None, second, **arguments)


@pytest.mark.gpu
def test_on_a_device_twice_the_work_is_slower_and_the_same_work_is_not():
    import cupy

    arrays = [cupy.ones(size, cupy.float32) for size in (1 << 26, 1 << 25)]

    def whole():
        cupy.exp(arrays[0], out=arrays[0])

    def half():
        cupy.exp(arrays[1], out=arrays[1])

    assert "faster" == prism_bench.compare(whole, half).verdict
    assert prism_bench.compare(whole, whole).verdict in ("same", "inconclusive")
