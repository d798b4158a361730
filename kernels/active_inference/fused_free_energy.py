"""Free energy of a Gaussian belief, complexity - accuracy in nats, with both parts, in one launch."""

from types import ModuleType
from typing import Any

from prism_bench import Workload
from prism_bench.extensions.fusion import (
    ByHand,
    FusionProgram,
    Input,
    Map,
    Reduce,
    divergence,
    fuse,
    log_likelihood,
    names,
)
from prism_bench.spec import AnyArray, Peer

from ..include.entropy.gaussian import spreads
from ..peers.xla_peers import by_xla

# Memory-bound: 16 bytes a state and 12 an observation are read once. Terms without branches and divisions are faster,
# the hand-written form as fast. In doubles issue slots limit it before DRAM does.
mu_q, mu_p, var_q, var_p, o, g, precision = names("mu_q mu_p var_q var_p o g precision")
error, complexity, accuracy = names("error complexity accuracy")


def torch_free_energy(
    torch: ModuleType,
    mu_q: AnyArray,
    mu_p: AnyArray,
    var_q: AnyArray,
    var_p: AnyArray,
    o: AnyArray,
    g: AnyArray,
    precision: AnyArray,
) -> Any:
    normal = torch.distributions.Normal  # to validate its arguments it would wait for the device
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    complexity = torch.distributions.kl_divergence(q, p).sum()
    accuracy = normal(g, precision.rsqrt(), validate_args=False).log_prob(o).sum()
    return complexity - accuracy, complexity, accuracy


def jax_free_energy(
    jax: ModuleType,
    mu_q: AnyArray,
    mu_p: AnyArray,
    var_q: AnyArray,
    var_p: AnyArray,
    o: AnyArray,
    g: AnyArray,
    precision: AnyArray,
) -> Any:
    log, spread = jax.numpy.log, var_q / var_p
    complexity = 0.5 * (spread - 1 - log(spread) + (mu_q - mu_p) ** 2 / var_p).sum()
    accuracy = -0.5 * (precision * (o - g) ** 2 + 1.8378770664093453 - log(precision)).sum()
    return complexity - accuracy, complexity, accuracy


program = FusionProgram(
    inputs=(
        *(Input("mu_q", "n"), Input("mu_p", "n"), Input("var_q", "n", spreads), Input("var_p", "n", spreads)),
        *(Input("o", "m"), Input("g", "m"), Input("precision", "m", spreads)),
    ),
    stages=(
        Reduce("complexity", "sum", divergence(mu_q, mu_p, var_q, var_p)),
        Map("error", o - g),
        Reduce("accuracy", "sum", log_likelihood(error, precision)),
        Map("free_energy", complexity - accuracy),
    ),
    outputs=("free_energy", "complexity", "accuracy"),
    numbers=("float32", "float64"),
    within=1e-4,
    workloads={
        "S0": Workload(n=900, m=100),
        "S1": Workload(n=1 << 24, m=8192),
        "S2": Workload(n=1 << 26, m=16_384),
    },
    edges=tuple(Workload(n=n, m=m) for n, m in ((0, 0), (1, 0), (0, 3), (3, 255), (1025, 7), (4099, 5001))),
    peers={"torch": torch_free_energy, "jax": Peer(by_xla(jax_free_energy), prepares=True)},
    by_hand=ByHand("fused_free_energy<{}>"),
    replaces=("fused_kl_complexity", "fused_accuracy_pipeline"),
)
spec = fuse(program, __name__)
