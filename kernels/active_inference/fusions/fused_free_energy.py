"""Free energy of a Gaussian belief."""

from prism_bench import Workload
from prism_bench.extensions.fusion import ByHand, Input, Map, Program, Reduce, Shared, names
from prism_bench.extensions.fusion.functions import divergence, log_likelihood

# Bound by memory: 16 bytes a state and 12 an observation at the rate of reading. S1 takes 72 us on an H200, 0.86 of a
# copy's rate (81 with branches and divisions), by hand too: DRAM 77 %, issue slots 36 %; S2 0.98. In doubles 202 us,
# 0.62: issue slots 68 %, DRAM 55 %.
SPREADS = Shared("gaussian", "spreads")
mu_q, mu_p, var_q, var_p, o, g, precision = names("mu_q mu_p var_q var_p o g precision")
error, complexity, accuracy = names("error complexity accuracy")


def torch_free_energy(torch, mu_q, mu_p, var_q, var_p, o, g, precision):
    normal = torch.distributions.Normal  # to validate its arguments it would wait for the device
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    complexity = torch.distributions.kl_divergence(q, p).sum()
    accuracy = normal(g, precision.rsqrt(), validate_args=False).log_prob(o).sum()
    return complexity - accuracy, complexity, accuracy


program = Program(
    summary="Free energy of a Gaussian belief, complexity - accuracy in nats, with both parts, in one launch.",
    inputs=(
        *(Input("mu_q", "n"), Input("mu_p", "n"), Input("var_q", "n", SPREADS), Input("var_p", "n", SPREADS)),
        *(Input("o", "m"), Input("g", "m"), Input("precision", "m", SPREADS)),
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
    peers={"torch": torch_free_energy},
    by_hand=ByHand("fused_free_energy<{}>"),
    replaces=("fused_kl_complexity", "fused_accuracy_pipeline"),
)
