"""Delay embedding E[i, d] = x[i + d tau] of a series, m samples in a row: oldest first, or newest first on demand.

A strided view holds the same numbers, moves nothing and is no peer of a copy; where a view will do it is right.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Launch, Out, Rule, Scalar, Size, Workload, exact
from prism_bench.spec import AnyArray, ArrayModule

# Memory-bound: nine tenths of the traffic is writing. Instruction issue is close to its limit too.


def launch(count: int) -> Launch:
    return Launch(grid=-(-count // 1024), block=128)


def reference(x: AnyArray, m: int, tau: int, order: str, xp: ArrayModule) -> AnyArray:
    rows = len(x) - (m - 1) * tau
    columns = [x[d * tau : d * tau + rows] for d in range(m)]
    return xp.stack(columns if order == "oldest_first" else columns[::-1], axis=1)


def torch_view(torch: ModuleType, x: AnyArray, m: int, tau: int, order: str) -> Any:
    view = x.as_strided((len(x) - (m - 1) * tau, m), (1, tau))
    return view if order == "oldest_first" else view.flip(1)


def torch_copy(torch: ModuleType, x: AnyArray, m: int, tau: int, order: str) -> Any:
    return torch_view(torch, x, m, tau, order).contiguous()


def cupy_copy(cupy: ModuleType, x: AnyArray, m: int, tau: int, order: str) -> Any:
    step = x.strides[0]
    view = cupy.lib.stride_tricks.as_strided(x, (len(x) - (m - 1) * tau, m), (step, tau * step))
    return cupy.ascontiguousarray(view if order == "oldest_first" else view[:, ::-1])


spec = KernelSpec(
    entry="time_delayed_embedding",
    arguments=(
        In("x", "n"), Out("embedded", "rows m"), Size("count", "int64"), Size("first", "int64"), Size("step", "int64"),
        Size("m"), Scalar("reciprocal", "uint64"),
    ),
    parameters={"tau": 1, "order": "oldest_first"},
    derived={
        "rows": lambda n, m, tau: max(0, n - (m - 1) * tau),
        "count": lambda rows, m: rows * m,
        "first": lambda m, tau, order: 0 if order == "oldest_first" else (m - 1) * tau,
        "step": lambda tau, order: tau if order == "oldest_first" else -tau,
        "reciprocal": lambda m: 2**64 // m + 1 if m > 1 else 0,
    },
    rules=(
        Rule("m >= 1", lambda m: m >= 1),
        Rule("tau >= 1", lambda tau: tau >= 1),
        Rule("(m - 1) tau < n, so that one row is complete", lambda n, m, tau: (m - 1) * tau < n),
        Rule("order to be oldest_first or newest_first", lambda order: order in ("oldest_first", "newest_first")),
    ),
    launch=launch,
    reference=reference,
    tolerance=exact(),
    peers={"torch": torch_copy, "cupy": cupy_copy},
    looked_at={"cub": "a permuting iterator would read the series as the kernel does; no algorithm makes it"},
    workloads={"S0": Workload(n=500, m=3), "S1": Workload(n=64 << 20, m=8), "S2": Workload(n=256 << 20, m=4)},
    edges=(
        *(Workload(n=n, m=m, tau=tau) for n, m, tau in ((1, 1, 1), (5, 1, 3), (7, 3, 3), (300, 5, 7), (1000, 2, 999))),
        *(Workload(n=400, m=m, tau=3, order="newest_first") for m in (1, 2, 4, 7, 64, 133)),
        Workload(n=1030, m=1000),
    ),
    golden=(
        Golden(
            Workload(n=7, m=3, tau=2), {"x": lambda n: np.arange(n)}, {"embedded": [[0, 2, 4], [1, 3, 5], [2, 4, 6]]},
            source="calculated",
        ),
        Golden(
            Workload(n=7, m=3, tau=2, order="newest_first"), {"x": lambda n: np.arange(n)},
            {"embedded": [[4, 2, 0], [5, 3, 1], [6, 4, 2]]}, source="calculated",
        ),
        Golden(Workload(n=5, m=2), {"x": [1, np.nan, np.inf, -0.0, 1e-45]}, {}, source="copies keep every bit"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
)  # fmt: skip
