"""y = x Phi(x), the Gaussian error linear unit; `approximate="tanh"` is the older closed form, up to 5e-4 away."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Launch, Out, Rule, Size, Variant, Workload, elementwise
from prism_bench.spec import AnyArray, ArrayModule

from ..include.arrays.vector_load import map_tune, spread


def launch_of(entry: str) -> Callable[..., Any]:
    """One group of four floats per thread; blocks of 128 keep more of them waiting for memory than larger ones."""
    return lambda n, block, groups: spread(n, block, groups, entry)


def launch(n: int, approximate: str, block: int, groups: int) -> Launch:
    return launch_of("gelu_tanh" if approximate == "tanh" else "gelu")(n, block, groups)


def reference(x: AnyArray, approximate: str, xp: ArrayModule, special: ModuleType) -> AnyArray:
    """x times the probability of staying below it; clipped below so that -inf gives -0 instead of NaN."""
    x = xp.maximum(x, -1e3)
    if approximate == "tanh":
        return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    return x * special.ndtr(x)


# Memory-bound, except `erfc`: instruction issue limits that.
SPECIAL = {"x": [-np.inf, np.inf, np.nan, -0.0, 0.0, -3e38, 3e38, -14.5, -5.5, -1e-30, 1e-45, 6.0]}
special_values = Golden(Workload(n=12), inputs=SPECIAL, expected={}, source="the limits: -inf gives -0, NaN passes")

spec = KernelSpec(
    entry="gelu",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    parameters={"approximate": "none"},
    rules=(Rule("approximate to be 'none' or 'tanh'", lambda approximate: approximate in ("none", "tanh")),),
    launch=launch,
    tune=map_tune(128),
    reference=reference,
    tolerance=elementwise(ulps=4),
    peers={"torch": lambda torch, x, approximate: torch.nn.functional.gelu(x, approximate=approximate)},
    looked_at={
        "flashinfer": "gelu_and_mul and gelu_tanh_and_mul are gated (two inputs for each output), in 16 bits only",
        "liger": "GEGLU is gated: GELU of one half times the other",
        "nvmath": "GELU is an epilogue of a product, in the tanh form",
        "quack": "GELU is an epilogue of a product, in the tanh form",
    },
    flops=lambda n: 8 * n,
    workloads={"S0": Workload(n=1000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=3), Workload(n=4099), Workload(n=(1 << 21) + 4099)),
    golden=(
        special_values,
        Golden(
            Workload(n=2),
            inputs={"x": [1.0, -1.0]},
            expected={"y": [0.8413447460685429, -0.15865525393145707]},
            source="tables of the normal distribution: Phi(1) = 0.8413447460685429",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "tanh": Variant(
            "the tanh form",
            parameters={"approximate": "tanh"},
            peers={"torch": lambda torch, x, approximate: torch.nn.functional.gelu(x, approximate=approximate)},
            golden=(special_values,),
        ),
        "erfc": Variant(
            "the library's erfcf: to issue its instructions takes longer than memory",
            launch=launch_of("gelu_erfc"),
        ),
        "fast": Variant(
            "the tanh form with the hardware's exponential and division",
            parameters={"approximate": "tanh"},
            launch=launch_of("gelu_fast"),
            tolerance=elementwise(ulps=16, floor=1e-6),
            golden=(special_values,),
        ),
    },
)
