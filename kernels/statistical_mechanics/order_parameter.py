"""Order parameter r exp(i psi) = (1/N) sum of exp(i m theta_j) of N phases; m is the harmonic.

Angles need not be wrapped. psi is the argument of the sum, without meaning where r is near 0; of no phases all is NaN.

Unusual phases (a million turns and more) cause no branch in the loop, since a branch for each element keeps elements
from overlapping. A thread that met such a phase starts again on the careful path, so data full of them are read twice.
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
    Scratch,
    Size,
    Tune,
    Variant,
    Workload,
    absolute,
    reduction,
    uniform,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule, Device, Domain, Peer, interval, real

from ..include.sums.row_sums import MOST_BLOCKS, SHARED_TUNE, parts_of
from ..peers.poor_ways import EAGER_STEPS
from ..peers.xla_peers import by_xla

# Memory-bound: 13 instructions a phase and two hardware functions, at 40 registers and so 3/4 of an SM's warps. All
# warps (32 registers: `resident` 4) in whole waves were slower, `accurate` too. Instruction issue limits `accurate`,
# which takes 24 instructions.


def launch_of(phasor: str) -> Callable[..., Any]:
    def launch(n: int, device: Device, fill: int, block: int, resident: int) -> Launch:
        parts = parts_of(1, n, device, fill=fill, block=block)
        return Launch(grid=(1, parts), block=block, entry=f"order_parameter<{phasor}, {resident}>")

    return launch


def arguments(domain: Domain) -> tuple[Any, ...]:
    return (
        In("theta", "n", fill=uniform(-2, 3), domain=domain), Out("re", "1"), Out("im", "1"), Out("r", "1"),
        Out("psi", "1"), Scratch("by_block", str(2 * MOST_BLOCKS), dtype="float64"), Size("n", "int64"),
        Size("harmonic"),
    )  # fmt: skip


def reference(theta: AnyArray, harmonic: int, n: int, xp: ArrayModule) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    angle = harmonic * theta
    re, im = xp.cos(angle).sum() / n, xp.sin(angle).sum() / n
    return re, im, xp.hypot(re, im), xp.arctan2(im, re)


def per_r(theta: AnyArray, harmonic: int, n: int, xp: ArrayModule) -> AnyArray:
    """An error of re or im turns psi by as much over r."""
    return 1 / xp.maximum(reference(theta, harmonic, n, xp)[2], 1e-30)


def torch_order(torch: ModuleType, theta: AnyArray, harmonic: int) -> Any:
    angle = theta if harmonic == 1 else theta * harmonic
    mean = torch.stack((torch.cos(angle).mean(), torch.sin(angle).mean()))
    return mean[0], mean[1], torch.hypot(mean[0], mean[1]), torch.atan2(mean[1], mean[0])


def jax_order(jax: ModuleType, theta: AnyArray, harmonic: int) -> Any:
    angle = theta if harmonic == 1 else theta * harmonic
    re, im = jax.numpy.cos(angle).mean(), jax.numpy.sin(angle).mean()
    return re, im, jax.numpy.hypot(re, im), jax.numpy.arctan2(im, re)


def cupy_order(cupy: ModuleType, theta: AnyArray, harmonic: int) -> Any:
    angle = theta if harmonic == 1 else theta * harmonic
    re, im = cupy.cos(angle).mean(), cupy.sin(angle).mean()
    return re, im, cupy.hypot(re, im), cupy.arctan2(im, re)


# Every term exp(i m theta) has magnitude 1, and so has their mean.
unit_terms = reduction(lambda xp: xp.ones(1))

spec = KernelSpec(
    entry="order_parameter<Reduced, 0>",
    arguments=arguments(real()),
    parameters={"harmonic": 1},
    rules=(Rule("|harmonic| <= 2^24", lambda harmonic: abs(harmonic) <= 1 << 24),),
    launch=launch_of("Reduced"),
    tune=Tune(  # the values have no key `default`
        **SHARED_TUNE.values, resident=(0, 4), rules=SHARED_TUNE.rules  # pyright: ignore[reportArgumentType]
    ),
    reference=reference,
    tolerance={"re": unit_terms, "im": unit_terms, "r": unit_terms, "psi": reduction(per_r)},
    # cuda.compute would need a type for pairs of sums, which is compiled by one more package; XLA sums both at once.
    peers={
        "torch": torch_order,
        "cupy": Peer(cupy_order, poor=EAGER_STEPS),
        "jax": Peer(by_xla(jax_order), prepares=True),
    },
    flops=lambda n: 2 * n,
    workloads={"S0": Workload(n=256), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(
        *(Workload(n=n) for n in (0, 1, 3, 2049, 40_003)),
        *(Workload(n=300, harmonic=m) for m in (0, 2, -3, 7, 1000, 1 << 24)),
    ),
    golden=(
        Golden(
            Workload(n=8), {"theta": [0.0, 1e3, -1e5, 1e7, 3e9, -1e20, 3e38, 1e-40]}, {}, source="unwrapped angles"
        ),
        Golden(
            Workload(n=4, harmonic=3), {"theta": [1e5, 6e5, -3e7, 1.5]}, {}, source="unwrapped angles, third harmonic"
        ),
        Golden(Workload(n=3), {"theta": [0, np.inf, 1]}, {}, source="an infinite phase has no direction: NaN"),
        Golden(Workload(n=3), {"theta": [0, np.nan, 1]}, {}, source="NaN"),
        Golden(
            Workload(n=5000), {"theta": lambda n: np.arange(n) % 2 * np.pi}, {"re": 0.0, "im": 0.0, "r": 0.0},
            source="two opposite groups: r = 0, psi undefined", tolerance=absolute(1e-6),
        ),
        Golden(
            Workload(n=4096), {"theta": lambda n: 2 * np.pi * np.arange(n) / n}, {"re": 0.0, "im": 0.0, "r": 0.0},
            source="phases spread evenly", tolerance=absolute(1e-6),
        ),
        Golden(
            Workload(n=1000, harmonic=2), {"theta": lambda n: 0.25 + np.arange(n) % 2 * np.pi}, {"r": 1.0, "psi": 0.5},
            source="two opposite groups are one in the second harmonic", tolerance=absolute(1e-6),
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "accurate": Variant("by polynomials, within a rounding or two", launch=launch_of("Accurate"), budgets=()),
        "fast": Variant(
            "by the hardware's functions, for wrapped phases", launch=launch_of("Fast"), golden=(),
            arguments=arguments(interval(-np.pi, np.pi)),
            edges=tuple(Workload(n=n) for n in (0, 1, 2049)),
        ),
    },
)  # fmt: skip
