"""All distances of embedded points in the maximum norm, [n, n]: what transfer entropy needs where nothing is fused."""

from types import ModuleType
from typing import Any

from prism_bench import Budget, KernelSpec, Launch, Out, Size, Workload, exact
from prism_bench.array_types import AnyArray, ArrayModule

from ..include.neighbours import apart
from ..include.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    MATRIX_SIZES,
    X_PAST,
    Y_FUTURE,
    Y_PAST,
    as_column,
)

# The matrix is written once; writing it and issuing the instructions take similar times.
ROWS = 16


def launch(n: int, dx: int, dy: int) -> Launch:
    store = 4 if n % 4 == 0 else 1
    entry = f"te_compute_distances<{dx}, {dy}, {ROWS}, {store}>"
    return Launch((-(-n // 1024), -(-n // ROWS)), 256, entry=entry)


def reference(x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, xp: ArrayModule) -> AnyArray:
    """From float32 differences, which are what neighbours are compared by."""
    joint = xp.concatenate((x_past, as_column(y_future), y_past), axis=1)
    return apart(joint, slice(0, len(joint)), xp)


def torch_distances(torch: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray) -> Any:
    joint = torch.cat((x_past, y_future[:, None], y_past), dim=1)
    return torch.cdist(joint, joint, p=float("inf")).fill_diagonal_(float("inf"))


spec = KernelSpec(
    entry="te_compute_distances<2, 2, 16, 4>",
    arguments=(X_PAST, Y_PAST, Y_FUTURE, Out("distances", "n n"), Size("n")),
    parameters=EMBEDDING,
    rules=(DIMENSIONS,),
    launch=launch,
    reference=reference,
    tolerance=exact(),
    peers={"torch": torch_distances},
    flops=lambda n, dx, dy: 2 * n * n * (1 + dx + dy),
    workloads=MATRIX_SIZES,
    edges=(*EDGES, Workload(n=36)),
    budgets=tuple(Budget("bandwidth_share", at_least=0.6, label=label) for label in ("S1", "S2")),
)
