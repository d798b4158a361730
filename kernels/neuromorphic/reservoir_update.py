"""Leaky echo-state reservoir: x' = (1 - a) x + a tanh(W_in u + W x + b), one sequence; `batched` takes many.

Memory-bound by W, which is read once; `batched` at S2 is bound by the FMA rate.
"""

from math import gcd
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
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
    elementwise,
    reduction,
    uniform,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, Array, ArrayModule, Device, Fill, real

from ..include.products.gemm_tile import Whole, on_tiles, tile_rule

WHOLE = "FullRows"
LONG, ROWS = 2048, 4  # neurons from which a block of many threads takes one row alone; rows of a block otherwise
# A spectral radius of about 0.9.
RECURRENT = Fill(
    lambda rng, count, axes: rng.normal(0, 0.9 / max(axes["neurons"], 1) ** 0.5, count),
    "normal(0, 0.9 / sqrt(n))",
    real(),
    runs=ONE_BY_ONE,
)


def launch(neurons: int, inputs: int) -> Launch:
    widths = ", ".join("1" if length % 4 else "4" for length in (neurons, inputs))
    if neurons >= LONG:
        return Launch(grid=neurons, block=512, entry=f"reservoir_update<1, {widths}>")
    return Launch(grid=-(-neurons // ROWS), block=256, entry=f"reservoir_update<{ROWS}, {widths}>")


def launch_batched(samples: int, neurons: int, inputs: int, tile: str, device: Device) -> Launch:
    whole = Whole(gcd(neurons, inputs), (WHOLE,))
    return on_tiles("reservoir_batched<{}>", samples, neurons, tile, device, whole)


def reference(
    x: AnyArray, u: AnyArray, w: AnyArray, w_in: AnyArray, bias: AnyArray, leak: float, xp: ArrayModule
) -> AnyArray:
    """For one sequence and for many, a row each."""
    return (1 - leak) * x + leak * xp.tanh(u @ w_in.T + x @ w.T + bias)


def magnitude(
    x: AnyArray, u: AnyArray, w: AnyArray, w_in: AnyArray, bias: AnyArray, leak: float, xp: ArrayModule
) -> AnyArray:
    """tanh never grows an error of its argument, nor exceeds 1."""
    size = abs(leak) * (xp.abs(u) @ xp.abs(w_in).T + xp.abs(x) @ xp.abs(w).T + xp.abs(bias)) + xp.abs(x) + 1
    return xp.nan_to_num(size, nan=0.0, posinf=1.0)


def retained(x: AnyArray, u: AnyArray, leak: float, xp: ArrayModule) -> AnyArray:
    """What stays of x, off by the rounding of 1 - leak, and nearly cancels u where tanh is steep."""
    steep = 1 - xp.tanh((1 - leak) * x + u) ** 2
    return xp.nan_to_num(steep * xp.abs((1 - leak) * x), nan=0.0, posinf=0.0)


def torch_update(
    torch: ModuleType, x: AnyArray, u: AnyArray, w: AnyArray, w_in: AnyArray, bias: AnyArray, leak: float
) -> Any:
    return (1 - leak) * x + leak * torch.tanh(torch.addmv(torch.addmv(bias, w_in, u), w, x))


def torch_batched(
    torch: ModuleType, x: AnyArray, u: AnyArray, w: AnyArray, w_in: AnyArray, bias: AnyArray, leak: float
) -> Any:
    return (1 - leak) * x + leak * torch.tanh(torch.addmm(torch.addmm(bias, u, w_in.T), x, w.T))


def weights(states: str, signals: str) -> tuple[Array | Scalar, ...]:
    return (
        In("x", states, fill=uniform(-1, 1), domain=real()), In("u", signals),
        In("w", "neurons neurons", fill=RECURRENT), In("w_in", "neurons inputs"),
        In("bias", "neurons", fill=uniform(-0.1, 0.1), domain=real()), Out("x_next", states),
    )  # fmt: skip


leak_rule = Rule("0 <= leak <= 1", lambda leak: 0 <= leak <= 1)

spec = KernelSpec(
    entry="reservoir_update",
    arguments=(*weights("neurons", "inputs"), Size("neurons"), Size("inputs"), Scalar("leak")),
    parameters={"leak": 0.3},
    rules=(leak_rule,),
    launch=launch,
    reference=reference,
    tolerance=reduction(magnitude=magnitude),
    peers={"torch": torch_update},
    looked_at={"cub": "has no product of a matrix and a vector"},
    flops=lambda neurons, inputs: 2 * neurons * (neurons + inputs) + 4 * neurons,
    workloads={"S0": Workload(neurons=1000, inputs=10), "S1": Workload(neurons=16_384, inputs=16)},
    edges=(
        *(Workload(neurons=n, inputs=i) for n, i in ((0, 3), (1, 1), (5, 0), (7, 4), (36, 5), (257, 1030), (1500, 3))),
        *(Workload(neurons=64, inputs=4, leak=leak) for leak in (0.0, 1.0)),
        Workload(neurons=2048, inputs=4),
    ),
    golden=(
        Golden(
            Workload(neurons=2, inputs=1, leak=0.5),
            {"x": [1.0, -1.0], "u": [2.0], "w": [[0.5, 0.5], [1.0, 0.0]], "w_in": [[0.5], [-0.5]], "bias": [0.0, 0.25]},
            {"x_next": [0.5 + 0.5 * np.tanh(1.0), -0.5 + 0.5 * np.tanh(0.25)]},
            source="calculated",
        ),
        Golden(
            Workload(neurons=5, inputs=2),
            {"x": [0, 0, np.inf, 0, 0], "u": 1.0, "w": 1.0, "w_in": [[1, 1]] * 4 + [[np.nan, 0]], "bias": -5.0},
            {}, source="an infinite state saturates the others, a NaN weight stays in its row",
        ),
    ),
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
    variants={
        "batched": Variant(
            "many sequences that share W: a tiled product",
            arguments=(
                *weights("samples neurons", "samples inputs"), Size("samples"), Size("neurons"), Size("inputs"),
                Scalar("leak"),
            ),
            parameters={"leak": 0.3, "tile": "auto"},
            rules=(leak_rule, tile_rule(WHOLE)),
            launch=launch_batched,
            peers={"torch": torch_batched},
            flops=lambda samples, neurons, inputs: samples * (2 * neurons * (neurons + inputs) + 4 * neurons),
            workloads={
                "S0": Workload(samples=16, neurons=256, inputs=10),
                "S2": Workload(samples=1024, neurons=8192, inputs=16),
            },
            edges=(
                *(
                    Workload(samples=s, neurons=n, inputs=i)
                    for s, n, i in ((0, 4, 4), (1, 1, 1), (17, 33, 5), (3, 8, 0))
                ),
                Workload(samples=130, neurons=260, inputs=9, tile="Large"),
                Workload(samples=128, neurons=256, inputs=16, tile="Large"),
                *(
                    Workload(samples=s, neurons=n, inputs=i, tile=WHOLE)
                    for s, n, i in ((128, 256, 0), (128, 256, 16), (256, 512, 80))
                ),
                Workload(samples=129, neurons=131, inputs=3, tile="Medium"),
                Workload(samples=65, neurons=70, inputs=12, tile="Narrow"),
            ),
            golden=(),
            traffic_factor=None,
            budgets=(Budget("peer_ratio", at_least=0.85, label="S2"),),
        ),
        "compat": Variant(
            "the older form: x' = tanh((1 - a) x + u), element by element",
            arguments=(In("x", "neurons"), In("u", "neurons"), Out("x_next", "neurons"), Size("neurons", "int64"),
                       Scalar("leak")),
            launch=lambda neurons: Launch(grid=-(-neurons // 1024), block=256, entry="reservoir_compat"),
            reference=lambda x, u, leak, xp: xp.tanh((1 - leak) * x + u),
            tolerance=elementwise().loosened(terms=2.0**-23, magnitude=retained),
            flops=lambda neurons: 3 * neurons,
            workloads={"S0": Workload(neurons=1000), "S1": Workload(neurons=64 << 20)},
            edges=(Workload(neurons=0), Workload(neurons=1), Workload(neurons=4099)),
            golden=(),
        ),
    },
)  # fmt: skip
