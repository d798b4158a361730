"""A step of belief in one launch: mu + kappa (J^T (precision (o - g)) + (prior - mu) / variance).

Without `prior` the last term is left out, as in the first published chain. J [m, n] is most of what moves.

Written by `prism-bench fuse` from fusions/fused_belief_update.py: change that and run it again.
"""

from pathlib import Path

from prism_bench_catalogue.include.column_sums import derived
from prism_bench_catalogue.include.gaussian import spreads
from prism_bench_catalogue.include.host_plan import together
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, launch_map

from prism_bench import (
    Budget,
    Chain,
    In,
    InOut,
    KernelSpec,
    Launch,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    reduction,
)

BY_HAND = Path(__file__).parents[1] / "fused_belief_update.cu"


def arguments(dtype):
    inputs = (
        InOut("mu", "n", dtype),
        In("jacobian", "m n", dtype),
        In("o", "m", dtype),
        In("g", "m", dtype),
        In("precision", "m", dtype, fill=spreads),
        In("prior", "n", dtype),
        In("variance", "n", dtype, fill=spreads),
    )
    return (
        *inputs,
        Scratch("parts", "splits n", dtype),
        Scratch("arrived", "tiles", "uint32"),
        Scalar("kappa", dtype),
        Size("m"),
        Size("n"),
        Size("splits"),
    )


def launch(dtype, entry="fused_belief_update_generated<{}>", passed=None):
    return lambda tiles, splits: Launch(tiles * splits, 256, entry=entry.format(NUMBERS[dtype]), arguments=passed)


def reference(mu, jacobian, o, g, precision, prior, variance, kappa):
    gradient = jacobian.T @ (precision * (o - g))
    return mu + kappa * (gradient + (prior - mu) / variance)


def mu_size(mu, jacobian, o, g, precision, prior, variance, kappa, xp):
    gradient = xp.abs(jacobian).T @ (xp.abs(precision) * (xp.abs(o) + xp.abs(g)))
    return xp.abs(mu) + xp.abs(kappa) * (gradient + (xp.abs(prior) + xp.abs(mu)) / xp.abs(variance))


def tolerance(dtype):
    return {"mu": reduction(mu_size, terms=ROUNDING[dtype])}


def arguments_separate(dtype):
    given = (
        InOut("mu", "n", dtype),
        In("jacobian", "m n", dtype),
        In("o", "m", dtype),
        In("g", "m", dtype),
        In("precision", "m", dtype, fill=spreads),
        In("prior", "n", dtype),
        In("variance", "n", dtype, fill=spreads),
    )
    between = (Scratch("weighted", "m", dtype), Scratch("gradient", "n", dtype))
    return (
        *given,
        *between,
        Scratch("parts", "splits n", dtype),
        Scratch("arrived", "tiles", "uint32"),
        Scalar("kappa", dtype),
        Scalar("wide_m", "int64"),
        Size("m"),
        Size("n"),
        Size("splits"),
        Scalar("wide_n", "int64"),
    )


def launch_weighted(
    dtype, entry="fused_belief_update_alone_weighted<{}>", passed=("o", "g", "precision", "weighted", "wide_m")
):
    return lambda m: launch_map(entry, arguments=passed)(dtype)(m)


def launch_gradient(
    dtype,
    entry="fused_belief_update_alone_gradient<{}>",
    passed=("jacobian", "weighted", "gradient", "parts", "arrived", "m", "n", "splits"),
):
    return lambda tiles, splits: Launch(tiles * splits, 256, entry=entry.format(NUMBERS[dtype]), arguments=passed)


def launch_next(
    dtype, entry="fused_belief_update_alone_next<{}>", passed=("mu", "prior", "variance", "gradient", "kappa", "wide_n")
):
    return lambda n: launch_map(entry, arguments=passed)(dtype)(n)


def launch_separate(dtype):
    return together(launch_weighted(dtype), launch_gradient(dtype), launch_next(dtype))


