"""r = alpha A x + beta b and a reduction of r (its sum, the sum of its squares, its largest) in one launch."""

from types import ModuleType
from typing import Any

from prism_bench import Golden, Workload
from prism_bench.extensions.fusion import ByHand, FusionProgram, Input, Map, Reduce, RowDots, fuse, names
from prism_bench.spec import AnyArray

# Memory-bound: A is read once; one vector leaves nothing for tensor cores.
b, alpha, beta, dots, r = names("b alpha beta dots r")


def torch_gemv_sum(torch: ModuleType, a: AnyArray, x: AnyArray, b: AnyArray, alpha: float, beta: AnyArray) -> Any:
    r = torch.addmv(b, a, x, alpha=alpha, beta=beta)
    return r, r.sum()


program = FusionProgram(
    inputs=(Input("a", "rows cols"), Input("x", "cols"), Input("b", "rows")),
    stages=(
        RowDots("dots", "a", "x"),
        Map("r", alpha * dots + beta * b),
        Reduce("s", ("sum", "squares", "max"), r),
    ),
    outputs=("r", "s"),
    scalars={"alpha": 1.0, "beta": 1.0},
    workloads={
        "S0": Workload(rows=1000, cols=1000),
        "S1": Workload(rows=16_384, cols=16_384),
        "S2": Workload(rows=32_768, cols=32_768),
    },
    edges=(
        *(Workload(rows=r, cols=c) for r, c in ((0, 4), (1, 1), (5, 0), (7, 3), (10, 1000), (9, 1025), (6, 2052))),
        Workload(rows=3, cols=8200),
        *(Workload(rows=r, cols=36, alpha=-0.5, beta=2.0, reduce=how) for r in (9, 77) for how in ("squares", "max")),
        Workload(rows=6, cols=1500, beta=0.0, reduce="max"),
    ),
    golden=(
        Golden(
            Workload(rows=2, cols=2),
            {"a": [[1, 2], [3, 4]], "x": [1, 1], "b": [10, 20]},
            {"r": [13, 27], "s": 40},
            source="calculated",
        ),
        Golden(
            Workload(rows=3, cols=1, reduce="max"),
            {"a": [[1], [float("nan")], [2]], "x": 1.0, "b": 0.0},
            {"r": [1, float("nan"), 2], "s": float("nan")},
            source="a NaN is the largest",
        ),
    ),
    peers={"torch": torch_gemv_sum},
    by_hand=ByHand("fused_gemv_operations<{}>"),
    replaces=("gemv", "axpby", "reduce_sum"),
)
spec = fuse(program, __name__)
