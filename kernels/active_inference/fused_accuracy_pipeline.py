"""Accuracy of a belief in nats: raw errors, their log-likelihoods and the sum of these, in one launch.

`compat` takes the weighted errors for the likelihood, as the first published chain did, which counts precisions three
times; it is there to reproduce that value.
"""

from types import ModuleType
from typing import Any

from prism_bench import Workload
from prism_bench.extensions.fusion import (
    ByHand,
    FusionProgram,
    Input,
    Map,
    ProgramForm,
    Reduce,
    fuse,
    log_likelihood,
    names,
)
from prism_bench.spec import AnyArray, Peer

from ..include.entropy.gaussian import spreads
from ..peers import cub_peers

# Memory-bound: 12 bytes an observation are read once; separate launches move 32. The hand-written form is as fast.
o, g, precision, error = names("o g precision error")


def torch_accuracy(torch: ModuleType, o: AnyArray, g: AnyArray, precision: AnyArray) -> Any:
    return torch.distributions.Normal(g, precision.rsqrt(), validate_args=False).log_prob(o).sum()


likelihoods = Reduce("accuracy", "sum", log_likelihood(error, precision))


def cub_accuracy(cub: ModuleType, o: AnyArray, g: AnyArray, precision: AnyArray) -> Any:
    """One sum of terms that are made where the three arrays are read."""
    term = "-0.5f * (v[2] * (v[0] - v[1]) * (v[0] - v[1]) + 1.8378770664093453f - logf(v[2]))"
    return cub_peers.sums(cub, (o, g, precision), term)


program = FusionProgram(
    inputs=(Input("o", "m"), Input("g", "m"), Input("precision", "m", spreads)),
    stages=(Map("error", o - g), likelihoods),
    outputs=("accuracy",),
    numbers=("float32", "float64"),
    within=1e-4,
    workloads={"S0": Workload(m=100), "S1": Workload(m=1 << 24), "S2": Workload(m=1 << 26)},
    edges=tuple(Workload(m=m) for m in (0, 1, 3, 255, 1025, 4099)),
    peers={"torch": torch_accuracy, "cub": Peer(cub_accuracy, prepares=True)},
    forms={
        "compat": ProgramForm(
            "the likelihood of weighted errors, as first published", (Map("error", precision * (o - g)), likelihoods)
        )
    },
    by_hand=ByHand("fused_accuracy_pipeline<{}, false>"),
    replaces=("ai_prediction_error", "ai_accuracy", "ai_sum_reduction"),
)
spec = fuse(program, __name__)