def arguments_likelihood(dtype):
    inputs = (
        InOut("mu", "n", dtype),
        In("jacobian", "m n", dtype),
        In("o", "m", dtype),
        In("g", "m", dtype),
        In("precision", "m", dtype, fill=spreads),
    )
    return (
        *inputs,
        Scratch("parts", "splits n", dtype),
        Scratch("arrived", "tiles", "uint32"),
        Scalar("kappa", dtype),
        Size("m"),
        Size("n"),
        Size("splits"),
    )


def launch_likelihood(dtype, entry="fused_belief_update_generated_likelihood<{}>", passed=None):
    return lambda tiles, splits: Launch(tiles * splits, 256, entry=entry.format(NUMBERS[dtype]), arguments=passed)


def reference_likelihood(mu, jacobian, o, g, precision, kappa):
    gradient = jacobian.T @ (precision * (o - g))
    return mu + kappa * gradient


def mu_size_likelihood(mu, jacobian, o, g, precision, kappa, xp):
    gradient = xp.abs(jacobian).T @ (xp.abs(precision) * (xp.abs(o) + xp.abs(g)))
    return xp.abs(mu) + xp.abs(kappa) * gradient


def tolerance_likelihood(dtype):
    return {"mu": reduction(mu_size_likelihood, terms=ROUNDING[dtype])}


def torch_step(torch, mu, jacobian, o, g, precision, prior, variance, kappa):
    return mu + kappa * (torch.mv(jacobian.T, precision * (o - g)) + (prior - mu) / variance)


spec = KernelSpec(
    entry="fused_belief_update_generated",
    arguments=arguments("float32"),
    parameters={"kappa": 0.01},
    derived={
        "tiles": lambda n: derived("float32")["tiles"](n),
        "splits": lambda m, n: derived("float32")["splits"](m, n),
    },
    rules=(Rule("a finite kappa", lambda kappa: abs(kappa) < float("inf")),),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_step},
    flops=lambda m, n: 2 * m * n + 2 * m + 5 * n,
    workloads={"S0": Workload(m=100, n=900), "S1": Workload(m=8192, n=16384), "S2": Workload(m=16384, n=32768)},
    edges=(
        Workload(m=0, n=5),
        Workload(m=5, n=0),
        Workload(m=1, n=1),
        Workload(m=10, n=20),
        Workload(m=20, n=129),
        Workload(m=70, n=300),
        Workload(m=257, n=66),
    ),
    replaces=("ai_prediction_error", "gemv", "ai_belief_update"),
    chains=(Chain("fused_belief_update", {"baseline": "separate", "full": None}, ("weighted", "gradient")),),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "likelihood": Variant(
            "without the prior's gradient",
            arguments=arguments_likelihood("float32"),
            launch=launch_likelihood("float32"),
            reference=reference_likelihood,
            tolerance=tolerance_likelihood("float32"),
            flops=lambda m, n: 2 * m * n + 2 * m + 2 * n,
            golden=(),
            budgets=(),
            only_labels=("S0",),
        ),
        "f64": in_double(
            arguments,
            launch,
            tolerance,
            derived={
                "tiles": lambda n: derived("float64")["tiles"](n),
                "splits": lambda m, n: derived("float64")["splits"](m, n),
            },
        ),
        "separate": Variant(
            "every stage in a launch of its own",
            arguments=arguments_separate("float32"),
            launch=launch_separate("float32"),
            derived={
                "wide_m": lambda m: m,
                "wide_n": lambda n: n,
                "tiles": lambda n: derived("float32")["tiles"](n),
                "splits": lambda m, n: derived("float32")["splits"](m, n),
            },
            golden=(),
            budgets=(),
        ),
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch(
                "float32",
                "fused_belief_update<{}, true>",
                (
                    "mu",
                    "jacobian",
                    "o",
                    "g",
                    "precision",
                    "prior",
                    "variance",
                    "mu",
                    "parts",
                    "arrived",
                    "kappa",
                    "m",
                    "n",
                    "splits",
                ),
            ),
        ),
    },
)
