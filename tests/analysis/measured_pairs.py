"""Records of two sides of a comparison, with planted ratios and a spread between processes that is known."""

from dataclasses import replace

import numpy as np

from prism_bench.record.measurement import Measurement
from tests.report.synthetic import case_result, record_of

CLOCK = 1.98e9


def measured(ratio=1.0, *, metric="cold_time", seconds=2e-5, processes=5, spread=0.002, seed=0, clock=CLOCK, **facts):
    """Twelve samples in each process around `seconds` times the ratio."""
    rng = np.random.default_rng(seed)
    levels = seconds * ratio * np.exp(spread * rng.standard_normal(processes))
    groups = tuple(tuple(level * (1 + 0.005 * abs(x)) for x in rng.standard_normal(12)) for level in levels)
    clocks = tuple((clock,) * len(group) for group in groups) if clock else ()
    return Measurement(metric, "kernel", groups, clocks, **facts)


def case(name, ratio=1.0, sass="aa", **facts):
    """A case of that kernel, whose cold time is the planted one."""
    one = measured(ratio, **facts)
    return case_result(name, code={"sass": sass} if sass else {}, measurements=(one,))


def records(ratios, *, sass=("aa", "bb"), **changes):
    """A record of each side: one case per ratio, of different machine code unless told otherwise."""
    a = [case(f"k{i}", 1.0, sass[0], seed=2 * i) for i, _ in enumerate(ratios)]
    b = [case(f"k{i}", ratio, sass[1], seed=2 * i + 1) for i, ratio in enumerate(ratios)]
    return record_of(*a), replace(record_of(*b), **changes)
