"""Pair-based spike-timing-dependent plasticity, in place.

With D = t_post - t_pre, dw = A+ e^(-D / tau+) where D > 0, -A- e^(D / tau-) where D < 0; w = clip(w + eta dw, low,
high). Times in ms.

A pair takes part where both neurons are flagged as having a last spike. `bound="soft"` scales dw by what is left to the
bound. Memory-bound: one exponential a weight. `sparse` is bound by instruction issue, and its launch is a good part of
it.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Launch,
    Rule,
    Scalar,
    Size,
    Tune,
    Variant,
    Workload,
    elementwise,
    exact,
    uniform,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, nonnegative, whole

from ..include.arrays.columns import rows_grid

SPIKED = Fill(
    lambda rng, count, axes: rng.random(count) < axes["active"],
    "1 with probability `active`",
    whole(0, 2),
    runs=ONE_BY_ONE,
)
TIME = replace(uniform(0, 100), domain=nonnegative().with_finite_numbers())


def launch(post: int, pre: int, bound: str, width: int, rows: int) -> Launch:
    """Blocks of 256 threads with `rows` rows each."""
    grid = (-(-pre // (256 * width)), *rows_grid(-(-post // rows)))
    return Launch(grid=grid, block=256, entry=f"stdp_update<{str(bound == 'soft').lower()}, {width}, {rows}>")


def launch_sparse(post: int, pre: int, bound: str, width: int, rows: int) -> Launch:
    """Blocks of 128 threads, those of the same columns first."""
    grid = (-(-post // rows), -(-pre // (128 * width)))
    return Launch(grid=grid, block=128, entry=f"stdp_update_sparse<{str(bound == 'soft').lower()}, {width}, {rows}>")


def groups(*rows: int) -> Tune:
    """Groups of four columns where rows consist of such, and `rows` of them a thread."""
    return Tune(
        width=(4, 1),
        rows=rows,
        default={"width": lambda pre: 4 if pre % 4 == 0 else 1},
        rules=(Rule("rows of whole groups", lambda pre, width: pre % width == 0),),
    )


def updated(w: AnyArray, apart: AnyArray, taking_part: AnyArray, axes: Mapping[str, Any], xp: ArrayModule) -> AnyArray:
    """For NumPy, CuPy and PyTorch alike; an exponential that is not used may not overflow."""
    rise = axes["a_plus"] * xp.exp(-xp.where(apart > 0, apart, 0.0) / axes["tau_plus"])
    fall = axes["a_minus"] * xp.exp(xp.where(apart < 0, apart, 0.0) / axes["tau_minus"])
    if axes["bound"] == "soft":
        rise, fall = rise * (axes["high"] - w), fall * (w - axes["low"])
    change = xp.where(apart > 0, rise, xp.where(apart < 0, -fall, 0.0))
    return xp.where(taking_part, xp.clip(w + axes["eta"] * change, axes["low"], axes["high"]), w)


def step(
    w: AnyArray,
    post_time: AnyArray,
    post_spiked: AnyArray,
    pre_time: AnyArray,
    pre_spiked: AnyArray,
    axes: Mapping[str, Any],
    xp: ArrayModule,
) -> AnyArray:
    taking_part = (post_spiked[:, None] > 0) & (pre_spiked[None] > 0)
    return updated(w, post_time[:, None] - pre_time[None], taking_part, axes, xp)


def reference(
    w: AnyArray,
    post_time: AnyArray,
    post_spiked: AnyArray,
    pre_time: AnyArray,
    pre_spiked: AnyArray,
    a_plus: float,
    a_minus: float,
    tau_plus: float,
    tau_minus: float,
    eta: float,
    low: float,
    high: float,
    bound: str,
    xp: ArrayModule,
) -> AnyArray:  # fmt: skip
    axes = {"a_plus": a_plus, "a_minus": a_minus, "tau_plus": tau_plus, "tau_minus": tau_minus, "eta": eta}
    axes |= {"low": low, "high": high, "bound": bound}
    return step(w, post_time, post_spiked, pre_time, pre_spiked, axes, xp)


def torch_step(
    torch: ModuleType,
    w: AnyArray,
    post_time: AnyArray,
    post_spiked: AnyArray,
    pre_time: AnyArray,
    pre_spiked: AnyArray,
    a_plus: float,
    a_minus: float,
    tau_plus: float,
    tau_minus: float,
    eta: float,
    low: float,
    high: float,
    bound: str,
) -> Any:  # fmt: skip
    return reference(w, post_time, post_spiked, pre_time, pre_spiked, a_plus, a_minus, tau_plus, tau_minus, eta, low,
                     high, bound, torch)  # fmt: skip


HARD = {"a_plus": 0.01, "a_minus": 0.012, "tau_plus": 20.0, "tau_minus": 20.0, "eta": 1.0, "low": 0.0, "high": 1.0,
        "active": 1.0, "bound": "hard"}  # fmt: skip
pairs = Golden(
    Workload(post=4, pre=4, eta=0.5, a_plus=0.2, a_minus=0.4, tau_plus=10.0, tau_minus=5.0),
    inputs={
        "w": [[0.5] * 4, [0.95] * 4, [2.0] * 4, [0.5, 0.1, np.nan, 0.5]],
        "post_time": [10, 10, 10, np.inf],
        "post_spiked": [1, 1, 0, 1],
        "pre_time": [10, 0, 20, 1e9],
        "pre_spiked": [1, 1, 1, 1],
    },
    expected={
        "w": [
            [0.5, 0.5 + 0.1 * math.exp(-1), 0.5 - 0.2 * math.exp(-2), 0.5],
            [0.95, 0.95 + 0.1 * math.exp(-1), 0.95 - 0.2 * math.exp(-2), 0.95],
            [2.0, 2.0, 2.0, 2.0],
            [0.5, 0.1, np.nan, 0.5],
        ]
    },
    source="calculated: D = 0, 10, -10 and far apart; a neuron without a spike keeps even weights out of bounds",
)
flags = Golden(
    Workload(post=2, pre=4), {
        "w": [[5.0, 5.0, 5.0, 5.0], [-5.0, -5.0, -5.0, -5.0]], "post_time": 1.0, "post_spiked": [1, 1],
        "pre_time": 0.0, "pre_spiked": [0, 1, 0, 1],
    },
    {"w": [[5, 1, 5, 1], [-5, 0, -5, 0]]}, source="pairs that take part are clipped, others are not", tolerance=exact(),
)  # fmt: skip

spec = KernelSpec(
    entry="stdp_update<false, 4, 4>",
    arguments=(
        InOut("w", "post pre", fill=uniform(0, 1)), In("post_time", "post", fill=TIME),
        In("post_spiked", "post", dtype="uint8", fill=SPIKED), In("pre_time", "pre", fill=TIME),
        In("pre_spiked", "pre", dtype="uint8", fill=SPIKED), Size("post"), Size("pre"), Scalar("rise"), Scalar("fall"),
        Scalar("rise_speed"), Scalar("fall_speed"), Scalar("low"), Scalar("high"),
    ),
    parameters=HARD,
    derived={
        "rise": lambda eta, a_plus: eta * a_plus,
        "fall": lambda eta, a_minus: eta * a_minus,
        "rise_speed": lambda tau_plus: -math.log2(math.e) / tau_plus,
        "fall_speed": lambda tau_minus: -math.log2(math.e) / tau_minus,
    },
    rules=(
        Rule("tau_plus > 0 and tau_minus > 0", lambda tau_plus, tau_minus: tau_plus > 0 and tau_minus > 0),
        Rule("low <= high", lambda low, high: low <= high),
        Rule("bound to be hard or soft", lambda bound: bound in ("hard", "soft")),
    ),
    launch=launch,
    tune=groups(4, 2, 8, 16),
    reference=reference,
    tolerance=elementwise(),
    peers={"torch": torch_step},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda post, pre: 5 * post * pre,
    workloads={
        "S0": Workload(post=1000, pre=1000),
        "S1": Workload(post=8192, pre=8192),
        "S2": Workload(post=16_384, pre=16_384),
    },
    edges=(
        *(Workload(post=p, pre=q) for p, q in ((0, 5), (5, 0), (1, 1), (3, 1028), (2, 257), (7, 36))),
        *(Workload(post=37, pre=q, active=0.3, bound=b) for q in (36, 41) for b in ("hard", "soft")),
        Workload(post=9, pre=12, active=0.0),
        Workload(post=9, pre=12, tau_plus=1e-3, tau_minus=1e-3),
        Workload(post=9, pre=12, low=-1.0, high=0.5, eta=10.0),
    ),
    golden=(pairs, flags),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "soft": Variant(
            "changes shrink with what is left below or above the weight",
            parameters={**HARD, "bound": "soft"}, edges=(), golden=(), only_labels=("S0", "S1"),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "compat": Variant(
            "the older form: one rate and one time constant for both signs, weights from -1 to 1",
            parameters={**HARD, "a_minus": HARD["a_plus"], "low": -1.0}, edges=(), golden=(), only_labels=("S0",),
            budgets=(),
        ),
        "sparse": Variant(
            "a tenth of the neurons have spiked",
            entry="stdp_update_sparse<false, 4, 8>", launch=launch_sparse, tune=groups(8, 2, 4, 16),
            parameters={**HARD, "active": 0.1}, only_labels=("S1",), budgets=(),
            bytes_moved=lambda post, pre, active: int(active * 8 * post * pre) + 5 * (post + pre),
        ),
    },
)  # fmt: skip
