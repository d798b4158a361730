"""Complexity of a Gaussian belief, D(q || p) in nats: components and their sum in one pass and one launch."""

from prism_bench_catalogue.include.gaussian import STATES, divergence, edges, spreads
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, sum_launch, sum_scratch

from prism_bench import Budget, In, KernelSpec, Out, Size, reduction

# Bound by memory: 16 bytes a state at the rate of reading; separate launches move 24.


def arguments(dtype):
    means = (In("mu_q", "n", dtype), In("mu_p", "n", dtype))
    variances = (In("var_q", "n", dtype, fill=spreads), In("var_p", "n", dtype, fill=spreads))
    return (*means, *variances, Out("complexity", "1", dtype), *sum_scratch(1), Size("n", "int64"))


def launch(dtype):
    return lambda n, device: sum_launch(f"fused_kl_complexity<{NUMBERS[dtype]}>", n, device)


def complexity(mu_q, mu_p, var_q, var_p, xp):
    return divergence(mu_q, mu_p, var_q, var_p, xp).sum()


def tolerance(dtype):
    """Every term is of one sign."""
    return reduction(magnitude=complexity, terms=ROUNDING[dtype])


def torch_complexity(torch, mu_q, mu_p, var_q, var_p):
    normal = torch.distributions.Normal
    return torch.distributions.kl_divergence(normal(mu_q, var_q.sqrt()), normal(mu_p, var_p.sqrt())).sum()


spec = KernelSpec(
    entry="fused_kl_complexity<float>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=complexity,
    tolerance=tolerance("float32"),
    peers={"torch": torch_complexity},
    flops=lambda n: 8 * n,
    workloads=STATES,
    edges=edges("n"),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    replaces=("ai_kl_divergence", "ai_sum_reduction"),
    variants={"f64": in_double(arguments, launch, tolerance)},
)
