"""One evaluation of active inference: project the level above, predict, weigh, step, and say what the belief is worth.

With prior = the level repeated over the states:

    next = mu + kappa (J^T (precision (o - g)) + (prior - mu) / var_p)
    velocity = alpha (next - mu) / dt + beta before
    free energy = complexity - accuracy = D(next, var_q || prior, var_p) - ln p(o | g)

The kernel itself is the chain's baseline, twelve steps each in a separate launch; the variants are stages of fusion.
"""

from collections.abc import Callable
from typing import Any

from prism_bench import (
    Budget,
    Chain,
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
    reduction,
)
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer, Tolerance

from ..include.arrays.map_arrays import MOST_BLOCKS, NUMBERS, ROUNDING, launch_map, project_blocks, sum_launch
from ..include.entropy.gaussian import at_least, divergence, likelihood_size, log_likelihood, spreads
from ..include.products.gemv import launches as products
from ..include.products.gemv import splits as product_splits
from ..include.sums.column_sums import LANES, derived, derived_by_lanes, lanes_of
from ..peers.active_inference_peers import jax_chain, torch_chain
from ..peers.xla_peers import by_xla

# Memory-bound by J, which is most of the bytes at S1: there fusion saves little but launches, at S0 all but one launch.
# Thirteen launches, five (`partial`) and one (`full`) come closer to the memory's rate in this order.


def arguments(dtype: str) -> tuple[Any, ...]:
    """Inputs, outputs, what the separate launches hand on, and sizes and factors."""
    seen = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    beliefs = (In("mu", "n", dtype), *(In(name, "n", dtype, fill=spreads) for name in ("var_q", "var_p")))
    inputs = (In("level", "length", dtype), *seen, In("jacobian", "m n", dtype), *beliefs, In("before", "n", dtype))
    outputs = (Out("next", "n", dtype), Out("velocity", "n", dtype), *(Out(part, "1", dtype) for part in PARTS))
    between = (Scratch(name, "n", dtype) for name in STATES)
    observed = (Scratch(name, "m", dtype) for name in OBSERVATIONS)
    sums = (Scratch("parts", "splits n", dtype), Scratch("products", "product_splits n", dtype),
            Scratch("by_block", str(2 * MOST_BLOCKS), "float64"), Scratch("by_tile", "counters", "float64"),
            Scratch("arrived", "counters", "uint32"))  # fmt: skip
    factors = (Scalar(name, dtype) for name in ("kappa", "dt", "alpha", "beta", "plus", "minus", "none"))
    sizes = (Size("length"), Size("m"), Size("n"), Size("splits"), Size("product_splits"))
    wide = (Scalar(name, "int64") for name in ("wide_length", "wide_m", "wide_n", "one"))
    return (*inputs, *outputs, *between, *observed, *sums, *factors, *sizes, *wide)


STATES, OBSERVATIONS = ("prior", "gradient", "change", "divergences"), ("error", "weighted", "likelihoods")
BETWEEN = (*STATES, *OBSERVATIONS, "products")
PARTS = ("free_energy", "complexity", "accuracy")
PARAMETERS = {"kappa": 0.01, "dt": 0.125, "alpha": 0.9, "beta": 0.1, "plus": 1.0, "minus": -1.0, "none": 0.0, "one": 1}


def sizes(dtype: str, grid: Callable[..., Any] = derived) -> dict[str, Callable[..., Any]]:
    """The grid of the fused forms, of the product alone, and 64-bit forms of sizes that some entries take."""
    return {
        **grid(dtype), "product_splits": lambda m, n: product_splits(m, n, True), "counters": lambda tiles: tiles + 1,
        "wide_length": lambda length: length, "wide_m": lambda m: m, "wide_n": lambda n: n,
    }  # fmt: skip


def on_observations(entry: str, dtype: str, m: int, *names: Any) -> Launch:
    return launch_map(entry, "m", (*names, "wide_m"))(dtype)(m)


def on_states(entry: str, dtype: str, n: int, *names: Any) -> Launch:
    return launch_map(entry, "n", (*names, "wide_n"))(dtype)(n)


def summed(dtype: str, count: int, device: Device, *names: Any) -> Launch:
    return sum_launch(
        f"ai_sum_reduction<{NUMBERS[dtype]}>",
        count,
        device,
        (names[0], names[1], "by_block", "arrived", names[2]),
        dtype,
    )


