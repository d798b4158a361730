"""Miller-Madow entropy of each row of counts: -sum of p ln p + (m - 1) / (2 N), m occupied bins, N samples.

All of it in nats or bits. N is the row's sum; without samples, or with a negative count, the result is NaN.
"""

from collections.abc import Callable
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
    Scratch,
    Size,
    Variant,
    Workload,
    exact,
    reduction,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, Array, ArrayModule, Device, Fill, Peer, nonnegative, whole

from ..include.sums.row_sums import threads_for
from ..peers.poor_ways import ONE_BLOCK

# Memory-bound, but 46 registers leave half of an SM's warps to wait for it: 12 instructions and a look-up a bin.
# `probabilities` has all warps. Tallying counts without a branch, in whole batches and with more warps, was no faster
# and made int64 slower; eight loads ahead made `probabilities` slower.
MOST_BLOCKS = 8192
TABULATED = 1024  # logarithms in the table
TINY = np.finfo("float32").tiny  # CuPy takes anything smaller for 0
tallies = Fill(
    lambda rng, count, axes: rng.poisson(5.0, size=count), "Poisson of mean 5", whole(0, 2**20), runs=ONE_BY_ONE
)
weights = Fill(
    lambda rng, count, axes: rng.exponential(size=count) / axes["cols"],
    "exponential, of mean 1 / cols",
    nonnegative(),
    runs=ONE_BY_ONE,
)


