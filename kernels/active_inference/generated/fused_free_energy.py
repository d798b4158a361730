"""Free energy of a Gaussian belief, complexity - accuracy in nats, with both parts, in one launch.

Written by `prism-bench fuse` from fusions/fused_free_energy.py: change that and run it again.
"""

from pathlib import Path

from prism_bench_catalogue.include.gaussian import divergence, likelihood_size, log_likelihood, spreads
from prism_bench_catalogue.include.host_plan import together
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, launch_map, sum_launch, sum_scratch

from prism_bench import Budget, Chain, In, KernelSpec, Launch, Out, Scalar, Scratch, Size, Variant, Workload, reduction

BY_HAND = Path(__file__).parents[1] / "fused_free_energy.cu"


def arguments(dtype):
    inputs = (
        In("mu_q", "n", dtype),
        In("mu_p", "n", dtype),
        In("var_q", "n", dtype, fill=spreads),
        In("var_p", "n", dtype, fill=spreads),
        In("o", "m", dtype),
        In("g", "m", dtype),
        In("precision", "m", dtype, fill=spreads),
    )
    outputs = (Out("free_energy", "1", dtype), Out("complexity", "1", dtype), Out("accuracy", "1", dtype))
    return (*inputs, *outputs, *sum_scratch(2), Size("n", "int64"), Size("m", "int64"))


def launch(dtype, entry="fused_free_energy_generated<{}>", passed=None):
    return lambda n, m, device: sum_launch(entry.format(NUMBERS[dtype]), max(n, m), device, passed)


def reference(mu_q, mu_p, var_q, var_p, o, g, precision, xp):
    complexity = divergence(mu_q, mu_p, var_q, var_p, xp).sum()
    accuracy = log_likelihood(o - g, precision, xp).sum()
    return complexity - accuracy, complexity, accuracy


def free_energy_size(mu_q, mu_p, var_q, var_p, o, g, precision, xp):
    complexity = divergence(mu_q, mu_p, var_q, var_p, xp).sum()
    accuracy = likelihood_size(o - g, precision, xp).sum()
    return complexity + accuracy


def complexity_size(mu_q, mu_p, var_q, var_p, xp):
    return divergence(mu_q, mu_p, var_q, var_p, xp).sum()


def accuracy_size(o, g, precision, xp):
    return likelihood_size(o - g, precision, xp).sum()


def tolerance(dtype):
    return {
        "free_energy": reduction(free_energy_size, terms=ROUNDING[dtype]),
        "complexity": reduction(complexity_size, terms=ROUNDING[dtype]),
        "accuracy": reduction(accuracy_size, terms=ROUNDING[dtype]),
    }


def arguments_separate(dtype):
    given = (
        In("mu_q", "n", dtype),
        In("mu_p", "n", dtype),
        In("var_q", "n", dtype, fill=spreads),
        In("var_p", "n", dtype, fill=spreads),
        In("o", "m", dtype),
        In("g", "m", dtype),
        In("precision", "m", dtype, fill=spreads),
        Out("free_energy", "1", dtype),
        Out("complexity", "1", dtype),
        Out("accuracy", "1", dtype),
    )
    between = (
        Scratch("complexity_terms", "n", dtype),
        Scratch("error", "m", dtype),
        Scratch("accuracy_terms", "m", dtype),
    )
    return (*given, *between, *sum_scratch(1), Scalar("wide_n", "int64"), Scalar("wide_m", "int64"))


def launch_complexity_terms(
    dtype,
    entry="fused_free_energy_alone_complexity_terms<{}>",
    passed=("mu_q", "mu_p", "var_q", "var_p", "complexity_terms", "wide_n"),
):
    return lambda n: launch_map(entry, arguments=passed)(dtype)(n)


def launch_complexity(
    dtype,
    entry="fused_free_energy_alone_complexity<{}>",
    passed=("complexity_terms", "complexity", "by_block", "arrived", "wide_n"),
):
    return lambda n, device: sum_launch(entry.format(NUMBERS[dtype]), n, device, passed)


def launch_error(dtype, entry="fused_free_energy_alone_error<{}>", passed=("o", "g", "error", "wide_m")):
    return lambda m: launch_map(entry, arguments=passed)(dtype)(m)


def launch_accuracy_terms(
    dtype, entry="fused_free_energy_alone_accuracy_terms<{}>", passed=("precision", "error", "accuracy_terms", "wide_m")
):
    return lambda m: launch_map(entry, arguments=passed)(dtype)(m)


def launch_accuracy(
    dtype,
    entry="fused_free_energy_alone_accuracy<{}>",
    passed=("accuracy_terms", "accuracy", "by_block", "arrived", "wide_m"),
):
    return lambda m, device: sum_launch(entry.format(NUMBERS[dtype]), m, device, passed)


def launch_free_energy(
    dtype, entry="fused_free_energy_alone_free_energy<{}>", passed=("complexity", "accuracy", "free_energy")
):
    return lambda: Launch(1, 1, entry=entry.format(NUMBERS[dtype]), arguments=passed)


def launch_separate(dtype):
    return together(
        launch_complexity_terms(dtype),
        launch_complexity(dtype),
        launch_error(dtype),
        launch_accuracy_terms(dtype),
        launch_accuracy(dtype),
        launch_free_energy(dtype),
    )


def torch_free_energy(torch, mu_q, mu_p, var_q, var_p, o, g, precision):
    normal = torch.distributions.Normal  # to validate its arguments it would wait for the device
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    complexity = torch.distributions.kl_divergence(q, p).sum()
    accuracy = normal(g, precision.rsqrt(), validate_args=False).log_prob(o).sum()
    return complexity - accuracy, complexity, accuracy


spec = KernelSpec(
    entry="fused_free_energy_generated",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_free_energy},
    flops=lambda n, m: 8 * n + 8 * m,
    workloads={"S0": Workload(n=900, m=100), "S1": Workload(n=16777216, m=8192), "S2": Workload(n=67108864, m=16384)},
    edges=(
        Workload(n=0, m=0),
        Workload(n=1, m=0),
        Workload(n=0, m=3),
        Workload(n=3, m=255),
        Workload(n=1025, m=7),
        Workload(n=4099, m=5001),
    ),
    replaces=("fused_kl_complexity", "fused_accuracy_pipeline"),
    chains=(
        Chain(
            "fused_free_energy", {"baseline": "separate", "full": None}, ("complexity_terms", "error", "accuracy_terms")
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "f64": in_double(arguments, launch, tolerance),
        "separate": Variant(
            "every stage in a launch of its own",
            arguments=arguments_separate("float32"),
            launch=launch_separate("float32"),
            derived={"wide_n": lambda n: n, "wide_m": lambda m: m},
            golden=(),
            budgets=(),
        ),
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch("float32", "fused_free_energy<{}>"),
        ),
    },
)
