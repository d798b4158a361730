"""Complexity of a Gaussian belief, D(q || p) in nats: components and their sum in one pass and one launch."""

from types import ModuleType
from typing import Any

from prism_bench import Workload
from prism_bench.extensions.fusion import ByHand, FusionProgram, Input, Reduce, divergence, fuse, names
from prism_bench.spec import AnyArray, Peer

from ..include.entropy.gaussian import spreads
from ..peers import cub_peers

# Memory-bound: 16 bytes a state are read once; separate launches move 24. Terms without branches and divisions are
# faster. In doubles issue slots limit it before DRAM does.
mu_q, mu_p, var_q, var_p = names("mu_q mu_p var_q var_p")


def torch_complexity(torch: ModuleType, mu_q: AnyArray, mu_p: AnyArray, var_q: AnyArray, var_p: AnyArray) -> Any:
    normal = torch.distributions.Normal
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    return torch.distributions.kl_divergence(q, p).sum()


def cub_complexity(cub: ModuleType, mu_q: AnyArray, mu_p: AnyArray, var_q: AnyArray, var_p: AnyArray) -> Any:
    """One sum of terms that are made where the four arrays are read."""
    term = "0.5f * (v[2] / v[3] - 1.0f - logf(v[2] / v[3]) + (v[0] - v[1]) * (v[0] - v[1]) / v[3])"
    return cub_peers.sums(cub, (mu_q, mu_p, var_q, var_p), term)


program = FusionProgram(
    inputs=(Input("mu_q", "n"), Input("mu_p", "n"), Input("var_q", "n", spreads), Input("var_p", "n", spreads)),
    stages=(Reduce("complexity", "sum", divergence(mu_q, mu_p, var_q, var_p)),),
    outputs=("complexity",),
    numbers=("float32", "float64"),
    within=1e-4,
    workloads={"S0": Workload(n=900), "S1": Workload(n=1 << 24), "S2": Workload(n=1 << 26)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 255, 1025, 4099)),
    peers={"torch": torch_complexity, "cub": Peer(cub_complexity, prepares=True)},
    by_hand=ByHand("fused_kl_complexity<{}>"),
    replaces=("ai_kl_divergence", "ai_sum_reduction"),
)
spec = fuse(program, __name__)
