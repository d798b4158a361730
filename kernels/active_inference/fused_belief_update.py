"""A step of belief in one launch: mu + kappa (J^T (precision (o - g)) + (prior - mu) / variance).

Without `prior` the last term is left out, as in the first published chain. J [m, n] is most of what moves.
"""

from prism_bench_catalogue.include.column_sums import derived
from prism_bench_catalogue.include.gaussian import spreads
from prism_bench_catalogue.include.map_arrays import NUMBERS, ROUNDING, in_double

from prism_bench import Budget, In, InOut, KernelSpec, Launch, Rule, Scalar, Scratch, Size, Variant, Workload, reduction

# S1 on an H200: 537 MB / 4.45 TB/s = 121 us: bound by memory. Fusion saves launches, not bytes, once J exceeds L2.
PASSED = (
    "mu", "jacobian", "o", "g", "precision", "prior", "variance", "mu", "parts", "arrived", "kappa", "m", "n", "splits"
)  # fmt: skip


def arguments(dtype):
    vectors = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    priors = (In("prior", "n", dtype), In("variance", "n", dtype, fill=spreads))
    scratch = (Scratch("parts", "splits n", dtype), Scratch("arrived", "tiles", "uint32"))
    sizes = (Scalar("kappa", dtype), Size("m"), Size("n"), Size("splits"))
    return (InOut("mu", "n", dtype), In("jacobian", "m n", dtype), *vectors, *priors, *scratch, *sizes)


def launch_of(prior):
    def launch(dtype):
        entry = f"fused_belief_update<{NUMBERS[dtype]}, {prior}>"
        return lambda tiles, splits: Launch(grid=tiles * splits, block=256, entry=entry, arguments=PASSED)

    return launch


launch = launch_of("true")


def likelihood_step(jacobian, o, g, precision):
    return jacobian.T @ (precision * (o - g))


def reference(mu, jacobian, o, g, precision, prior, variance, kappa):
    return mu + kappa * (likelihood_step(jacobian, o, g, precision) + (prior - mu) / variance)


def size(mu, jacobian, o, g, precision, prior, variance, kappa, xp):
    steps = likelihood_step(xp.abs(jacobian), xp.abs(o), -xp.abs(g), precision)
    return xp.abs(mu) + abs(kappa) * (steps + (xp.abs(prior) + xp.abs(mu)) / variance)


def tolerance(dtype):
    return reduction(size, terms=ROUNDING[dtype])


def torch_step(torch, mu, jacobian, o, g, precision, prior, variance, kappa):
    return mu + kappa * (torch.mv(jacobian.T, precision * (o - g)) + (prior - mu) / variance)


def moved(size):
    return lambda m, n: size * (m * n + 3 * m + 4 * n)


spec = KernelSpec(
    entry="fused_belief_update<float, true>",
    arguments=arguments("float32"),
    parameters={"kappa": 0.01},
    derived=derived("float32"),
    rules=(Rule("a kappa that is finite", lambda kappa: abs(kappa) < float("inf")),),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_step},
    flops=lambda m, n: 2 * m * n + 3 * m + 4 * n,
    bytes_moved=moved(4),
    workloads={
        "S0": Workload(m=100, n=900),
        "S1": Workload(m=8192, n=16_384),
        "S2": Workload(m=16_384, n=32_768),
    },
    edges=tuple(Workload(m=m, n=n) for m, n in ((0, 5), (5, 0), (1, 1), (10, 20), (20, 129), (70, 300), (257, 66))),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    replaces=("ai_prediction_error", "gemv", "ai_belief_update"),
    variants={
        "likelihood": Variant(
            "without the prior's gradient",
            launch=launch_of("false")("float32"),
            reference=lambda mu, jacobian, o, g, precision, kappa: (
                mu + kappa * likelihood_step(jacobian, o, g, precision)
            ),
            bytes_moved=lambda m, n: 4 * (m * n + 3 * m + 2 * n),
            only_labels=("S0",),
            budgets=(),
        ),
        "f64": in_double(arguments, launch, tolerance, derived=derived("float64"), bytes_moved=moved(8)),
    },
)
