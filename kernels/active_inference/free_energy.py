"""Variational free energy F = D(q||p) - E_q[ln p(o|s)] in nats of discrete posteriors, with its two parts.

States without posterior mass contribute nothing, whatever their likelihood; mass where the prior has none costs +inf.
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
    Out,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    absolute,
    normal,
    reduction,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, Tolerance, nonnegative

from ..include.sums.row_sums import MOST_BLOCKS, SHARED_TUNE, shared_rows

# Memory-bound: 26 instructions a state. `scalar` as well, with half of an SM's warps (46 registers) to wait for it.
weights = Fill(
    lambda rng, count, axes: rng.exponential(size=count) / axes["cols"],
    "exponential, of mean 1 / cols",
    nonnegative(),
    runs=ONE_BY_ONE,
)


def launch_of(entry: str, unroll: int) -> Callable[..., Any]:
    return lambda rows, cols, device, fill, block: shared_rows(
        rows, cols, device, unroll, entry, fill=fill, block=block
    )


def terms(
    q: AnyArray, p: AnyArray, loglik: AnyArray, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray]:
    """The terms of complexity and of accuracy."""
    return special.rel_entr(q, p), xp.where(q == 0, 0.0, q * loglik)


def reference(
    q: AnyArray, p: AnyArray, loglik: AnyArray, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray, AnyArray]:
    complexity, accuracy = (part.sum(axis=1) for part in terms(q, p, loglik, xp, special))
    return complexity - accuracy, complexity, accuracy


def magnitudes() -> dict[str, Tolerance]:
    """Sums of absolute terms: of both parts for the free energy, of the own ones for each part."""

    def sums(q: AnyArray, p: AnyArray, loglik: AnyArray, xp: ArrayModule, special: ModuleType) -> list[AnyArray]:
        return [xp.abs(part).sum(axis=1) for part in terms(q, p, loglik, xp, special)]

    return {
        "free_energy": reduction(lambda q, p, loglik, xp, special: sum(sums(q, p, loglik, xp, special))),
        "complexity": reduction(lambda q, p, loglik, xp, special: sums(q, p, loglik, xp, special)[0]),
        "accuracy": reduction(lambda q, p, loglik, xp, special: sums(q, p, loglik, xp, special)[1]),
    }


def torch_energy(torch: ModuleType, q: AnyArray, p: AnyArray, loglik: AnyArray) -> Any:
    complexity = torch.nn.functional.kl_div(p.log(), q, reduction="none").sum(dim=1)
    accuracy = (q * loglik).sum(dim=1)
    return complexity - accuracy, complexity, accuracy


def arguments(*given: Any) -> tuple[Any, ...]:
    outputs = [Out(name, "rows") for name in ("free_energy", "complexity", "accuracy")]
    scratch = Scratch("by_block", str(2 * MOST_BLOCKS), "float64"), Scratch("arrived", str(MOST_BLOCKS), "uint32")
    return (In("q", "rows cols", fill=weights), In("p", "rows cols", fill=weights), *given, *outputs, *scratch,
            Size("cols", "int64"))  # fmt: skip


def prior(rows: int, cols: int) -> AnyArray:
    p = np.random.default_rng(6).exponential(size=(rows, cols))
    return np.float32(p / p.sum(axis=1, keepdims=True))


def likelihood(rows: int, cols: int) -> AnyArray:
    return np.float32(np.random.default_rng(7).normal(-2, 1, size=(rows, cols)))


def log_evidence(rows: int, cols: int) -> AnyArray:
    """ln p(o) = ln of the sum of p exp(l), in float64."""
    return np.log((prior(rows, cols) * np.exp(likelihood(rows, cols).astype("float64"))).sum(axis=1))


def posterior(rows: int, cols: int) -> AnyArray:
    joint = np.log(prior(rows, cols)) + likelihood(rows, cols) - log_evidence(rows, cols)[:, None]
    return np.exp(joint)


spec = KernelSpec(
    entry="free_energy_kernel",
    arguments=arguments(In("loglik", "rows cols", fill=normal(-2, 1))),
    launch=launch_of("free_energy_kernel", unroll=2),
    tune=SHARED_TUNE,
    reference=reference,
    tolerance=magnitudes(),
    peers={"torch": torch_energy},
    looked_at={"cub": "reduces once for a sum; here are two sums of one reading"},
    flops=lambda rows, cols: 5 * rows * cols,
    workloads={
        "S0": Workload(rows=1, cols=256),
        "S1": Workload(rows=1, cols=64 << 20),
        "S2": Workload(rows=65_536, cols=4096),
    },
    edges=tuple(Workload(rows=r, cols=c) for r, c in ((0, 5), (3, 0), (1, 1), (4, 3), (7, 257), (3, 1028), (2, 9001))),
    golden=(
        Golden(
            Workload(rows=2, cols=300), {"q": posterior, "p": prior, "loglik": likelihood},
            {"free_energy": lambda rows, cols: -log_evidence(rows, cols)},
            source="at the exact posterior F = -ln p(o); q is rounded to float", tolerance=absolute(2e-6),
        ),
        Golden(
            Workload(rows=5, cols=2),
            {
                "q": [[0, 1], [0.5, 0.5], [1, 0], [np.nan, 1], [0.5, 0.5]],
                "p": [[0.5, 0.5], [1, 0], [1, 0], [0.5, 0.5], [0.5, 0.5]],
                "loglik": [[-np.inf, -1], [-1, -1], [-3, np.inf], [-1, -1], [-np.inf, -1]],
            }, {}, source="l = -inf and p = 0 with and without mass, NaN",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    aliases=("free_energy_kernel",),
    variants={
        "scalar": Variant(
            "one log-likelihood for all states",
            arguments=(*arguments(), Scalar("loglik")),
            parameters={"loglik": -1.5},
            launch=launch_of("free_energy_scalar", unroll=4),
            golden=(),
        ),
    },
)  # fmt: skip
