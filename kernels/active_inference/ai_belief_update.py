"""A step of belief along a gradient, mu + kappa gradient; with `prior` the prior's own gradient is added on the way."""

from typing import Any

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Scalar, Size, Variant, Workload, reduction
from prism_bench.spec import AnyArray, Array, ArrayModule, Tolerance

from ..include.arrays.map_arrays import MAP_TUNE, in_double, launch_map
from ..include.entropy.gaussian import STATES, edges, spreads

# Bound by memory: 12 bytes a state at the copy rate.
launch = launch_map("ai_belief_update<{}>", arguments=("mu", "gradient", "mu", "kappa", "n"))
with_prior = launch_map(
    "ai_belief_update_prior<{}>", arguments=("mu", "gradient", "prior", "variance", "mu", "kappa", "n")
)


def arguments(dtype: str, *prior: Any) -> tuple[Array | Scalar, ...]:
    return (InOut("mu", "n", dtype), In("gradient", "n", dtype), *prior, Scalar("kappa", dtype), Size("n", "int64"))


def tolerance(dtype: str) -> Tolerance:
    """A few roundings of terms that may cancel."""
    size = lambda mu, gradient, kappa, xp: xp.abs(mu) + abs(kappa) * xp.abs(gradient)  # noqa: E731
    return reduction(magnitude=size, terms={"float32": 3e-7, "float64": 5e-16}[dtype])


def size_with_prior(
    mu: AnyArray, gradient: AnyArray, prior: AnyArray, variance: AnyArray, kappa: float, xp: ArrayModule
) -> AnyArray:
    return xp.abs(mu) + abs(kappa) * (xp.abs(gradient) + (xp.abs(prior) + xp.abs(mu)) / variance)


spec = KernelSpec(
    entry="ai_belief_update<float>",
    arguments=arguments("float32"),
    parameters={"kappa": 0.1},
    launch=launch("float32"),
    tune=MAP_TUNE,
    reference=lambda mu, gradient, kappa: mu + kappa * gradient,
    tolerance=tolerance("float32"),
    peers={"torch": lambda torch, mu, gradient, kappa: torch.add(mu, gradient, alpha=kappa)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 2 * n,
    workloads=STATES,
    edges=edges("n"),
    golden=(Golden(Workload(n=2, kappa=0.5), {"mu": [1, -1], "gradient": [2, 0]}, {"mu": [2, -1]}, "calculated"),),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "prior": Variant(
            "with the gradient of the prior",
            arguments=arguments("float32", In("prior", "n"), In("variance", "n", fill=spreads)),
            launch=with_prior("float32"),
            reference=lambda mu, gradient, prior, variance, kappa: mu + kappa * (gradient + (prior - mu) / variance),
            tolerance=reduction(magnitude=size_with_prior, terms=5e-7),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "f64": in_double(arguments, launch, tolerance),
    },
)
