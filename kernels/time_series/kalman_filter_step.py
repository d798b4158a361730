"""Predict and update many Kalman filters: S = H P- H^T + R by Cholesky, covariance in Joseph's form, kept symmetric.

status: 0; -1 where a measurement is NaN, which leaves the prediction; else the pivot at which S was not positive
definite: state and covariance are NaN then, nothing is clamped. `full` adds a control term B u and hands y and S out.
L1 and shared memory are the bottleneck, not DRAM and not the FMA rate.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Size,
    Variant,
    Workload,
    absolute,
    exact,
    normwise,
)
from prism_bench.spec import AnyArray, Array, ArrayModule, Device, Fill, Runs, as_drawn, real

MOST_SHARED = 227 * 1024
ALONE = 16  # states and measurements up to which some lanes of a warp do


def room(n: int, m: int) -> int:
    """Floats of shared memory that a filter of a block takes; rows are padded as in the kernel."""
    wide, narrow, square = -(-n // 4) * 4, -(-m // 4) * 4, max(32, -(-m // 4) * 4)
    matrices = 3 * wide * (wide + 4) + 3 * narrow * (wide + 4) + 2 * wide * (narrow + 4) + square * (square + 4)
    return matrices + wide + 2 * narrow


def power(size: int, least: int) -> int:
    """The power of two from `least` on that is not below `size`."""
    return max(least, 1 << (size - 1).bit_length())


ARRAYS = ("x", "p", "z", "f", "h", "q", "r")
RESULTS = ("x_next", "p_next", "likelihood")
SIZES = ("status", "filters", "n", "m", "controls", "each", "keep")


def launch_with(control: tuple[str, str], kept: tuple[str, str]) -> Callable[..., Any]:
    """Without a control term or kept innovations other arrays take the place of theirs and are not touched."""

    def launch(filters: int, n: int, m: int, each: int, room: int, device: Device) -> Launch:
        names = (*ARRAYS, *control, *RESULTS, *kept, *SIZES)
        if max(n, m) > ALONE:
            return Launch(filters, 256, shared=4 * room, entry="kalman_block", arguments=(*names, "room"))
        lanes, measured = power(max(n, m), 4), power(m, 4)
        flags = (bool(each), (n, m) == (lanes, measured))
        entry = f"kalman_lanes<{lanes}, {measured}, {', '.join(str(flag).lower() for flag in flags)}>"
        return Launch(min(-(-filters * lanes // 128), 4 * device.sm_count), 128, entry=entry, arguments=names)

    return launch


FINITE = replace(real(), finite=True)  # a measurement may be missing (NaN), but there is no infinite innovation
CONTROLLED = replace(FINITE, most=2.0**30)  # an innovation holds products of two of them, a likelihood its square


def definite(size: str, scale: float) -> Fill:
    """Symmetric positive definite matrices, as far as the block is not rotated.

    A larger array holds small values, whose symmetric part a process noise near 1 outweighs.
    """

    def draw(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
        n = axes[size]
        if count == 0 or count % (n * n) or count == 1 << 20:
            return rng.normal(0, 0.05 / n**0.5, count)
        root = rng.normal(0, 0.3 / n**0.5, (count // (n * n), n, n))
        return (scale * (root @ root.transpose(0, 2, 1) + np.eye(n))).reshape(-1)

    return Fill(draw, f"{scale} (A A^T + I)", as_drawn(), runs=lambda axes: whole_matrices(axes[size]))


def whole_matrices(n: int) -> Runs:
    elements = max(1, n * n)
    return Runs(elements, elements)


def transitions(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
    """Near the identity."""
    n = max(axes["n"], 1)
    return rng.normal(0, 0.1 / n**0.5, count) + (np.arange(count) % (n * n) % (n + 1) == 0)


def transpose(a: AnyArray) -> AnyArray:
    return a.swapaxes(-1, -2)


def reference(
    x: AnyArray, p: AnyArray, z: AnyArray, f: AnyArray, h: AnyArray, q: AnyArray, r: AnyArray, n: int, m: int,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:  # fmt: skip
    return innovated(x, p, z, f, h, q, r, 0.0, n, m, xp)[:4]


def reference_full(
    x: AnyArray, p: AnyArray, z: AnyArray, f: AnyArray, h: AnyArray, q: AnyArray, r: AnyArray, b: AnyArray, u: AnyArray,
    n: int, m: int, xp: ArrayModule,
) -> tuple[AnyArray, ...]:  # fmt: skip
    return innovated(x, p, z, f, h, q, r, (b @ u[..., None])[..., 0], n, m, xp)


def innovated(
    x: AnyArray, p: AnyArray, z: AnyArray, f: AnyArray, h: AnyArray, q: AnyArray, r: AnyArray, control: AnyArray,
    n: int, m: int, xp: ArrayModule,
) -> tuple[AnyArray, ...]:  # fmt: skip
    """By the inverse of S and the whole of numpy.linalg; what failed or is missing is put in afterwards."""
    p, r = (p + transpose(p)) / 2, (r + transpose(r)) / 2
    predicted = (f @ x[..., None])[..., 0] + control
    covariance = f @ p @ transpose(f) + (q + transpose(q)) / 2
    missing = xp.isnan(z).any(axis=1)
    innovation = z - (h @ predicted[..., None])[..., 0]
    y = xp.where(missing[:, None], 0.0, innovation)
    deviation = h @ covariance @ transpose(h) + r
    minors = [xp.linalg.det(deviation[:, : a + 1, : a + 1]) for a in range(m)]
    lost = xp.stack([~(minor > 1e-12) for minor in minors], axis=1)
    failed = lost.any(axis=1) & ~missing
    s = xp.where(failed[:, None, None], xp.eye(m), deviation)
    gain = transpose(xp.linalg.solve(s, h @ covariance))
    left = xp.eye(n) - gain @ h
    joseph = left @ covariance @ transpose(left) + gain @ r @ transpose(gain)
    energy = (y[:, None] @ xp.linalg.solve(s, y[..., None]))[:, 0, 0]
    likelihood = -0.5 * (energy + xp.log(xp.abs(xp.linalg.det(s))) + m * math.log(2 * math.pi))
    state = predicted + (gain @ y[..., None])[..., 0]
    state, joseph = xp.where(missing[:, None], predicted, state), xp.where(missing[:, None, None], covariance, joseph)
    likelihood = xp.where(missing, 0.0, xp.where(failed, xp.nan, likelihood))
    status = xp.where(missing, -1, xp.where(failed, lost.argmax(axis=1) + 1, 0)).astype("int32")
    bad = failed[:, None]
    state, joseph = xp.where(bad, xp.nan, state), xp.where(bad[..., None], xp.nan, joseph)
    return state, joseph, likelihood, status, innovation, deviation


def torch_step(
    torch: ModuleType, x: AnyArray, p: AnyArray, z: AnyArray, f: AnyArray, h: AnyArray, q: AnyArray, r: AnyArray
) -> Any:
    """Batched products and cuSOLVER's Cholesky, without looking for failures."""
    predicted = (f @ x[..., None])[..., 0]
    covariance = f @ p @ f.mT + q
    covariance = (covariance + covariance.mT) / 2
    y = z - (h @ predicted[..., None])[..., 0]
    root = torch.linalg.cholesky_ex(h @ covariance @ h.mT + r).L
    below = torch.linalg.solve_triangular(root, h @ covariance, upper=False)
    gain = torch.linalg.solve_triangular(root.mT, below, upper=True).mT
    left = torch.eye(x.shape[1], device=x.device) - gain @ h
    joseph = left @ covariance @ left.mT + gain @ r @ gain.mT
    energy = torch.linalg.solve_triangular(root, y[..., None], upper=False).square().sum((1, 2))
    logs = 2 * torch.log(torch.diagonal(root, dim1=1, dim2=2)).sum(1)
    likelihood = -0.5 * (energy + logs + z.shape[1] * math.log(2 * math.pi))
    return predicted + (gain @ y[..., None])[..., 0], joseph, likelihood, torch.zeros_like(likelihood).int()


