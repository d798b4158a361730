"""Complexity of a Gaussian belief, D(q || p) in nats: components and their sum in one pass and one launch.

Written by `prism-bench fuse` from fusions/fused_kl_complexity.py: change that and run it again.
"""

from pathlib import Path

from prism_bench_catalogue.include.gaussian import divergence, spreads
from prism_bench_catalogue.include.host_plan import together
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, launch_map, sum_launch, sum_scratch

from prism_bench import Budget, Chain, In, KernelSpec, Out, Scalar, Scratch, Size, Variant, Workload, reduction

BY_HAND = Path(__file__).parents[1] / "fused_kl_complexity.cu"


def arguments(dtype):
    inputs = (
        In("mu_q", "n", dtype),
        In("mu_p", "n", dtype),
        In("var_q", "n", dtype, fill=spreads),
        In("var_p", "n", dtype, fill=spreads),
    )
    outputs = (Out("complexity", "1", dtype),)
    return (*inputs, *outputs, *sum_scratch(1), Size("n", "int64"))


def launch(dtype, entry="fused_kl_complexity_generated<{}>", passed=None):
    return lambda n, device: sum_launch(entry.format(NUMBERS[dtype]), n, device, passed)


def reference(mu_q, mu_p, var_q, var_p, xp):
    return divergence(mu_q, mu_p, var_q, var_p, xp).sum()


def complexity_size(mu_q, mu_p, var_q, var_p, xp):
    return divergence(mu_q, mu_p, var_q, var_p, xp).sum()


def tolerance(dtype):
    return {"complexity": reduction(complexity_size, terms=ROUNDING[dtype])}


def arguments_separate(dtype):
    given = (
        In("mu_q", "n", dtype),
        In("mu_p", "n", dtype),
        In("var_q", "n", dtype, fill=spreads),
        In("var_p", "n", dtype, fill=spreads),
        Out("complexity", "1", dtype),
    )
    between = (Scratch("complexity_terms", "n", dtype),)
    return (*given, *between, *sum_scratch(1), Scalar("wide_n", "int64"))


def launch_complexity_terms(
    dtype,
    entry="fused_kl_complexity_alone_complexity_terms<{}>",
    passed=("mu_q", "mu_p", "var_q", "var_p", "complexity_terms", "wide_n"),
):
    return lambda n: launch_map(entry, arguments=passed)(dtype)(n)


def launch_complexity(
    dtype,
    entry="fused_kl_complexity_alone_complexity<{}>",
    passed=("complexity_terms", "complexity", "by_block", "arrived", "wide_n"),
):
    return lambda n, device: sum_launch(entry.format(NUMBERS[dtype]), n, device, passed)


def launch_separate(dtype):
    return together(launch_complexity_terms(dtype), launch_complexity(dtype))


def torch_complexity(torch, mu_q, mu_p, var_q, var_p):
    normal = torch.distributions.Normal
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    return torch.distributions.kl_divergence(q, p).sum()


spec = KernelSpec(
    entry="fused_kl_complexity_generated",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_complexity},
    flops=lambda n: 8 * n,
    workloads={"S0": Workload(n=900), "S1": Workload(n=16777216), "S2": Workload(n=67108864)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=3), Workload(n=255), Workload(n=1025), Workload(n=4099)),
    replaces=("ai_kl_divergence", "ai_sum_reduction"),
    chains=(Chain("fused_kl_complexity", {"baseline": "separate", "full": None}, ("complexity_terms",)),),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "f64": in_double(arguments, launch, tolerance),
        "separate": Variant(
            "every stage in a launch of its own",
            arguments=arguments_separate("float32"),
            launch=launch_separate("float32"),
            derived={"wide_n": lambda n: n},
            golden=(),
            budgets=(),
        ),
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch("float32", "fused_kl_complexity<{}>"),
        ),
    },
)
