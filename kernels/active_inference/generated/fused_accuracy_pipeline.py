"""Accuracy of a belief in nats: raw errors, their log-likelihoods and the sum of these, in one launch.

`compat` takes the weighted errors for the likelihood, as the first published chain did, which counts precisions three
times; it is there to reproduce that value.

Written by `prism-bench fuse` from fusions/fused_accuracy_pipeline.py: change that and run it again.
"""

from pathlib import Path

from prism_bench_catalogue.include.gaussian import likelihood_size, log_likelihood, spreads
from prism_bench_catalogue.include.host_plan import together
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, launch_map, sum_launch, sum_scratch

from prism_bench import Budget, Chain, In, KernelSpec, Out, Scalar, Scratch, Size, Variant, Workload, reduction

BY_HAND = Path(__file__).parents[1] / "fused_accuracy_pipeline.cu"


def arguments(dtype):
    inputs = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    outputs = (Out("accuracy", "1", dtype),)
    return (*inputs, *outputs, *sum_scratch(1), Size("m", "int64"))


def launch(dtype, entry="fused_accuracy_pipeline_generated<{}>", passed=None):
    return lambda m, device: sum_launch(entry.format(NUMBERS[dtype]), m, device, passed)


def reference(o, g, precision, xp):
    return log_likelihood(o - g, precision, xp).sum()


def accuracy_size(o, g, precision, xp):
    return likelihood_size(o - g, precision, xp).sum()


def tolerance(dtype):
    return {"accuracy": reduction(accuracy_size, terms=ROUNDING[dtype])}


def arguments_separate(dtype):
    given = (
        In("o", "m", dtype),
        In("g", "m", dtype),
        In("precision", "m", dtype, fill=spreads),
        Out("accuracy", "1", dtype),
    )
    between = (Scratch("error", "m", dtype), Scratch("accuracy_terms", "m", dtype))
    return (*given, *between, *sum_scratch(1), Scalar("wide_m", "int64"))


def launch_error(dtype, entry="fused_accuracy_pipeline_alone_error<{}>", passed=("o", "g", "error", "wide_m")):
    return lambda m: launch_map(entry, arguments=passed)(dtype)(m)


def launch_accuracy_terms(
    dtype,
    entry="fused_accuracy_pipeline_alone_accuracy_terms<{}>",
    passed=("precision", "error", "accuracy_terms", "wide_m"),
):
    return lambda m: launch_map(entry, arguments=passed)(dtype)(m)


def launch_accuracy(
    dtype,
    entry="fused_accuracy_pipeline_alone_accuracy<{}>",
    passed=("accuracy_terms", "accuracy", "by_block", "arrived", "wide_m"),
):
    return lambda m, device: sum_launch(entry.format(NUMBERS[dtype]), m, device, passed)


def launch_separate(dtype):
    return together(launch_error(dtype), launch_accuracy_terms(dtype), launch_accuracy(dtype))


def arguments_compat(dtype):
    inputs = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    outputs = (Out("accuracy", "1", dtype),)
    return (*inputs, *outputs, *sum_scratch(1), Size("m", "int64"))


def launch_compat(dtype, entry="fused_accuracy_pipeline_generated_compat<{}>", passed=None):
    return lambda m, device: sum_launch(entry.format(NUMBERS[dtype]), m, device, passed)


def reference_compat(o, g, precision, xp):
    return log_likelihood(precision * (o - g), precision, xp).sum()


def accuracy_size_compat(o, g, precision, xp):
    return likelihood_size(precision * (o - g), precision, xp).sum()


def tolerance_compat(dtype):
    return {"accuracy": reduction(accuracy_size_compat, terms=ROUNDING[dtype])}


def torch_accuracy(torch, o, g, precision):
    return torch.distributions.Normal(g, precision.rsqrt(), validate_args=False).log_prob(o).sum()


spec = KernelSpec(
    entry="fused_accuracy_pipeline_generated",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_accuracy},
    flops=lambda m: 8 * m,
    workloads={"S0": Workload(m=100), "S1": Workload(m=16777216), "S2": Workload(m=67108864)},
    edges=(Workload(m=0), Workload(m=1), Workload(m=3), Workload(m=255), Workload(m=1025), Workload(m=4099)),
    replaces=("ai_prediction_error", "ai_accuracy", "ai_sum_reduction"),
    chains=(Chain("fused_accuracy_pipeline", {"baseline": "separate", "full": None}, ("error", "accuracy_terms")),),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "compat": Variant(
            "the likelihood of weighted errors, as first published",
            arguments=arguments_compat("float32"),
            launch=launch_compat("float32"),
            reference=reference_compat,
            tolerance=tolerance_compat("float32"),
            flops=lambda m: 9 * m,
            golden=(),
            budgets=(),
            only_labels=("S0",),
        ),
        "f64": in_double(arguments, launch, tolerance),
        "separate": Variant(
            "every stage in a launch of its own",
            arguments=arguments_separate("float32"),
            launch=launch_separate("float32"),
            derived={"wide_m": lambda m: m},
            golden=(),
            budgets=(),
        ),
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch("float32", "fused_accuracy_pipeline<{}, false>"),
        ),
    },
)