def arguments(
    models: str, control: tuple[Array | Scalar, ...] = (), kept: tuple[Array | Scalar, ...] = ()
) -> tuple[Any, ...]:
    return (
        In("x", "filters n", domain=FINITE), In("p", "filters n n", fill=definite("n", 1.0)),
        In("z", "filters m", domain=FINITE),
        In("f", f"{models} n n", fill=Fill(transitions, "near the identity", as_drawn())),
        In("h", f"{models} m n", domain=as_drawn()), In("q", f"{models} n n", fill=definite("n", 1.0)),
        In("r", f"{models} m m", fill=definite("m", 0.5)), *control, Out("x_next", "filters n"),
        Out("p_next", "filters n n"), Out("likelihood", "filters"), Out("status", "filters", dtype="int32"), *kept,
        Size("filters"), Size("n"), Size("m"), Size("controls"), Size("each"), Size("keep"), Size("room"),
    )  # fmt: skip


def flops(filters: int, n: int, m: int) -> int:
    return filters * (8 * n**3 + 8 * m * n * n + 6 * m * m * n + m**3 // 3)


scalar = Golden(
    Workload(filters=4, n=1, m=1),
    inputs={
        "x": [[1.0], [1.0], [1.0], [2.0]], "p": [[[3.0]], [[3.0]], [[-5.0]], [[3.0]]],
        "z": [[4.0], [np.nan], [4.0], [2.0]], "f": [[[1.0]]], "h": [[[1.0]]], "q": [[[1.0]]], "r": [[[4.0]]],
    },
    expected={
        "x_next": [[2.5], [1.0], [np.nan], [2.0]], "p_next": [[[2.0]], [[4.0]], [[np.nan]], [[2.0]]],
        "status": [0, -1, 1, 0],
    },
    source="calculated: P- = 4, S = 8, K = 1/2; a missing measurement; S = 0 is reported",
)  # fmt: skip
twins = Golden(
    Workload(filters=1, n=2, m=2),
    inputs={
        "x": 1.0, "p": [np.eye(2)], "z": 1.0, "f": [np.eye(2)], "h": [[[1.0, 0.0], [1.0, 0.0]]], "q": 0.0, "r": 0.0,
    },
    expected={"x_next": np.nan, "p_next": np.nan, "status": [2]},
    source="one sensor twice without noise: the second pivot is 0",
)  # fmt: skip
decades = Golden(
    Workload(filters=2, n=4, m=2),
    inputs={
        "x": 1.0, "p": [np.diag([1e6, 1e2, 1e-2, 1e-6])] * 2, "z": [[1.5, 0.5], [3.0, -1.0]], "f": [np.eye(4)],
        "h": [[[1.0, 0, 0, 0], [0, 1.0, 1.0, 0]]], "q": [np.diag([1e2, 1.0, 1e-4, 1e-8])],
        "r": [np.diag([1e-2, 1.0])],
    },
    expected={},
    source="a covariance over twelve decades",
)  # fmt: skip

TOLERANCE = {
    "x_next": normwise(1e-5), "p_next": normwise(1e-4), "likelihood": normwise(1e-5), "status": exact(),
    "innovation": normwise(1e-5), "deviation": normwise(1e-5),
}  # fmt: skip
spec = KernelSpec(
    entry="kalman_filter_step",
    arguments=arguments("1"),
    parameters={"each": 0, "controls": 0, "keep": 0},
    derived={"room": room},
    rules=(
        Rule("n >= 1 and m >= 1", lambda n, m: n >= 1 and m >= 1),
        Rule("n and m small enough for shared memory", lambda n, m: 4 * room(n, m) <= MOST_SHARED),
    ),
    launch=launch_with(("q", "z"), ("likelihood", "likelihood")),
    reference=reference,
    tolerance=TOLERANCE,
    peers={"torch": torch_step},
    looked_at={"cub": "has no products of small matrices"},
    peer_tolerance=absolute(1e-2),
    flops=flops,
    traffic_factor=8.0,
    workloads={
        "S0": Workload(filters=1, n=16, m=8),
        "S1": Workload(filters=262_144, n=16, m=8),
        "S2": Workload(filters=16_384, n=64, m=32),
    },
    edges=(
        *(Workload(filters=b, n=n, m=m) for b, n, m in ((0, 4, 4), (1, 4, 4), (3, 1, 1), (7, 5, 3), (6, 3, 5))),
        Workload(filters=9, n=16, m=8), Workload(filters=5, n=16, m=16), Workload(filters=2, n=18, m=7),
        Workload(filters=1, n=33, m=20), Workload(filters=1, n=36, m=33), Workload(filters=150, n=10, m=3),
    ),
    golden=(scalar, twins, decades),
    variants={
        "each": Variant(
            "every filter has its own F, H, Q and R", arguments=arguments("filters"),
            parameters={"each": 1, "controls": 0, "keep": 0},
            workloads={"S0": Workload(filters=1, n=16, m=8), "S1": Workload(filters=4000, n=16, m=8)},
            edges=(*(Workload(filters=b, n=n, m=m) for b, n, m in ((5, 6, 3), (2, 20, 8), (9, 16, 8))),), golden=(),
        ),
        "full": Variant(
            "with a control term B u; the innovation y and its covariance S are handed out",
            arguments=arguments("1", (In("b", "1 n controls", domain=CONTROLLED),
                                      In("u", "filters controls", domain=CONTROLLED)),
                                (Out("innovation", "filters m"), Out("deviation", "filters m m"))),
            parameters={"each": 0, "controls": 3, "keep": 1},
            launch=launch_with(("b", "u"), ("innovation", "deviation")),
            reference=reference_full,
            edges=(
                Workload(filters=5, n=6, m=3), Workload(filters=3, n=20, m=8),
                Workload(filters=2, n=4, m=4, controls=1), Workload(filters=2, n=3, m=2, controls=0),
            ),
            golden=(
                Golden(
                    Workload(filters=2, n=1, m=1, controls=2),
                    {"x": 1.0, "p": 3.0, "z": [[4.0], [np.nan]], "f": 1.0, "h": 1.0, "q": 1.0, "r": 4.0,
                     "b": [[[0.5, 0.25]]], "u": [[2.0, 4.0], [0.0, 0.0]]},
                    {"x_next": [[3.5], [1.0]], "innovation": [[1.0], [np.nan]], "deviation": 8.0, "status": [0, -1]},
                    source="calculated: x- = 1 + 2, y = 1, S = 8, K = 1/2; a missing measurement",
                ),
            ),
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip
