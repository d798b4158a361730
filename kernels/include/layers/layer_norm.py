"""Who launches the rows of layer_norm.cuh, and data that its specs share."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Golden, In, Launch, Out, Rule, Scalar, Size, Tune, Workload
from prism_bench.spec import AnyArray, ArrayModule

# Bound by memory: 8 bytes an element at the copy rate; gamma and beta come from the caches.

TOKENS = "batch length cols"
ARGUMENTS = (In("x", TOKENS), In("gamma", "cols"), In("beta", "cols"), Out("y", TOKENS), Size("cols"), Scalar("eps"))
WORKLOADS = {
    "S0": Workload(length=32, cols=128),
    "S1": Workload(batch=16, length=2048, cols=4096),
    "S2": Workload(batch=8, length=8192, cols=8192),
}
EDGES = (
    *(Workload(length=r, cols=c) for r, c in ((0, 8), (3, 1), (5, 2), (3, 31), (3, 257), (2, 1000), (2, 4099))),
    *(Workload(length=r, cols=c) for r, c in ((1, 8192), (1, 9001), (1, 16_384), (1, 16_385))),
    Workload(batch=3, length=5, cols=36, eps=0.1),
)


def fewest_threads(cols: int) -> int:
    """Up to 16 items each, where 256 threads are enough."""
    return next((b for b in (32, 64, 128, 256) if 16 * b >= cols), 256 if cols <= 8192 else 1024)


def threads_of_16(cols: int) -> int:
    """Up to 16 items each, where 1024 threads are enough."""
    return next((b for b in (32, 64, 128, 256, 512) if 16 * b >= cols), 1024)


def rows_tune(threads: Callable[[int], int]) -> Tune:
    """Threads of a row's block, chosen by its columns."""
    return Tune(
        block=(32, 64, 128, 256, 512, 1024),
        default={"block": threads},
        rules=(Rule("a row in 32 items a thread", lambda cols, block: cols > 16_384 or 32 * block >= cols),),
    )


ROWS_TUNE = rows_tune(fewest_threads)


def row_constants(cols: int, block: int) -> dict[str, int]:
    """Threads of a row's block, items of each and the width of an access; no items where registers do not hold it."""
    items = next((i for i in (4, 8, 16, 32) if i * block >= cols), 0) if cols <= 16_384 else 0
    return {"threads": block if items else 1024, "items": items, "width": 4 if cols % 4 == 0 else 1}


def by_rows(rows: int, cols: int, block: int, once: str, twice: str) -> Launch:
    """A block per row, the fewest registers that hold it.

    `once` names the entry, {} standing for the items of a thread, the width of an access and the threads at most;
    `twice` that for rows that are read twice.
    """
    threads, items, width = row_constants(cols, block).values()
    entry = once.format(f"{items}, {width}, {max(256, block)}") if items else twice
    return Launch(rows, threads, entry=entry)


def normalised(x: AnyArray, gamma: AnyArray, beta: AnyArray, eps: float, xp: ArrayModule) -> AnyArray:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / xp.sqrt(variance + eps) * gamma + beta


def torch_layer_norm(torch: ModuleType, x: AnyArray, gamma: AnyArray, beta: AnyArray, eps: float, cols: int) -> Any:
    return torch.nn.functional.layer_norm(x, (cols,), gamma, beta, eps)


def far_mean(batch: int, length: int, cols: int) -> AnyArray:
    """A mean of 10,000 with deviation 1, which a one-pass variance would lose."""
    return 1e4 + np.random.default_rng(3).normal(size=(batch, length, cols))


def constant_rows(batch: int, length: int, cols: int) -> AnyArray:
    """Rows of one value each: small, large, not representable."""
    return np.broadcast_to(np.resize([1e4, 0.1, 0.0, -3e7], length)[None, :, None], (batch, length, cols))


def far_means() -> tuple[Golden, ...]:
    """Golden data answered by the reference."""
    rows = (1000, "mean 10,000, deviation 1"), (8192, "the same in a long row"), (17_000, "in a row read twice")
    return tuple(
        Golden(
            Workload(batch=1, length=2, cols=cols),
            {"x": far_mean, "gamma": 1.5, "beta": np.linspace(-1, 1, cols)}, {}, source=source,
        )
        for cols, source in rows
    )  # fmt: skip


def constants(expected: Any, source: str) -> tuple[Golden, ...]:
    """Rows of variance 0, in three lengths."""
    return tuple(
        Golden(
            Workload(batch=1, length=4 if cols < 4000 else 2, cols=cols),
            {"x": constant_rows, "gamma": 2.0, "beta": lambda cols: np.linspace(-1, 1, cols)}, expected, source=source,
        )
        for cols in (777, 4096, 16_390)
    )  # fmt: skip
