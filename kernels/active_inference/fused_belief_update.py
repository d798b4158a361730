"""A step of belief in one launch: mu + kappa (J^T (precision (o - g)) + (prior - mu) / variance).

Without `prior` the last term is left out, as in the first published chain. J [m, n] is most of what moves.
"""

from types import ModuleType
from typing import Any

from prism_bench import Workload
from prism_bench.extensions.fusion import ByHand, ColumnSums, FusionProgram, Input, Map, ProgramForm, fuse, names
from prism_bench.spec import AnyArray

from ..include.entropy.gaussian import spreads

# Memory-bound by J. Fusion saves launches, not bytes, once J exceeds L2.
mu, o, g, precision, prior, variance, kappa = names("mu o g precision prior variance kappa")
weighted, gradient = names("weighted gradient")


def torch_step(
    torch: ModuleType,
    mu: AnyArray,
    jacobian: AnyArray,
    o: AnyArray,
    g: AnyArray,
    precision: AnyArray,
    prior: AnyArray,
    variance: AnyArray,
    kappa: float,
) -> Any:
    return mu + kappa * (torch.mv(jacobian.T, precision * (o - g)) + (prior - mu) / variance)


likelihood = (Map("weighted", precision * (o - g)), ColumnSums("gradient", "jacobian", weighted))

program = FusionProgram(
    inputs=(
        *(Input("mu", "n"), Input("jacobian", "m n"), Input("o", "m"), Input("g", "m")),
        *(Input("precision", "m", spreads), Input("prior", "n"), Input("variance", "n", spreads)),
    ),
    stages=(*likelihood, Map("next", mu + kappa * (gradient + (prior - mu) / variance), into="mu")),
    outputs=("next",),
    scalars={"kappa": 0.01},
    numbers=("float32", "float64"),
    within=1e-4,
    workloads={
        "S0": Workload(m=100, n=900),
        "S1": Workload(m=8192, n=16_384),
        "S2": Workload(m=16_384, n=32_768),
    },
    edges=tuple(Workload(m=m, n=n) for m, n in ((0, 5), (5, 0), (1, 1), (10, 20), (20, 129), (70, 300), (257, 66))),
    peers={"torch": torch_step},
    forms={
        "likelihood": ProgramForm(
            "without the prior's gradient", (*likelihood, Map("next", mu + kappa * gradient, into="mu"))
        )
    },
    by_hand=ByHand(
        "fused_belief_update<{}, true>",
        tuple("mu jacobian o g precision prior variance mu parts arrived kappa m n splits".split()),
    ),
    replaces=("ai_prediction_error", "gemv", "ai_belief_update"),
)  # fmt: skip
spec = fuse(program, __name__)
