"""Transfer entropy by nearest neighbours as a chain: distances, radii, three counts, terms, their mean.

The kernel itself is the chain's baseline, seven launches with an [n, n] matrix between them; its variants are stages
of fusion: two launches, and one. `ksg_transfer_entropy` is the form for many points.
"""

from functools import reduce
from types import ModuleType
from typing import Any

from prism_bench import Chain, Golden, KernelSpec, Launch, Out, Scalar, Scratch, Size, Variant, Workload, absolute
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

from ..include.arrays.map_arrays import MOST_BLOCKS, sum_launch
from ..include.neighbours.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    NEIGHBOURS,
    X_PAST,
    Y_FUTURE,
    Y_PAST,
    by_warps,
    counting,
    own_points,
    radii,
    terms_within,
)
from ..peers.xla_peers import by_xla

POINTS = ("x_past", "y_past", "y_future")
MOST_POINTS = 65_536  # four float32 matrices of 17 GB
FUSED_SIZES = {"S0": Workload(n=200), "S1": Workload(n=16_384), "S2": Workload(n=131_072, dx=3, dy=3)}


def baseline(n: int, dx: int, dy: int, k: int, device: Device) -> tuple[Launch, ...]:
    """Every step in a separate launch."""
    store = 4 if n % 4 == 0 else 1
    matrix = Launch((-(-n // 1024), -(-n // 16)), 256, entry=f"te_compute_distances<{dx}, {dy}, 16, {store}>",
                    arguments=(*POINTS, "distances", "n"))  # fmt: skip
    pairs = (("y", (dy,), ("y_future", "y_past")), ("xz", (dx, dy), ("x_past", "y_past")), ("z", (dy,), ("y_past",)))
    counts = (
        counting(f"te_count_neighbors_{space}", sizes, n, device, (*given, "eps", f"n_{space}", "n"))
        for space, sizes, given in pairs
    )
    return (
        matrix,
        by_warps(f"te_find_kth_distance<{k}>", n, 1, ("distances", "eps", "n")),
        *counts,
        Launch(-(-n // 256), 256, entry="te_compute", arguments=("n_y", "n_xz", "n_z", "local", "n", "k")),
        sum_launch("te_reduce_sum", n, device, ("local", "mean", "by_block", "arrived", "wide_n")),
    )


def partial(n: int, dx: int, dy: int, k: int, device: Device) -> tuple[Launch, ...]:
    own = own_points(n, device)
    last = (*POINTS, "eps", "mean", "by_block", "arrived", "n", "k")
    return (
        by_warps(f"fused_distance_kth<{dx}, {dy}, {k}, {own}>", n, own, (*POINTS, "eps", "n")),
        by_warps(f"fused_te_reduction<{dx}, {dy}, {own}>", n, own, last),
    )


def full(n: int, dx: int, dy: int, k: int, device: Device) -> Launch:
    own = own_points(n, device)
    entry = f"fused_transfer_entropy<{dx}, {dy}, {k}, {own}>"
    return by_warps(entry, n, own, (*POINTS, "mean", "by_block", "arrived", "n"))


def reference(
    x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, k: int, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    return terms_within(x_past, y_past, y_future, radii(x_past, y_past, y_future, k, xp), k, xp, special).mean()


def require_room(n: int) -> None:
    """Raise a ValueError where matrices of all distances do not fit into memory."""
    if n > MOST_POINTS:
        raise ValueError(f"matrices of all distances of more than {MOST_POINTS} points do not fit into memory")


def torch_chain(torch: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, k: int) -> Any:
    """The same with PyTorch's calls, by matrices of distances in all four spaces."""
    require_room(len(y_future))
    x, z = most_apart(torch, x_past), most_apart(torch, y_past)
    future, xz = most_apart(torch, y_future[:, None]), torch.maximum(x, z)
    y, everything = torch.maximum(future, z), torch.maximum(future, xz)
    own = torch.eye(len(y_future), dtype=torch.bool, device="cuda")
    eps = everything.masked_fill(own, float("inf")).kthvalue(k, dim=1, keepdim=True).values
    psi = [torch.special.digamma(((d < eps) & ~own).sum(1).double() + 1) for d in (y, xz, z)]
    return (torch.special.digamma(torch.full((1,), k, dtype=torch.float64, device="cuda"))
            + (psi[2] - psi[0] - psi[1]).mean()).float()  # fmt: skip


def jax_chain(jax: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, k: int) -> Any:
    """The same for XLA to fuse."""
    require_room(len(y_future))
    numpy = jax.numpy

    def apart(points: Any) -> Any:
        each = [abs(column[:, None] - column[None]) for column in points.T]
        return reduce(numpy.maximum, each)

    x, z, future = apart(x_past), apart(y_past), apart(y_future[:, None])
    own, xz, y = numpy.eye(len(y_future), dtype=bool), numpy.maximum(x, z), numpy.maximum(future, z)
    everything = numpy.where(own, numpy.inf, numpy.maximum(future, xz))
    eps = -jax.lax.top_k(-everything, k)[0][:, k - 1 :]
    psi = [jax.scipy.special.digamma(((d < eps) & ~own).sum(1).astype("float32") + 1) for d in (y, xz, z)]
    return jax.scipy.special.digamma(numpy.float32(k)) + (psi[2] - psi[0] - psi[1]).mean()


def most_apart(torch: ModuleType, points: AnyArray) -> Any:
    """The maximum norm between all points, a coordinate at a time: cdist has other roundings."""
    found = None
    for column in points.unbind(1):
        apart = (column[:, None] - column[None]).abs_()
        found = apart if found is None else torch.maximum(found, apart)
    return found


def arguments(*between: Any) -> tuple[Any, ...]:
    work = (Scratch("by_block", "blocks", "float64"), Scratch("arrived", "1", "uint32"))
    return (
        X_PAST,
        Y_PAST,
        Y_FUTURE,
        Out("mean", "1"),
        *between,
        *work,
        Size("n"),
        Scalar("wide_n", "int64"),
        Size("k"),
    )


counts = tuple(Scratch(name, "n", "int32") for name in ("n_y", "n_xz", "n_z"))
matrix = (Scratch("distances", "n n"), Scratch("eps", "n"), *counts, Scratch("local", "n"))

PEERS = {"torch": torch_chain, "jax": Peer(by_xla(jax_chain), prepares=True)}

spec = KernelSpec(
    entry="te_compute",
    arguments=arguments(*matrix),
    parameters={**EMBEDDING, "k": 4},
    derived={"blocks": lambda n: max(MOST_BLOCKS, -(-n // 8)), "wide_n": lambda n: n},
    rules=(DIMENSIONS, NEIGHBOURS),
    launch=baseline,
    reference=reference,
    tolerance=absolute(1e-5),
    before="transfer_entropy_chain:full",
    flops=lambda n, dx, dy: n * n * (4 * (1 + dx + dy) + 9),
    traffic_factor=None,
    workloads={"S0": Workload(n=200), "S1": Workload(n=16_384)},
    edges=tuple(Workload(**{**edge, "k": min(4, edge["n"] - 1)}) for edge in EDGES),
    golden=(
        Golden(Workload(n=64), {"x_past": 1.0, "y_past": 1.0, "y_future": 1.0}, {}, "all points alike: eps = 0"),
    ),
    variants={
        "partial": Variant("radii in one launch, all else in another", launch=partial, workloads=FUSED_SIZES,
                           arguments=arguments(Scratch("eps", "n")), before="transfer_entropy_chain:full"),
        "full": Variant("one launch", launch=full, workloads=FUSED_SIZES, arguments=arguments(), peers=PEERS),
    },
    chains=(
        Chain("transfer_entropy", {"baseline": None, "partial": "partial", "full": "full", "persistent": "full"},
              between=tuple(array.name for array in matrix)),
    ),
)  # fmt: skip