def axpby(dtype: str, n: int, *names: Any) -> Launch:
    return Launch(-(-n // (256 * 16 // (4 if dtype == "float32" else 8))), 256, entry=AXPBY[dtype], arguments=names)


AXPBY = {"float32": "axpby", "float64": "axpby_f64"}


def project(dtype: str, n: int) -> Launch:
    entry = f"ai_hierarchical_project<{NUMBERS[dtype]}>"
    return Launch(project_blocks(n, dtype), 256, entry=entry, arguments=("level", "prior", "wide_length", "wide_n"))


def velocity(dtype: str, n: int) -> tuple[Launch, ...]:
    change = on_states("ai_velocity_update<{}>", dtype, n, "next", "mu", "change", "dt")
    return change, axpby(dtype, n, "change", "before", "velocity", "alpha", "beta", "wide_n")


def baseline(dtype: str) -> Callable[..., Any]:
    """Every step in a separate launch; the product takes a second one where its rows are shared."""

    def launch(m: int, n: int, product_splits: int, device: Device) -> tuple[Any, ...]:
        passed = ("jacobian", "weighted", "gradient", "products", "plus", "none", "m", "n", "product_splits")
        step = ("mu", "gradient", "prior", "var_p", "next", "kappa")
        return (
            project(dtype, n),
            on_observations("ai_prediction_error<{}, false>", dtype, m, "o", "g", "precision", "error"),
            on_observations("ai_precision_weight<{}>", dtype, m, "precision", "error", "weighted"),
            *products(m, n, dtype, transpose=True, splits=product_splits, arguments=passed),
            on_states("ai_belief_update_prior<{}>", dtype, n, *step),
            *velocity(dtype, n),
            on_states("ai_kl_divergence<{}>", dtype, n, "next", "prior", "var_q", "var_p", "divergences"),
            summed(dtype, n, device, "divergences", "complexity", "wide_n"),
            on_observations("ai_accuracy<{}>", dtype, m, "error", "precision", "likelihoods"),
            summed(dtype, m, device, "likelihoods", "accuracy", "wide_m"),
            axpby(dtype, 1, "complexity", "accuracy", "free_energy", "plus", "minus", "one"),
        )

    return launch


def partial(dtype: str) -> Callable[..., Any]:
    """The documents' fused kernels: five launches."""

    def launch(m: int, n: int, tiles: int, splits: int, device: Device) -> tuple[Launch, ...]:
        number = NUMBERS[dtype]
        step = ("mu", "jacobian", "o", "g", "precision", "prior", "var_p", "next", "parts", "arrived", "kappa",
                "m", "n", "splits")  # fmt: skip
        energy = (
            "next", "prior", "var_q", "var_p", "o", "g", "precision", *PARTS, "by_block", "arrived", "wide_n", "wide_m",
        )  # fmt: skip
        return (
            project(dtype, n),
            Launch(tiles * splits, 256, entry=f"fused_belief_update<{number}, true>", arguments=step),
            *velocity(dtype, n),
            sum_launch(f"fused_free_energy<{number}>", max(n, m), device, energy, dtype),
        )

    return launch


def full(dtype: str, lanes: Callable[..., Any] = lanes_of) -> Callable[..., Any]:
    """One launch: a block for the observations, then those of the columns."""
    passed = ("level", "o", "g", "precision", "jacobian", "mu", "var_q", "var_p", "before", "next", "velocity", *PARTS,
              "parts", "by_tile", "arrived", "kappa", "dt", "alpha", "beta", "length", "m", "n",
              "splits")  # fmt: skip

    def launch(m: int, n: int, tiles: int, splits: int) -> Launch:
        entry = f"fused_active_inference<{NUMBERS[dtype]}, {lanes(m, n)}>"
        return Launch(tiles * splits + 1, 256, entry=entry, arguments=passed)

    return launch


def full_wide(dtype: str) -> Callable[..., Any]:
    """The same with wide tiles, whose blocks share the rows, at any size."""
    return full(dtype, lambda m, n: LANES)


def prior_of(level: AnyArray, n: int, length: int, xp: ArrayModule) -> AnyArray:
    return xp.tile(level, -(-n // length))[:n]


def reference(
    level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray, var_q: AnyArray,
    var_p: AnyArray, before: AnyArray, n: int, length: int, kappa: float, dt: float, alpha: float, beta: float,
    xp: ArrayModule,
) -> tuple[AnyArray, ...]:  # fmt: skip
    prior = prior_of(level, n, length, xp)
    moved = mu + kappa * (jacobian.T @ (precision * (o - g)) + (prior - mu) / var_p)
    complexity = divergence(moved, prior, var_q, var_p, xp).sum()
    accuracy = log_likelihood(o - g, precision, xp).sum()
    return moved, alpha * (moved - mu) / dt + beta * before, complexity - accuracy, complexity, accuracy


def belief_size(
    level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray, var_p: AnyArray,
    n: int, length: int, kappa: float, xp: ArrayModule,
) -> AnyArray:  # fmt: skip
    """The absolute terms of the next belief."""
    likelihood = xp.abs(jacobian).T @ (precision * (xp.abs(o) + xp.abs(g)))
    return xp.abs(mu) + kappa * (likelihood + (xp.abs(prior_of(level, n, length, xp)) + xp.abs(mu)) / var_p)


def velocity_size(
    level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray, var_p: AnyArray,
    before: AnyArray, n: int, length: int, kappa: float, dt: float, alpha: float, beta: float, xp: ArrayModule,
) -> AnyArray:  # fmt: skip
    size = belief_size(level, o, g, precision, jacobian, mu, var_p, n, length, kappa, xp)
    return alpha * size / dt + beta * xp.abs(before)


def complexity_size(
    level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray, var_q: AnyArray,
    var_p: AnyArray, n: int, length: int, kappa: float, xp: ArrayModule,
) -> AnyArray:  # fmt: skip
    """The terms, all of one sign, and how far they move with an error of the belief."""
    prior, size = (
        prior_of(level, n, length, xp),
        belief_size(level, o, g, precision, jacobian, mu, var_p, n, length, kappa, xp),
    )
    moved = mu + kappa * (jacobian.T @ (precision * (o - g)) + (prior - mu) / var_p)
    return (divergence(moved, prior, var_q, var_p, xp) + xp.abs(moved - prior) / at_least(var_p, xp) * size).sum()


def accuracy_size(o: AnyArray, g: AnyArray, precision: AnyArray, xp: ArrayModule) -> AnyArray:
    return likelihood_size(o - g, precision, xp).sum()


def energy_size(
    level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray, var_q: AnyArray,
    var_p: AnyArray, n: int, length: int, kappa: float, xp: ArrayModule,
) -> AnyArray:  # fmt: skip
    complexity = complexity_size(level, o, g, precision, jacobian, mu, var_q, var_p, n, length, kappa, xp)
    return complexity + accuracy_size(o, g, precision, xp)


def tolerance(dtype: str) -> dict[str, Tolerance]:
    sizes = {"next": belief_size, "velocity": velocity_size, "free_energy": energy_size,
             "complexity": complexity_size, "accuracy": accuracy_size}  # fmt: skip
    return {name: reduction(size, terms=ROUNDING[dtype]) for name, size in sizes.items()}


PEERS = {"torch": torch_chain, "jax": Peer(by_xla(jax_chain), prepares=True)}
IN_DOUBLE = {name: peer for name, peer in PEERS.items() if name != "jax"}  # which has float64 only on request


def stage(meaning: str, launch: Callable[..., Any], dtype: str = "float32", **changes: Any) -> Variant:
    """A stage of fusion: the same inputs and outputs by other launches."""
    derived = sizes(dtype, derived_by_lanes) if launch is full else sizes(dtype)
    if dtype == "float32":
        return Variant(meaning, launch=launch(dtype), derived=derived, **changes)
    return Variant(
        meaning, launch=launch(dtype), arithmetic="fp64", arguments=arguments(dtype), derived=derived,
        tolerance=tolerance(dtype), only_labels=("S0", "S1"), **changes,
    )  # fmt: skip


spec = KernelSpec(
    entry="fused_active_inference<float, 32>",
    arguments=arguments("float32"),
    parameters=PARAMETERS,
    derived=sizes("float32"),
    rules=(Rule("length >= 1", lambda length: length >= 1), Rule("dt other than 0", lambda dt: dt != 0)),
    launch=baseline("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    before="active_inference_chain:full",
    flops=lambda m, n: 2 * m * n + 8 * m + 18 * n,
    workloads={
        "S0": Workload(length=100, m=100, n=900),
        "S1": Workload(length=1024, m=8192, n=16_384),
        "S2": Workload(length=1024, m=16_384, n=32_768),
    },
    edges=tuple(
        Workload(length=length, m=m, n=n)
        for length, m, n in ((1, 1, 1), (3, 10, 20), (7, 20, 129), (50, 70, 300), (100, 257, 66), (9, 1000, 132))
    ),
    variants={
        "partial": stage(
            "the documents' fused kernels, five launches", partial, before="active_inference_chain:full"
        ),
        "full": stage(
            "one launch", full, peers=PEERS,
            budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=x) for x in ("S1", "S2")),
        ),
        "full_wide": stage("one launch of wide tiles", full_wide, only_labels=("S0",)),
        "f64": stage("in double precision", baseline, "float64", before="active_inference_chain:f64_full"),
        "f64_partial": stage(
            "the documents' fused kernels in double precision", partial, "float64",
            before="active_inference_chain:f64_full",
        ),
        "f64_full": stage("one launch in double precision", full, "float64", peers=IN_DOUBLE),
    },
    chains=(
        Chain("active_inference", {"baseline": None, "partial": "partial", "full": "full", "persistent": "full"},
              BETWEEN),
        Chain("active_inference_f64",
              {"baseline": "f64", "partial": "f64_partial", "full": "f64_full", "persistent": "f64_full"}, BETWEEN),
    ),
)  # fmt: skip
