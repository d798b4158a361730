"""y_i = exp((x_i - m) / T) / sum_j exp((x_j - m) / T), m the maximum: the softmax of one vector.

A vector of -inf and one with +inf or NaN give NaN everywhere. One pass finds maximum and sum together.
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
    Zero,
    normalising,
)
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

# Memory-bound: a vector longer than a block holds is read twice, so its bytes are 12 an element; what of its end is
# still in the L2 cache at the second read is the only saving.
ON_CHIP = 8192
MOST_BLOCKS = 8192


def launch(n: int, device: Device) -> Launch | tuple[Launch | Zero, ...]:
    """One block that holds the vector, or two steps."""
    if n <= ON_CHIP:
        block = next(b for b in (32, 64, 128, 256) if 8 * b >= n or b == 256)
        items = next(i for i in (4, 8, 16, 32) if i * block >= n)
        entry = f"fused_exp_normalize<{items}, {4 if n % 4 == 0 else 1}>"
        return Launch(min(n, 1), block, entry=entry, arguments=("x", "y", "temperature", "n"))
    return two_steps(n, device)


def two_steps(n: int, device: Device) -> tuple[Launch, ...]:
    """Blocks of 512 read, three rounds of them; blocks of 256 write, four elements a thread."""
    blocks = max(1, min(-(-n // 2048), 12 * device.sm_count, MOST_BLOCKS))
    find = ("x", "by_block", "state", "temperature", "n")
    write = ("x", "state", "y", "temperature", "n")
    return (
        Launch(blocks, 512, entry="find_max_sum", arguments=find),
        Launch(-(-n // 1024), 256, entry="write_weights", arguments=write, overlaps=True),
    )


def reference(x: AnyArray, temperature: float, xp: ArrayModule) -> AnyArray:
    """Shift by the maximum, so that exp cannot overflow."""
    if x.size == 0:
        return x
    weights = xp.exp((x - x.max()) / temperature)
    return weights / weights.sum()


def torch_softmax(torch: ModuleType, x: AnyArray, temperature: float) -> Any:
    return torch.softmax(x if temperature == 1 else x / temperature, dim=0)


def torch_steps(torch: ModuleType, x: AnyArray, temperature: float) -> Any:
    """Maximum, exponentials and sum by the whole device."""
    weights = torch.exp((x - x.max()) / temperature)
    return weights / weights.sum()


def cupy_softmax(cupy: ModuleType, x: AnyArray, temperature: float) -> Any:
    weights = cupy.exp((x - x.max()) / temperature)
    weights /= weights.sum()
    return weights


def masked(n: int) -> AnyArray:
    """The first two thirds masked, then equal values: calculated probabilities."""
    return np.where(np.arange(n) < n * 2 // 3, -np.inf, 2.5)


def spoiled(value: float) -> Callable[..., Any]:
    """Noise with one odd value in the middle."""
    return lambda n: np.where(np.arange(n) == n // 2, value, np.random.default_rng(4).normal(size=n))


def rising(n: int) -> AnyArray:
    """Every element a new maximum, up to 3e4: only the last ones count."""
    return np.linspace(-3e4, 3e4, n)


def odd_vectors(n: int) -> tuple[Any, ...]:
    """A short and a long vector of each awkward kind."""
    return (
        Golden(Workload(n=n), {"x": -np.inf}, {"y": np.nan}, source="all -inf: no maximum to subtract"),
        Golden(Workload(n=n), {"x": spoiled(np.inf)}, {"y": np.nan}, source="one +inf: inf - inf"),
        Golden(Workload(n=n), {"x": spoiled(np.nan)}, {"y": np.nan}, source="one NaN"),
        Golden(
            Workload(n=n),
            {"x": masked},
            {"y": lambda n: np.where(np.arange(n) < n * 2 // 3, 0.0, 1 / (n - n * 2 // 3))},
            source="calculated: equal shares of what is not masked",
        ),
        Golden(Workload(n=n), {"x": rising}, {}, source="far beyond the range of exp"),
        Golden(Workload(n=n), {"x": 3e38}, {"y": lambda n: np.full(n, 1 / n)}, source="calculated: 1 / n each"),
    )


spec = KernelSpec(
    entry="fused_exp_normalize<32, 4>",
    arguments=(
        In("x", "n"), Out("y", "n"), Scratch("by_block", f"{MOST_BLOCKS} 2"), Scratch("state", "2"),
        Scalar("temperature"), Size("n", "int64"),
    ),
    parameters={"temperature": 1.0},
    rules=(Rule("temperature > 0", lambda temperature: temperature > 0),),
    launch=launch,
    reference=reference,
    tolerance=normalising(),
    peers={
        "torch_steps": torch_steps,
        "torch": Peer(torch_softmax, poor="torch.softmax gives a row to one thread block, however long it is"),
        "cupy": cupy_softmax,
    },
    looked_at={
        "quack": "a row has to fit into the shared memory of a cluster",
        "liger": "one block a row, of 65,536 columns at most",
        "flashinfer": "a softmax of rows of logits; not tried on one row of 64 M",
    },
    flops=lambda n: 4 * n,
    bytes_moved=lambda n: (8 if n <= ON_CHIP else 12) * n,
    workloads={"S0": Workload(n=256), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(
        *(Workload(n=n) for n in (0, 1, 3, 31, 257, 1000, 4099, 8192, 8193, 20_480, 70_003)),
        *(Workload(n=n, temperature=t) for n in (500, 9001) for t in (0.1, 7.0)),
    ),
    golden=(*odd_vectors(50), *odd_vectors(9000)),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "two_steps": Variant(
            "two steps for a vector of any length",
            launch=two_steps,
            bytes_moved=lambda n: 12 * n,
            edges=(Workload(n=0), Workload(n=5), Workload(n=3001)),
            golden=odd_vectors(40),
            only_labels=("S0",),
            budgets=(),
        ),
    },
)  # fmt: skip