def shape(rows: int, cols: int, device: Device) -> tuple[tuple[int, ...], int]:
    """A block per row; where rows are few and long, as many share one as fill the device."""
    parts = max(1, min(-(-cols // 2048), 12 * device.sm_count // max(1, rows), MOST_BLOCKS // max(1, rows)))
    each = 4 if rows <= device.sm_count else 8
    return (rows, parts), 512 if parts > 1 else threads_for(cols, each, 256)


def launch_of(entry: str) -> Callable[..., Any]:
    """The table of c ln c first, for counts below 1024; fewer bins than it has take their logarithms themselves."""

    def launch(rows: int, cols: int, device: Device) -> tuple[Launch, ...]:
        tabulated = rows * cols > TABULATED
        tally = Launch(*shape(rows, cols, device), entry=f"{entry}<{str(tabulated).lower()}>")
        return (Launch(4, 256, entry="count_log_table", arguments=("table",)), tally) if tabulated else (tally,)

    return launch


def parts(counts: AnyArray, scale: AnyArray, xp: ArrayModule, special: ModuleType) -> tuple[AnyArray, AnyArray]:
    """The terms of the entropy, and the correction."""
    samples = counts.sum(axis=1, keepdims=True).astype("float64")
    correction = ((counts != 0).sum(axis=1) - 1) / (2 * samples[:, 0])
    return special.entr(counts / samples) * scale, correction * scale


def reference(counts: AnyArray, scale: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    terms, correction = parts(counts, scale, xp, special)
    defined = (counts >= 0).all(axis=1) & (counts.sum(axis=1) > 0)
    return xp.where(defined, terms.sum(axis=1) + correction, np.nan)


def magnitude(counts: AnyArray, scale: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    terms, correction = parts(counts, scale, xp, special)
    return xp.abs(terms).sum(axis=1) + xp.abs(correction)


def from_p(p: AnyArray, samples: int, scale: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    correction = ((p >= np.float32(0.5 / samples)).sum(axis=1) - 1) / (2 * samples)
    return (special.entr(p).sum(axis=1) + correction) * scale


def magnitude_of_p(p: AnyArray, samples: int, scale: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    correction = ((p >= np.float32(0.5 / samples)).sum(axis=1) - 1) / (2 * samples)
    return (xp.abs(special.entr(p)).sum(axis=1) + xp.abs(correction)) * scale


def cupy_entropy(cupy: ModuleType, counts: AnyArray, scale: AnyArray) -> Any:
    samples = counts.sum(axis=1, keepdims=True)
    p = (counts / samples).astype("float32")
    likely = -(p * cupy.log(cupy.maximum(p, TINY))).sum(axis=1)
    return scale * (likely + ((counts != 0).sum(axis=1) - 1) / (2 * samples[:, 0]))


def torch_entropy(torch: ModuleType, counts: AnyArray, scale: AnyArray) -> Any:
    samples = counts.sum(dim=1, keepdim=True)
    likely = torch.special.entr(counts / samples).sum(dim=1)
    return scale * (likely + (torch.count_nonzero(counts, dim=1) - 1) / (2 * samples[:, 0]))


def scratch(values: int) -> tuple[Array | Scalar, ...]:
    return (Scratch("by_block", str(values * MOST_BLOCKS), dtype="float64"),
            Scratch("arrived", str(MOST_BLOCKS), dtype="uint32"), Size("cols", "int64"))  # fmt: skip


def arguments(dtype: str) -> tuple[Any, ...]:
    table = Scratch("table", "1024", dtype="float64")
    return (In("counts", "rows cols", dtype, fill=tallies), Out("entropy", "rows"), table, *scratch(3),
            Scalar("scale", "float64"))  # fmt: skip


shapes = ((0, 5), (3, 0), (1, 1), (4, 3), (7, 257), (3, 1028), (2, 9001), (2, 9002), (1, 70_000))
units = {"scale": lambda units: 1.0 if units == "nats" else 1 / np.log(2)}
known_units = Rule("units to be nats or bits", lambda units: units in ("nats", "bits"))
spec = KernelSpec(
    entry="entropy_corrected<true>",
    arguments=arguments("int32"),
    parameters={"units": "nats"},
    derived=units,
    rules=(known_units,),
    launch=launch_of("entropy_corrected"),
    reference=reference,
    tolerance=reduction(magnitude),
    peers={"cupy": Peer(cupy_entropy, poor=ONE_BLOCK), "torch": torch_entropy},
    looked_at={"cub": "reduces once for a sum; rows of counts need three sums of one reading"},
    flops=lambda rows, cols: 4 * rows * cols,
    traffic_factor=12,  # each bin looks its logarithm up in the L1 cache
    workloads={
        "S0": Workload(rows=1, cols=256),
        "S1": Workload(rows=1, cols=64 << 20),
        "S2": Workload(rows=65_536, cols=4096),
    },
    edges=(*(Workload(rows=r, cols=c) for r, c in shapes), Workload(rows=5, cols=100, units="bits")),
    golden=(
        Golden(
            Workload(rows=4, cols=3), {"counts": [[7, 0, 0], [0, 0, 5000], [1, 0, 0], [0, 0, 0]]},
            {"entropy": [0, 0, 0, np.nan]}, source="all mass in one bin: no correction; no samples", tolerance=exact(),
        ),
        Golden(
            Workload(rows=1, cols=4, units="bits"), {"counts": 50}, {"entropy": 2 + 3 / 400 / np.log(2)},
            source="four equal bins of 200 samples: 2 bits + 3 / (2 N) nats",
        ),
        Golden(
            Workload(rows=4, cols=3),
            {"counts": [[3, -1, 2], [2**31 - 1, 2**31 - 1, 1], [1023, 1024, 1025], [10**9, 1, 0]]},
            {}, source="a negative count, large counts, the seam of the table",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "i64": Variant(
            "64-bit counts", arguments=arguments("int64"), launch=launch_of("entropy_corrected_i64"), budgets=(),
            golden=(
                Golden(Workload(rows=2, cols=3), {"counts": [[2**28, 3, 0], [2**33, 2**33, 2**33]]}, {}, source="many"),
            ),
        ),
        "probabilities": Variant(
            "from probabilities and the number of samples", entry="entropy_corrected_p",
            arguments=(
                In("p", "rows cols", fill=weights), Out("entropy", "rows"), *scratch(2), Scalar("samples", "float64"),
                Scalar("scale", "float64"),
            ),
            parameters={"units": "nats", "samples": 200},
            rules=(known_units, Rule("samples > 0", lambda samples: samples > 0)),
            launch=lambda rows, cols, device: Launch(*shape(rows, cols, device)),
            reference=from_p,
            tolerance=reduction(magnitude_of_p),
            golden=(
                Golden(
                    Workload(rows=1, cols=4, samples=100), {"p": [0.5, 0.499, 0.001, 0]}, {},
                    source="a probability below 1 / (2 N) is no count",
                ),
                Golden(
                    Workload(rows=4, cols=4, samples=100),
                    {"p": [[0.9, 0.1, 0, 0], [0.9, np.nan, 0.1, 0], [0.9, -0.1, 0.2, 0], [0.6, 0.4, 0, 1e-40]]}, {},
                    source="next to one that is nearly all: zeros, NaN, a negative one, a subnormal one",
                ),
            ),
        ),
    },
)  # fmt: skip
