"""Counts of samples (x, y) over equal bins of two ranges, as [y bin, x bin]; the last bin of an axis is closed.

Out of range means dropped, as in NumPy, or clamped into the edge bins; a sample with a NaN is always dropped.
"""

from collections.abc import Callable
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
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    exact,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

from ..peers.histogram_peers import cub_histogram, cupy_histogram, torch_scatter

# No resource is full at S1: memory, instruction issue and shared-memory atomics take similar times, at less than half
# of an SM's warps. 28 warps have registers enough; 32 spilled, and 24 were too few to hide what they wait for. Atomics
# that return what they found, so that no thread has to look at counters, cost more than looking. The 1,048,576 bins of
# S2 are more than shared memory holds, and atomics in the L2 cache are slower than sorting samples by group first,
# although keys are then written and read again. Sorting with fewer instructions and without a branch for each sample
# took as long: instruction issue is not its bottleneck. Four small blocks of sorters on an SM wait less at their
# barriers than two large ones.
PRIVATE = 226 * 512  # bins that 16-bit counters in shared memory hold
SORTED, MOST_GROUPS, MOST_BLOCKS = 4096, 256, 264


def group_bits(bins: int, on_chip: int) -> int:
    """Groups of at most `on_chip` bins are 2 to this."""
    return max(0, -(-bins // on_chip) - 1).bit_length()


def sorted_tiles(n: int, bins: int, sort_from: int, bits: int) -> int:
    """Tiles that are sorted by group; none where samples are few, or groups one or too many."""
    return -(-n // SORTED) if n >= sort_from and bins > PRIVATE and 1 << bits <= MOST_GROUPS else 0


def launch_of(count: str) -> Callable[..., Any]:
    """16-bit counters in shared memory where they fit: a block or two per SM.

    Else samples are sorted first, or few of them counted where the result is.
    """

    def launch(
        n: int, bins: int, bits: int, tiles: int, words: int, on_chip: int, few: int, policy: str, device: Device
    ) -> tuple[Launch | Zero, ...]:
        clamp = str(policy == "clamp").lower()
        if tiles:
            parts = max(1, device.sm_count >> bits)
            return (
                Zero("histogram"),
                Launch(tiles, 256, entry=f"histogram_sort<{clamp}>",
                       arguments=("x", "y", "keys", "starts", *SAMPLES, "bits", "room")),
                Launch(parts << bits, 1024, shared=4 * (on_chip + 1), entry=f"histogram_groups<{count}>",
                       arguments=("keys", "starts", "histogram", "tiles", "bins", "bits", "room")),
            )  # fmt: skip
        arguments, flags = ("x", "y", "histogram", "parts", "counted", "few", *SAMPLES), f"{count}, {clamp}"
        shared = 4 * words
        if words == 0:
            grid = max(1, min(-(-n // 4096), 8 * device.sm_count))
            return Zero("histogram"), Launch(grid, 256, entry=f"histogram_2d<Direct, {flags}>", arguments=arguments)
        per_sm = 2 if 2 * shared <= device.max_shared_bytes else 1
        grid = max(1, min(-(-n // 8192), per_sm * device.sm_count, MOST_BLOCKS))
        block = 896 if n > 8192 else 256
        entry = f"histogram_2d<Private, {flags}>"
        counting = Launch(grid, block, shared=shared, entry=entry, arguments=arguments)
        adding = Launch((-(-words // 256), 12), 256, entry=f"histogram_parts<{count}>",
                        arguments=("parts", "counted", "histogram", "bins"))  # fmt: skip
        return (Zero("histogram"), counting, adding) if grid > few else (Zero("histogram"), counting)

    return launch


SAMPLES = ("n", "columns", "rows", "x_lo", "x_hi", "y_lo", "y_hi")


def bin_of(value: AnyArray, lo: float, hi: float, bins: int, policy: str, xp: ArrayModule) -> AnyArray:
    """The bin by double-precision arithmetic on the float bounds; -1 for none."""
    lo, hi = float(np.float32(lo)), float(np.float32(hi))
    if policy == "clamp":
        value = xp.clip(value, lo, hi)
    inside = (value >= lo) & (value <= hi)
    index = xp.floor(bins * (xp.where(inside, value, lo) - lo) / (hi - lo))
    return xp.where(inside, xp.minimum(index, bins - 1), -1).astype("int64")


def reference(
    x: AnyArray,
    y: AnyArray,
    columns: int,
    rows: int,
    x_lo: float,
    x_hi: float,
    y_lo: float,
    y_hi: float,
    policy: str,
    xp: ArrayModule,
) -> AnyArray:
    column, row = bin_of(x, x_lo, x_hi, columns, policy, xp), bin_of(y, y_lo, y_hi, rows, policy, xp)
    kept = (column >= 0) & (row >= 0)
    return xp.bincount((row * columns + column)[kept], minlength=rows * columns)


def arguments(dtype: str) -> tuple[Any, ...]:
    return (
        In("x", "n"), In("y", "n"), Out("histogram", "rows columns", dtype), Size("n", "int64"), Size("columns"),
        Size("rows"), Scalar("x_lo"), Scalar("x_hi"), Scalar("y_lo"), Scalar("y_hi"),
        Scratch("keys", "tiles room", "uint16"), Scratch("starts", "offsets tiles", "uint16"), Size("tiles"),
        Size("bins"), Size("bits"), Size("room"), Scratch("parts", f"{MOST_BLOCKS} words", "uint32"),
        Scratch("counted", "1", "uint32"), Size("few"),
    )  # fmt: skip


def on_the_edges(n: int) -> AnyArray:
    """Multiples of 1/10, which no float is, and their neighbours."""
    edge = np.float32(np.arange(n) % 21 / 10 - 1)  # an array, which the stubs of NumPy do not know
    return np.nextafter(edge, np.float32(9), where=np.arange(n) % 3 == 0, out=edge.copy())  # pyright: ignore[reportCallIssue, reportArgumentType]


def awkward(n: int) -> AnyArray:
    """The bounds, beyond them, infinities and NaN."""
    return np.random.default_rng(3).choice([-1, 1, -1.5, 2, 0, np.nan, np.inf, -np.inf, 0.999], size=n)


def one_bin_and_others(n: int) -> Any:
    """Six samples of seven in one bin."""
    return np.where(np.arange(n) % 7 < 6, 0.5, np.arange(n) % 797 / 100 - 4)


def crowded_early(n: int) -> Any:
    """Of every block's samples many in one bin at the beginning, more than are handed over once."""
    return np.where(np.arange(n) % 125_000 < 34_000, 0.5, np.arange(n) % 797 / 100 - 4)


def crowded_late(n: int) -> Any:
    """Samples spread over bins, and of every block's many in one bin at the end."""
    return np.where(np.arange(n) % 125_000 < 52_000, np.arange(n) % 797 / 100 - 4, 0.5)


unit_square = {"columns": 20, "rows": 20, "x_lo": -1.0, "x_hi": 1.0, "y_lo": -1.0, "y_hi": 1.0}
around_zero = {"x_lo": -4.0, "x_hi": 4.0, "y_lo": -4.0, "y_hi": 4.0}
# Samples from which sorting pays; bins of a group; blocks that add their counters to the result themselves.
sorting = {"sort_from": 1 << 20, "on_chip": 32_768, "few": 16}
many_bins = {"columns": 300, "rows": 400, "sort_from": 0, "on_chip": 4096}
rules = (
    Rule("policy to be drop or clamp", lambda policy: policy in ("drop", "clamp")),
    Rule(
        "a bin per axis or more, 2^30 in all",
        lambda rows, columns: min(rows, columns) >= 1 and rows * columns <= 1 << 30,
    ),
    Rule("x_lo < x_hi, a finite distance apart", lambda x_lo, x_hi: 0 < np.float32(x_hi) - np.float32(x_lo) < np.inf),
    Rule("y_lo < y_hi, a finite distance apart", lambda y_lo, y_hi: 0 < np.float32(y_hi) - np.float32(y_lo) < np.inf),
)
spec = KernelSpec(
    entry="histogram_2d<Private, int, false>",
    arguments=arguments("int32"),
    parameters={"policy": "drop", **around_zero, **sorting},
    derived={
        "bins": lambda rows, columns: rows * columns, "bits": group_bits, "tiles": sorted_tiles,
        "offsets": lambda bits: (1 << bits) + 1, "room": lambda bits: SORTED + (8 << bits),
        "words": lambda bins: 4 * -(-bins // 8) if bins <= PRIVATE else 0,  # of 16-bit counters, two each
    },
    rules=(*rules, Rule("n < 2^31, or the variant i64", lambda n: n < 1 << 31)),
    launch=launch_of("int"),
    reference=reference,
    tolerance=exact(),
    peers={
        "torch": torch_scatter,
        "cub": Peer(cub_histogram, prepares=True),
        "cupy": cupy_histogram,
    },
    flops=lambda n: 6 * n,
    workloads={
        "S0": Workload(n=500, columns=20, rows=20),
        "S1": Workload(n=64 << 20, columns=256, rows=256),
        "S2": Workload(n=256 << 20, columns=1024, rows=1024),
    },
    edges=(
        *(Workload(n=n, columns=c, rows=r) for n, c, r in ((0, 3, 2), (1, 1, 1), (1003, 7, 3), (30_005, 33, 17))),
        *(Workload(n=1003, columns=9, rows=5, policy=p, x_lo=-0.3, x_hi=0.7) for p in ("drop", "clamp")),
        *(Workload(n=4003, columns=64, rows=7, policy=p, x_lo=-1.0, x_hi=1.0) for p in ("drop", "clamp")),
        *(Workload(n=1003, columns=300, rows=400, policy=p) for p in ("drop", "clamp")),  # more than fit on chip
        *(Workload(n=n, **many_bins, policy=p) for n, p in ((9001, "drop"), (8192, "clamp"), (1, "drop"))),
        *(Workload(n=30_005, columns=c, rows=7, few=2) for c in (33, 2000)),  # counters are left by blocks
        Workload(n=999, columns=30, rows=30, x_lo=0.1, x_hi=0.1001, y_lo=-1e30, y_hi=1e30),
    ),
    golden=(
        Golden(
            Workload(n=5, columns=2, rows=3, x_lo=0, x_hi=2, y_lo=0, y_hi=3),
            {"x": [0, 1, 2, 0.5, 1.5], "y": [0, 0, 3, 2.5, 1]}, {"histogram": [[1, 1], [0, 1], [1, 1]]},
            source="calculated: rows are bins of y, the upper bounds belong to the last bins",
        ),
        *(
            Golden(Workload(n=n, policy=p, **unit_square), {"x": awkward, "y": lambda n: awkward(n)[::-1]}, {},
                   source="bounds, beyond them, infinities, NaN")
            for n, p in ((900, "drop"), (900, "clamp"))
        ),
        Golden(Workload(n=630, **unit_square), {"x": on_the_edges, "y": on_the_edges}, {}, source="on edges of bins"),
        *(
            Golden(Workload(n=n, columns=c, rows=c), {"x": 0.3, "y": -0.2}, {}, source="all samples in one bin")
            for n, c in ((70_001, 8), (3000, 400))
        ),
        Golden(Workload(n=9000, **many_bins), {"x": 0.3, "y": -0.2}, {}, source="all samples in one bin, sorted"),
        Golden(
            Workload(n=900, **many_bins), {"x": awkward, "y": lambda n: awkward(n)[::-1]}, {},
            source="bounds, beyond them, infinities, NaN, sorted",
        ),
        Golden(
            Workload(n=200_000, columns=2, rows=1),
            {"x": lambda n: np.where(np.arange(n) % 7 < 3, -1.0, 1.0), "y": 0.0},
            {"histogram": lambda n: [[(np.arange(n) % 7 < 3).sum(), (np.arange(n) % 7 >= 3).sum()]]},
            source="more samples of a bin than 16 bits count",
        ),
        Golden(
            Workload(n=300_000, columns=300, rows=200), {"x": one_bin_and_others, "y": 0.1}, {},
            source="blocks that hand counters over several times",
        ),
        *(
            Golden(Workload(n=500_000, columns=200, rows=100), {"x": crowded, "y": 0.1}, {}, source=source)
            for crowded, source in (
                (crowded_early, "counters that fill slowly after some were handed over"),
                (crowded_late, "counters that run over after they filled slowly"),
            )
        ),
    ),
    traffic_factor=8,  # an atomic in memory for every sample where bins are many, samples few
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
    variants={
        "clamp": Variant(
            "what is out of range counts in the edge bins", parameters={"policy": "clamp", **around_zero, **sorting},
            edges=(), golden=(), budgets=(),
        ),
        "i64": Variant(
            "64-bit counts, for 2^31 samples or more", arguments=arguments("int64"),
            launch=launch_of("unsigned long long"), rules=rules, budgets=(),
            edges=(
                Workload(n=30_005, columns=33, rows=17), Workload(n=1003, columns=300, rows=400),
                Workload(n=30_005, columns=33, rows=7, few=2),
                Workload(n=9001, **many_bins),
            ),
            golden=(),
        ),
    },
)  # fmt: skip
