"""c = a + b: one rounding per element, so exact."""

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Launch, Out, Size, Variant, Workload, exact
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..include.arrays.vector_load import map_tune, spread
from ..peers import cub_peers


def launch(n: int, block: int, groups: int) -> Launch:
    """256 threads a block, one group of four floats a thread: more per thread was slower."""
    return spread(n, block, groups)


def reference_views(
    a: AnyArray, b: AnyArray, c: AnyArray, n: int, offset: int, other: int, xp: ArrayModule
) -> AnyArray:
    """What is before the view of c stays as it was."""
    return xp.concatenate((c[:offset], a[offset : offset + n] + b[other : other + n], c[offset + n :]))


spec = KernelSpec(
    entry="vector_add",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=launch,
    tune=map_tune(),
    reference=lambda a, b: a + b,
    tolerance=exact(),
    peers={
        "torch": lambda torch, a, b: torch.add(a, b),
        "cupy": lambda cupy, a, b: cupy.add(a, b),
        "cub": Peer(lambda cub, a, b: cub_peers.combined(cub, a, b, cub.OpKind.PLUS), prepares=True),
    },
    flops=lambda n: n,
    workloads={"S0": Workload(n=100_000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4099, (1 << 21) + 4099)),
    golden=(
        Golden(
            Workload(n=100_000),
            inputs={"a": lambda n: np.arange(n), "b": lambda n: np.arange(n) + 1},
            expected={"c": lambda n: 2.0 * np.arange(n) + 1},
            source="the profiling guide's vectors: a_i = i, b_i = i + 1",
        ),
        Golden(
            Workload(n=6),
            inputs={"a": [np.inf, np.inf, np.nan, -0.0, 3e38, 1e-45], "b": [-np.inf, 1, 1, 0.0, 3e38, 1e-45]},
            expected={"c": [np.nan, np.inf, np.nan, 0.0, np.inf, 2.802596928649634e-45]},
            source="IEEE 754: inf - inf is NaN, a sum beyond the range is inf, subnormals are kept",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "a += b",
            entry="vector_add_in_place",
            arguments=(InOut("a", "n"), In("b", "n"), Size("n", "int64")),
            golden=(),
            only_labels=("S1",),
        ),
        "views": Variant(
            "arrays that begin inside others, off their 16-byte boundaries; what surrounds them stays",
            entry="vector_add_views",
            arguments=(
                In("a", "padded"),
                In("b", "padded"),
                InOut("c", "padded"),
                Size("n", "int64"),
                Size("offset"),
                Size("other"),
            ),
            derived={"padded": lambda n: n + 8},
            reference=reference_views,
            bytes_moved=lambda n: 12 * n,
            workloads={"S1": Workload(n=64 << 20, offset=1, other=1)},
            edges=(
                Workload(n=1000, offset=1, other=1),
                Workload(n=2, offset=3, other=3),
                Workload(n=4099, offset=2, other=6),
                Workload(n=1001, offset=1, other=2),
            ),
            golden=(),
        ),
    },
)
