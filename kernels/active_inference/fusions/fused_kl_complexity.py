"""Complexity of a Gaussian belief."""

from prism_bench import Workload
from prism_bench.extensions.fusion import ByHand, Input, Program, Reduce, Shared, names
from prism_bench.extensions.fusion.functions import divergence

# Bound by memory: 16 bytes a state at the rate of reading; separate launches move 24. S1 takes 68 us on an H200 (85
# with branches and divisions): DRAM 83 %, issue slots 35 %; in doubles 199 us, 0.63 of a copy's rate: issue slots 68 %,
# DRAM 56 %.
SPREADS = Shared("gaussian", "spreads")
mu_q, mu_p, var_q, var_p = names("mu_q mu_p var_q var_p")


def torch_complexity(torch, mu_q, mu_p, var_q, var_p):
    normal = torch.distributions.Normal
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    return torch.distributions.kl_divergence(q, p).sum()


program = Program(
    summary="Complexity of a Gaussian belief, D(q || p) in nats: components and their sum in one pass and one launch.",
    inputs=(Input("mu_q", "n"), Input("mu_p", "n"), Input("var_q", "n", SPREADS), Input("var_p", "n", SPREADS)),
    stages=(Reduce("complexity", "sum", divergence(mu_q, mu_p, var_q, var_p)),),
    outputs=("complexity",),
    numbers=("float32", "float64"),
    within=1e-4,
    workloads={"S0": Workload(n=900), "S1": Workload(n=1 << 24), "S2": Workload(n=1 << 26)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 255, 1025, 4099)),
    peers={"torch": torch_complexity},
    by_hand=ByHand("fused_kl_complexity<{}>"),
    replaces=("ai_kl_divergence", "ai_sum_reduction"),
)
