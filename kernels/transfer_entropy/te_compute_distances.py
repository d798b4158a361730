"""All distances of embedded points in the maximum norm, [n, n]: what transfer entropy needs where nothing is fused."""

from types import ModuleType
from typing import Any

from prism_bench import Budget, KernelSpec, Launch, Out, Size, Workload, exact
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..include.neighbours.neighbours import apart
from ..include.neighbours.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    MATRIX_SIZES,
    X_PAST,
    Y_FUTURE,
    Y_PAST,
    as_column,
)
from ..include.sums.row_sums import threads_for
from ..peers import cuvs_peers

# The matrix is written once; writing it and issuing the instructions take similar times.
ROWS = 16
MOST_OF_CDIST = 4096
JOINED = "the coordinates are joined beforehand"


def launch(n: int, dx: int, dy: int) -> Launch:
    store = 4 if n % 4 == 0 else 1
    rows = ROWS if n > 1024 else 2  # of a thread; few points have blocks for every SM all the same
    entry = f"te_compute_distances<{dx}, {dy}, {rows}, {store}>"
    return Launch((-(-n // 1024), -(-n // rows)), threads_for(n, 4, 256), entry=entry)


def reference(x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, xp: ArrayModule) -> AnyArray:
    """From float32 differences, which are what neighbours are compared by."""
    joint = xp.concatenate((x_past, as_column(y_future), y_past), axis=1)
    return apart(joint, slice(0, len(joint)), xp)


def torch_distances(torch: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray) -> Any:
    """A coordinate at a time: one kernel where it is compiled."""
    most = None
    for column in (*x_past.unbind(1), y_future, *y_past.unbind(1)):
        between = (column[:, None] - column[None]).abs()
        most = between if most is None else torch.maximum(most, between)
    place = torch.arange(len(y_future), device=y_future.device)
    return torch.where(place[:, None] == place[None], float("inf"), most)


def torch_cdist(torch: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray) -> Any:
    """PyTorch's own distances; where points are many they would take most of a run's time."""
    if len(y_future) > MOST_OF_CDIST:
        raise ValueError(f"torch.cdist takes a second a call, or near it, for more than {MOST_OF_CDIST} points")
    joint = torch.cat((x_past, y_future[:, None], y_past), dim=1)
    return torch.cdist(joint, joint, p=float("inf")).fill_diagonal_(float("inf"))


def cuvs_distances(cuvs: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray) -> Any:
    return cuvs_peers.pairwise_distances(cuvs, cuvs_peers.joined(x_past, y_future, y_past))


spec = KernelSpec(
    entry="te_compute_distances<2, 2, 16, 4>",
    arguments=(X_PAST, Y_PAST, Y_FUTURE, Out("distances", "n n"), Size("n")),
    parameters=EMBEDDING,
    rules=(DIMENSIONS,),
    launch=launch,
    reference=reference,
    tolerance=exact(),
    peers={
        "torch": torch_distances,
        "cuvs": Peer(cuvs_distances, prepares=True, work=JOINED),
        "torch_cdist": Peer(torch_cdist, poor="torch.cdist has a slow way for the maximum norm"),
    },
    flops=lambda n, dx, dy: 2 * n * n * (1 + dx + dy),
    workloads=MATRIX_SIZES,
    edges=(*EDGES, Workload(n=36)),
    budgets=tuple(Budget("bandwidth_share", at_least=0.6, label=label) for label in ("S1", "S2")),
)
