"""Free energy of a Gaussian belief, complexity - accuracy in nats, with both parts, in one launch."""

from prism_bench_catalogue.include.gaussian import divergence, likelihood_size, log_likelihood, spreads
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double, sum_launch, sum_scratch

from prism_bench import Budget, In, KernelSpec, Out, Size, Workload, reduction

# Bound by memory: 16 bytes a state and 12 an observation at the rate of reading.
PARTS = ("free_energy", "complexity", "accuracy")


def arguments(dtype):
    means = (In("mu_q", "n", dtype), In("mu_p", "n", dtype))
    variances = (In("var_q", "n", dtype, fill=spreads), In("var_p", "n", dtype, fill=spreads))
    seen = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    outputs = (Out(name, "1", dtype) for name in PARTS)
    return (*means, *variances, *seen, *outputs, *sum_scratch(2), Size("n", "int64"), Size("m", "int64"))


def launch(dtype):
    return lambda n, m, device: sum_launch(f"fused_free_energy<{NUMBERS[dtype]}>", max(n, m), device)


def reference(mu_q, mu_p, var_q, var_p, o, g, precision, xp):
    complexity = divergence(mu_q, mu_p, var_q, var_p, xp).sum()
    accuracy = log_likelihood(o - g, precision, xp).sum()
    return complexity - accuracy, complexity, accuracy


def complexity_size(mu_q, mu_p, var_q, var_p, xp):
    return divergence(mu_q, mu_p, var_q, var_p, xp).sum()


def accuracy_size(o, g, precision, xp):
    return likelihood_size(o - g, precision, xp).sum()


def size(mu_q, mu_p, var_q, var_p, o, g, precision, xp):
    return complexity_size(mu_q, mu_p, var_q, var_p, xp) + accuracy_size(o, g, precision, xp)


def tolerance(dtype):
    sizes = (size, complexity_size, accuracy_size)
    return {part: reduction(one, terms=ROUNDING[dtype]) for part, one in zip(PARTS, sizes, strict=True)}


def torch_free_energy(torch, mu_q, mu_p, var_q, var_p, o, g, precision):
    normal = torch.distributions.Normal
    q, p = normal(mu_q, var_q.sqrt()), normal(mu_p, var_p.sqrt())
    complexity = torch.distributions.kl_divergence(q, p).sum()
    accuracy = normal(g, precision.rsqrt()).log_prob(o).sum()
    return complexity - accuracy, complexity, accuracy


spec = KernelSpec(
    entry="fused_free_energy<float>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_free_energy},
    flops=lambda n, m: 8 * (n + m),
    workloads={
        "S0": Workload(n=900, m=100),
        "S1": Workload(n=1 << 24, m=8192),
        "S2": Workload(n=1 << 26, m=16_384),
    },
    edges=tuple(Workload(n=n, m=m) for n, m in ((0, 0), (1, 0), (0, 3), (3, 255), (1025, 7), (4099, 5001))),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    replaces=("fused_kl_complexity", "fused_accuracy_pipeline"),
    variants={"f64": in_double(arguments, launch, tolerance)},
)
