"""A step of coupled phase oscillators: dtheta_i/dt = omega_i + (K / N) sum_j A_ij sin(theta_j - theta_i), modulo 2 pi.

sum_j A_ij sin(theta_j - theta_i) = cos(theta_i) (A sin theta)_i - sin(theta_i) (A cos theta)_i: A is read once for two
products, and sines are taken N times. Memory-bound by A. Timed phases stay off the multiples of 2 pi, so that no two
results are on either side of the seam.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    reduction,
    uniform,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, real

ROWS = 4
MOST_BLOCKS = 8192  # of the mean field's first launch
MOST_THREADS = 1024
TURN = 2 * np.pi
SHARE = 1e-6  # of the sum of absolute terms

# Phases of several turns, at least 0.4 rad from a multiple of 2 pi: no small step brings one across it.
PHASES = Fill(
    lambda rng, count, axes: rng.integers(-2, 3, count) * TURN + rng.uniform(0.4, TURN - 0.4, count),
    "-2 to 2 turns and 0.4 to 2 pi - 0.4",
    real(),
    runs=ONE_BY_ONE,
)
SINES = ("theta", "sines", "cosines", "rate", "n", "dt")


def launch(n: int, integrator: str) -> tuple[Launch | Zero, ...]:
    """A pass over A per stage, after the sines of its phases."""
    width, blocks = (1 if n % 4 else 4), -(-n // ROWS)
    steps = []
    for stage in range(1 if integrator == "euler" else 4):
        euler = str(integrator == "euler").lower()
        steps += [
            Launch(-(-n // 256), 256, entry="kuramoto_sines", arguments=(*SINES, f"stage{stage}")),
            Launch(blocks, 256, entry=f"kuramoto_evolution<{ROWS}, {width}, {euler}, {stage}>", arguments=MAIN),
        ]
    return tuple(steps)


MAIN = ("theta", "omega", "coupling", "theta_next", "sines", "cosines", "rate", "mean", "n", "strength", "dt")


def rate(theta: AnyArray, omega: AnyArray, coupling: AnyArray, strength: float, xp: ArrayModule) -> AnyArray:
    """A sine per pair, 1024 rows at a time."""
    pull = xp.zeros(len(theta))
    for first in range(0, len(theta), 1024):
        rows = slice(first, first + 1024)
        pull[rows] = (coupling[rows] * xp.sin(theta[None] - theta[rows, None])).sum(axis=1)
    return omega + strength * pull


def reference(
    theta: AnyArray, omega: AnyArray, coupling: AnyArray, strength: float, dt: float, integrator: str, xp: ArrayModule
) -> AnyArray:
    def slope(phases: AnyArray) -> AnyArray:
        return rate(phases, omega, coupling, strength, xp)

    first = slope(theta)
    if integrator == "euler":
        return (theta + dt * first) % TURN
    second = slope(theta + dt / 2 * first)
    third = slope(theta + dt / 2 * second)
    fourth = slope(theta + dt * third)
    return (theta + dt / 6 * (first + 2 * second + 2 * third + fourth)) % TURN


def launch_mean_field(n: int, device: Device) -> tuple[Launch, ...]:
    """The field, then each oscillator by itself; one launch where a block has a thread for each."""
    if n <= MOST_THREADS:
        passed = ("theta", "omega", "theta_next", "n", "K", "dt")
        return (Launch(min(n, 1), -(-max(n, 1) // 32) * 32, entry="kuramoto_mean_field_few", arguments=passed),)
    blocks = max(1, min(-(-n // 2048), 12 * device.sm_count, MOST_BLOCKS))
    passed = ("theta", "omega", "theta_next", "field", "n", "K", "dt")
    return (
        Launch(blocks, 512, entry="kuramoto_field", arguments=("theta", "by_block", "field", "n")),
        Launch(-(-n // 1024), 256, entry="kuramoto_mean_field", arguments=passed),
    )


def mean_field(
    theta: AnyArray,
    omega: AnyArray,
    K: float,  # noqa: N803 - the literature's name
    dt: float,
    xp: ArrayModule,
) -> AnyArray:
    s, c, n = xp.sin(theta), xp.cos(theta), max(1, theta.size)
    return (theta + dt * (omega + K * (c * (s.sum() / n) - s * (c.sum() / n)))) % TURN


def mean_field_terms(theta: AnyArray, omega: AnyArray, K: float, dt: float, xp: ArrayModule) -> AnyArray:  # noqa: N803
    return xp.abs(theta) + dt * (xp.abs(omega) + abs(K)) + TURN


def magnitude(
    theta: AnyArray, omega: AnyArray, coupling: AnyArray, strength: float, dt: float, xp: ArrayModule
) -> AnyArray:
    terms = xp.abs(theta) + abs(dt) * (xp.abs(omega) + abs(strength) * xp.abs(coupling).sum(axis=1)) + TURN
    return xp.nan_to_num(terms, nan=0.0, posinf=0.0)


def naive_terms(
    theta: AnyArray, omega: AnyArray, coupling: AnyArray, strength: float, dt: float, xp: ArrayModule
) -> AnyArray:
    """The same, and what the sine of a difference of two phases moves by when the difference is rounded."""
    phases = xp.abs(theta)
    turned = xp.minimum(2.0**-24 * (phases[:, None] + phases), 2.0) / SHARE
    rounded = abs(dt * strength) * (xp.abs(coupling) * turned).sum(axis=1)
    return magnitude(theta, omega, coupling, strength, dt, xp) + xp.nan_to_num(rounded, nan=0.0, posinf=0.0)


def torch_euler(
    torch: ModuleType, theta: AnyArray, omega: AnyArray, coupling: AnyArray, strength: float, dt: float
) -> Any:
    waves = coupling @ torch.stack((torch.sin(theta), torch.cos(theta)), dim=1)
    pull = torch.cos(theta) * waves[:, 0] - torch.sin(theta) * waves[:, 1]
    return torch.remainder(theta + dt * (omega + strength * pull), TURN)


def torch_mean_field(torch: ModuleType, theta: AnyArray, omega: AnyArray, K: float, dt: float) -> Any:  # noqa: N803
    s, c = torch.sin(theta), torch.cos(theta)
    return torch.remainder(theta + dt * (omega + K * (c * s.mean() - s * c.mean())), TURN)


quarter = Golden(
    Workload(n=2, K=2.0, dt=0.5),
    inputs={"theta": [0.0, np.pi / 2], "omega": [1.0, -1.0], "coupling": 1.0},
    expected={"theta_next": [1.0, np.pi / 2 - 1.0]},
    source="calculated: sin(pi/2) = 1 draws both, 0.5 (1 + 1) and -0.5 (1 + 1)",
)
endless = Golden(
    Workload(n=4, K=0.5),
    inputs={"theta": [1e6, -3e5, 1e-3, 2.0], "omega": 0.5, "coupling": 1.0},
    expected={},
    source="wrapped without a loop, however many turns",
)
infinite = Golden(
    Workload(n=3), inputs={"theta": [np.inf, 1.0, 2.0], "omega": 0.0, "coupling": 1.0}, expected={"theta_next": np.nan},
    source="an infinite phase ends, and reaches every neighbour",
)  # fmt: skip

spec = KernelSpec(
    entry="kuramoto_evolution",
    arguments=(
        In("theta", "n", fill=PHASES), In("omega", "n"),
                In("coupling", "n n", fill=uniform(0, 1), domain=real()),
        Out("theta_next", "n"), Scratch("sines", "n"), Scratch("cosines", "n"), Scratch("rate", "n"),
        Scratch("mean", "n"), Size("n"), Scalar("strength"), Scalar("dt"),
        *(Scalar(f"stage{stage}", "int32") for stage in range(4)),
    ),
    parameters={"K": 1.0, "dt": 0.01, "integrator": "euler"},
    derived={
        "strength": lambda K, n: K / max(n, 1),  # noqa: N803
        **{f"stage{stage}": lambda stage=stage: stage for stage in range(4)},
    },
    rules=(Rule("integrator to be euler or rk4", lambda integrator: integrator in ("euler", "rk4")),),
    launch=launch,
    reference=reference,
    tolerance=reduction(magnitude=magnitude).loosened(period=TURN),
    peers={"torch": torch_euler},
    looked_at={"cub": "has no product of a matrix and a vector"},
    flops=lambda n, integrator: (1 if integrator == "euler" else 4) * 4 * n * n,
    workloads={"S0": Workload(n=256), "S1": Workload(n=16_384), "S2": Workload(n=32_768)},
    edges=(
        *(Workload(n=n, integrator=how) for n in (0, 1, 5, 36, 257) for how in ("euler", "rk4")),
        Workload(n=1030), Workload(n=68, K=0.0), Workload(n=68, K=-2.0), Workload(n=68, dt=0.0),
    ),
    golden=(quarter, endless, infinite),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "rk4": Variant(
            "the classical Runge-Kutta step: four readings of A",
            parameters={"K": 1.0, "dt": 0.01, "integrator": "rk4"},
            bytes_moved=lambda n: 16 * n * n + 48 * n,
            edges=(),
            golden=(),
            only_labels=("S0", "S1"),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "naive": Variant(
            "one thread per oscillator, a sine per pair",
            arguments=(
                In("theta", "n", fill=PHASES), In("omega", "n"),
                In("coupling", "n n", fill=uniform(0, 1), domain=real()),
                Out("theta_next", "n"), Size("n"), Scalar("strength"), Scalar("dt"),
            ),
            launch=lambda n: Launch(-(-n // 256), 256, entry="kuramoto_naive"),
            tolerance=reduction(naive_terms, terms=SHARE).loosened(period=TURN),
            edges=(Workload(n=0), Workload(n=1), Workload(n=68), Workload(n=257)),
            golden=(quarter, infinite),
            only_labels=("S0", "S1"),
            budgets=(),
        ),
        "mean_field": Variant(
            "A = 1: the mean field, then each oscillator by itself",
            arguments=(
                In("theta", "n", fill=PHASES), In("omega", "n"), Out("theta_next", "n"),
                Scratch("by_block", f"{2 * MOST_BLOCKS}", dtype="float64"), Scratch("field", "2"), Size("n", "int64"),
                Scalar("K"), Scalar("dt"),
            ),
            launch=launch_mean_field,
            reference=mean_field,
            tolerance=reduction(mean_field_terms).loosened(period=TURN),
            peers={"torch": torch_mean_field},
            flops=lambda n: 16 * n,
            bytes_moved=lambda n: 16 * n,
            workloads={"S0": Workload(n=256), "S1": Workload(n=64 << 20)},
            edges=(
                *(Workload(n=n) for n in (0, 1, 33, 1024, 1025, 4099)),
                Workload(n=100_003, K=-1.5),
            ),
            golden=(),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
    },
)  # fmt: skip
