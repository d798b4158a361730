"""Entropy production rate (1/T) sum of gamma_i v_i^2 of damped particles, in J/(K s).

The form `excess` subtracts what equilibrium has, (1/T) sum of gamma_i (v_i^2 - k_B T / m_i): zero on average there.
"""

from collections.abc import Callable
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
    exact,
    reduction,
    uniform,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer, nonnegative, positive

from ..include.sums.row_sums import MOST_BLOCKS, TILED_TUNE, parts_of
from ..peers import cub_peers

# Memory-bound: four instructions a particle.
BOLTZMANN = 1.380649e-23  # J/K


def launch_of(entry: str) -> Callable[..., Any]:
    def launch(n: int, form: str, device: Device, fill: int, block: int) -> Launch:
        parts = parts_of(1, n, device, fill=fill, block=block)
        return Launch(grid=(1, parts), block=block, entry=entry.format(str(form == "excess").lower()))

    return launch


def terms(v: AnyArray, gamma: AnyArray, mass: AnyArray, temperature: float, boltzmann: float, form: str) -> AnyArray:
    equilibrium = boltzmann * temperature / mass if form == "excess" else 0.0
    return gamma / temperature * (v * v - equilibrium)


def reference(
    v: AnyArray, gamma: AnyArray, mass: AnyArray, temperature: float, boltzmann: float, form: str
) -> AnyArray:
    return terms(v, gamma, mass, temperature, boltzmann, form).sum()


def cub_rate(cub: ModuleType, v: AnyArray, gamma: float, temperature: float) -> Any:
    return cub_peers.sums(cub, (v,), f"v[0] * v[0] * {cub_peers.number(gamma / temperature)}")


def magnitude(
    v: AnyArray, gamma: AnyArray, mass: AnyArray, temperature: float, boltzmann: float, form: str, xp: ArrayModule
) -> AnyArray:
    return xp.abs(terms(v, gamma, mass, temperature, boltzmann, form)).sum()


def arguments(*names: Any) -> tuple[Any, ...]:
    """The signature with arrays for v and `names`, and scalars for what else there is."""
    fills = {"gamma": uniform(5e-4, 2e-3), "mass": uniform(3e-21, 6e-21)}
    domains = {"gamma": nonnegative(), "mass": positive()}
    return (
        In("v", "n"), *(In(name, "n", fill=fills[name], domain=domains[name]) for name in names), Out("rate", "1"),
        Scratch("by_block", str(MOST_BLOCKS), dtype="float64"), Size("n", "int64"),
        *(Scalar(name, "float64") for name in ("gamma", "mass", "temperature", "boltzmann") if name not in names),
    )  # fmt: skip


# A mass for which k_B T / m is 1 m^2/s^2 at 300 K, the variance of the velocities.
warm = {"temperature": 300.0, "boltzmann": BOLTZMANN, "form": "total"}
alike = {"gamma": 1e-3, "mass": BOLTZMANN * 300, **warm}
lengths = tuple(Workload(n=n) for n in (0, 1, 3, 2049, 40_003))

spec = KernelSpec(
    entry="entropy_production<false>",
    arguments=arguments(),
    parameters=alike,
    rules=(
        Rule("temperature > 0", lambda temperature: temperature > 0),
        Rule("boltzmann >= 0", lambda boltzmann: boltzmann >= 0),
        Rule("form to be total or excess", lambda form: form in ("total", "excess")),
        Rule("gamma >= 0", lambda gamma=0.0: gamma >= 0),
        Rule("mass > 0", lambda mass=1.0: mass > 0),
    ),
    launch=launch_of("entropy_production<{}>"),
    tune=TILED_TUNE,
    reference=reference,
    tolerance=reduction(magnitude),
    peers={
        "cupy": Peer(
            lambda cupy, v, gamma, mass, temperature, boltzmann, form: reference(
                v, gamma, mass, temperature, boltzmann, form
            ),
            poor="a kernel and an array for each step of the formula, where one product of v with itself will do",
        ),
        "torch": lambda torch, v, gamma, temperature: gamma / temperature * torch.dot(v, v),
        "cub": Peer(cub_rate, prepares=True),
    },
    flops=lambda n: 3 * n,
    workloads={"S0": Workload(n=256), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(
        *lengths,
        *(Workload(n=n, form="excess") for n in (0, 1, 2049)),
        Workload(n=1000, temperature=1e-30),
        Workload(n=1000, gamma=0.0),
        Workload(n=1000, gamma=1e-30, temperature=1e-3),
    ),
    golden=(
        Golden(
            Workload(n=1000, gamma=1e-30), {"v": 1e25}, {},
            source="velocities whose squares overflow a float, in all 3e20"
        ),
        Golden(
            Workload(n=1000, gamma=3e20), {"v": 1e-25}, {}, source="velocities whose squares underflow, in all 1e-29"
        ),
        Golden(Workload(n=4), {"v": [1, np.inf, 2, -np.inf]}, {"rate": np.inf}, source="IEEE 754", tolerance=exact()),
        Golden(Workload(n=4), {"v": [1, np.nan, 2, 3]}, {"rate": np.nan}, source="IEEE 754", tolerance=exact()),
        Golden(
            Workload(n=1 << 20, gamma=1.0, temperature=1.0), {"v": lambda n: np.where(np.arange(n) == 0, 4096.0, 1.0)},
            {"rate": 2.0**24 + 2.0**20 - 1}, source="2^24 and then ones, which one float sum would not notice",
        ),
        Golden(
            Workload(n=5000, form="excess"), {"v": lambda n: np.where(np.arange(n) % 2, 1.001, -1.0005)}, {},
            source="hardly out of equilibrium: v^2 and k_B T / m cancel",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "excess": Variant(
            "over what equilibrium produces", parameters={**alike, "form": "excess"}, edges=(), golden=(),
        ),
        "frictions": Variant(
            "a friction for every particle", arguments=arguments("gamma"),
            parameters={"mass": BOLTZMANN * 300, **warm},
            launch=launch_of("entropy_production_frictions<{}>"),
            edges=(*lengths, Workload(n=2049, form="excess")), golden=(),
            peers={"torch": lambda torch, v, gamma, temperature: (gamma * v * v).sum() / temperature},
        ),
        "masses": Variant(
            "the excess with a friction and a mass for every particle", arguments=arguments("gamma", "mass"),
            parameters={**warm, "form": "excess"},
            rules=(Rule("form to be excess: else no mass matters", lambda form: form == "excess"),),
            launch=launch_of("entropy_production_masses"),
            edges=lengths, golden=(),
        ),
    },
)  # fmt: skip
