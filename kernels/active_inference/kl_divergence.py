"""D(q||p) = sum of q ln(q / p) in nats, over each row of two sets of discrete distributions.

0 ln 0 is 0; a p of 0, or a negative value, where q is not 0 makes the divergence infinite. Nothing is renormalised.
The policy `clipped` raises both to `eps` first, which keeps every divergence finite.
"""

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
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, nonnegative

from ..include.sums.row_sums import MOST_BLOCKS, SHARED_TUNE, shared_rows

# Memory-bound: 26 instructions a pair.
weights = Fill(
    lambda rng, count, axes: rng.exponential(size=count) / axes["cols"],
    "exponential, of mean 1 / cols",
    nonnegative(),
    runs=ONE_BY_ONE,
)


def launch(rows: int, cols: int, policy: str, device: Device, fill: int, block: int) -> Launch:
    entry = f"kl_divergence<{str(policy == 'clipped').lower()}>"
    return shared_rows(rows, cols, device, 4, entry, fill=fill, block=block)


def terms(q: AnyArray, p: AnyArray, policy: str, eps: float, xp: ArrayModule, special: ModuleType) -> AnyArray:
    if policy == "clipped":
        q, p = xp.maximum(q, np.float32(eps)), xp.maximum(p, np.float32(eps))
    return special.rel_entr(q, p)


def reference(q: AnyArray, p: AnyArray, policy: str, eps: float, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return terms(q, p, policy, eps, xp, special).sum(axis=1)


def magnitude(q: AnyArray, p: AnyArray, policy: str, eps: float, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return xp.abs(terms(q, p, policy, eps, xp, special)).sum(axis=1)


def torch_kl(torch: ModuleType, q: AnyArray, p: AnyArray, policy: str, eps: float) -> Any:
    """PyTorch wants the logarithm of the second distribution, first."""
    if policy == "clipped":
        q, p = q.clamp(min=eps), p.clamp(min=eps)
    return torch.nn.functional.kl_div(p.log(), q, reduction="none").sum(dim=1)


def close(rows: int, cols: int) -> AnyArray:
    """Two distributions that hardly differ: the logarithms cancel to 1e-4."""
    q = np.random.default_rng(1).exponential(size=(rows, cols)) / cols
    return q * (1 + 1e-4 * np.random.default_rng(2).normal(size=q.shape))


def few_zeros(rows: int, cols: int) -> AnyArray:
    """Unlike probabilities, and zeros among them, far apart."""
    q = np.random.default_rng(5).uniform(0.1, 1.9, (rows, cols)) / cols
    q[:, ::7001] = 0.0
    return q


def tail(cols: int) -> AnyArray:
    """Half of the mass in terms of 5e-11, which a cut at 1e-10 would lose."""
    return np.where(np.arange(cols) == 0, 0.5, 5e-11)


rows_of = {"rows": 8, "cols": 2}
edge_rows = {
    "q": [[0, 1], [0.5, 0.5], [0.5, 0.5], [0, 0], [-0.1, 1], [np.nan, 1], [1e-40, 0], [3, 1]],
    "p": [[0, 1], [0.25, 0.75], [1, 0], [0.5, 0.5], [0.5, 0.5], [1, 1], [1e-42, 0], [1, 6]],
}

spec = KernelSpec(
    entry="kl_divergence<false>",
    arguments=(
        In("q", "rows cols", fill=weights), In("p", "rows cols", fill=weights), Out("divergence", "rows"),
        Scratch("by_block", str(MOST_BLOCKS), dtype="float64"), Scratch("arrived", str(MOST_BLOCKS), dtype="uint32"),
        Size("cols", "int64"), Scalar("eps"),
    ),
    parameters={"policy": "strict", "eps": 1e-10},
    rules=(
        Rule("policy to be strict or clipped", lambda policy: policy in ("strict", "clipped")),
        Rule("eps > 0", lambda eps: eps > 0),
    ),
    launch=launch,
    tune=SHARED_TUNE,
    reference=reference,
    tolerance=reduction(magnitude),
    peers={"torch": torch_kl},
    looked_at={"cub": "would reduce terms with the three policies of empty bins, which it does not have"},
    flops=lambda rows, cols: 3 * rows * cols,
    workloads={
        "S0": Workload(rows=1, cols=256),
        "S1": Workload(rows=1, cols=64 << 20),
        "S2": Workload(rows=65_536, cols=4096),
    },
    edges=(
        *(
            Workload(rows=r, cols=c)
            for r, c in ((0, 5), (3, 0), (1, 1), (4, 3), (7, 257), (3, 1028), (2, 9001), (1, 40_003))
        ),
        *(Workload(rows=r, cols=300, policy="clipped", eps=1e-3) for r in (1, 3)),
    ),
    golden=(
        Golden(
            Workload(**rows_of), edge_rows, {}, source="0 ln 0, p = 0, q < 0, NaN, subnormal, not normalised (scipy)"
        ),
        Golden(Workload(**rows_of, policy="clipped"), edge_rows, {}, source="the same rows clipped at 1e-10: finite"),
        Golden(
            Workload(rows=1, cols=2), {"q": [0.5, 0.5], "p": [1, 0]}, {"divergence": np.inf},
            source="q > 0 where p = 0", tolerance=exact(),
        ),
        Golden(Workload(rows=2, cols=300), {"q": 1 / 300, "p": 1 / 300}, {"divergence": 0.0}, source="D(p||p) = 0"),
        Golden(
            Workload(rows=3, cols=500),
            {"q": close, "p": lambda rows, cols: np.random.default_rng(1).exponential(size=(rows, cols)) / cols}, {},
            source="q close to p",
        ),
        Golden(Workload(rows=1, cols=10_000), {"q": tail, "p": 1e-4}, {}, source="many terms below 1e-10"),
        Golden(
            Workload(rows=1, cols=900_000),
            {"q": few_zeros, "p": lambda rows, cols: np.random.default_rng(6).uniform(0.1, 1.9, (rows, cols)) / cols},
            {}, source="threads that take their terms anew are few",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "clipped": Variant(
            "both distributions raised to eps first",
            parameters={"policy": "clipped", "eps": 1e-10}, edges=(Workload(rows=3, cols=77),), golden=(),
            peers={"torch": torch_kl},
        ),
    },
)  # fmt: skip
