"""Accuracy of a belief: raw errors, their log-likelihoods and the sum of these, in one pass and one launch.

`compat` takes the weighted errors for the likelihood, as the first published chain did, which counts precisions three
times; it is there to reproduce that value.
"""

from prism_bench_catalogue.include.gaussian import OBSERVATIONS, edges, likelihood_size, log_likelihood, spreads
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, sum_launch, sum_scratch

from prism_bench import Budget, In, KernelSpec, Out, Size, Variant, reduction

# Bound by memory: 12 bytes an observation at the rate of reading; separate launches move 32.


def arguments(dtype):
    inputs = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    return (*inputs, Out("accuracy", "1", dtype), *sum_scratch(1), Size("m", "int64"))


def launch_of(weighted):
    def launch(dtype):
        entry = f"fused_accuracy_pipeline<{NUMBERS[dtype]}, {weighted}>"
        return lambda m, device: sum_launch(entry, m, device)

    return launch


launch = launch_of("false")


def accuracy(o, g, precision, xp):
    return log_likelihood(o - g, precision, xp).sum()


def tolerance(dtype):
    size = lambda o, g, precision, xp: likelihood_size(o - g, precision, xp).sum()  # noqa: E731
    return reduction(magnitude=size, terms=ROUNDING[dtype])


def torch_accuracy(torch, o, g, precision):
    return torch.distributions.Normal(g, precision.rsqrt()).log_prob(o).sum()


spec = KernelSpec(
    entry="fused_accuracy_pipeline<float, false>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=accuracy,
    tolerance=tolerance("float32"),
    peers={"torch": torch_accuracy},
    flops=lambda m: 8 * m,
    workloads=OBSERVATIONS,
    edges=edges("m"),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    replaces=("ai_prediction_error", "ai_accuracy", "ai_sum_reduction"),
    variants={
        "compat": Variant(
            "the likelihood of weighted errors, as first published",
            launch=launch_of("true")("float32"),
            reference=lambda o, g, precision, xp: log_likelihood(precision * (o - g), precision, xp).sum(),
            tolerance=reduction(
                magnitude=lambda o, g, precision, xp: likelihood_size(precision * (o - g), precision, xp).sum()
            ),
            only_labels=("S0",),
            budgets=(),
        ),
        "f64": in_double(arguments, launch, tolerance),
    },
)
