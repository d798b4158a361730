"""One exact step of leaky integrate-and-fire neurons: V' = rest + (V - rest) d + R I (1 - d), d = e^(-dt / tau).

Spike where V' >= threshold: then V' = reset, held for t_ref. Units mV, ms, MOhm, nA. Memory-bound: 21 bytes a neuron.
Inputs are on a grid, so that no V' is within float32's rounding of the threshold and spikes compare exactly; equality
has golden data.
"""

import math
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
    Size,
    Variant,
    Workload,
    elementwise,
    exact,
    integers,
)
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Domain, Fill, interval, real


def grid(low: int, high: int, steps: int, domain: Domain | None = None) -> Fill:
    """Multiples of 1 / steps in [low, high); any others may be asked for, too, unless `domain` excludes them."""
    return Fill(
        lambda rng, count, axes: rng.integers(low * steps, high * steps, count) / steps,
        f"multiples of 1/{steps} in [{low}, {high})",
        domain or real(),
        runs=ONE_BY_ONE,
    )


def launch(n: int) -> Launch:
    """256 threads a block, four neurons per thread."""
    return Launch(grid=-(-(n // 4 + n % 4) // 256), block=256)


def launch_of(entry: str) -> Callable[..., Any]:
    return lambda n: Launch(grid=launch(n).grid, block=256, entry=entry)


def reference(
    v: AnyArray,
    current: AnyArray,
    held: AnyArray,
    rest: float,
    tau: float,
    resistance: float,
    threshold: float,
    reset: float,
    dt: float,
    hold: int,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    decay = math.exp(-dt / tau)
    v_next = rest + (v - rest) * decay + resistance * current * (1 - decay)
    resting = held > 0
    spikes = ~resting & (v_next >= threshold)
    held_next = xp.where(resting, held - 1, xp.where(spikes, hold, 0))
    return xp.where(resting | spikes, reset, v_next), spikes.astype("uint8"), held_next.astype("int32")


def launch_steps(n: int) -> Launch:
    width = 4 if n % 4 == 0 else 1
    return Launch(grid=-(-n // (256 * width)), block=256, entry=f"leaky_integrate_fire_steps<{width}>")


def reference_steps(
    v: AnyArray,
    current: AnyArray,
    held: AnyArray,
    rest: float,
    tau: float,
    resistance: float,
    threshold: float,
    reset: float,
    dt: float,
    hold: int,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """One step after another."""
    spikes = []
    for one in current:
        v, spike, held = reference(v, one, held, rest, tau, resistance, threshold, reset, dt, hold, xp)
        spikes.append(spike)
    return v, xp.stack(spikes), held


def reference_bits(
    v: AnyArray,
    current: AnyArray,
    held: AnyArray,
    rest: float,
    tau: float,
    resistance: float,
    threshold: float,
    reset: float,
    dt: float,
    hold: int,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    v, spikes, held = reference(v, current, held, rest, tau, resistance, threshold, reset, dt, hold, xp)
    padded = xp.pad(spikes, (0, -len(spikes) % 32)).reshape(-1, 32).astype("uint32")
    return v, (padded << xp.arange(32, dtype="uint32")).sum(axis=1).astype("uint32"), held


def reference_unheld(
    v: AnyArray,
    current: AnyArray,
    rest: float,
    tau: float,
    resistance: float,
    threshold: float,
    reset: float,
    dt: float,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray]:
    decay = math.exp(-dt / tau)
    v_next = rest + (v - rest) * decay + resistance * current * (1 - decay)
    return xp.where(v_next >= threshold, reset, v_next), (v_next >= threshold).astype("uint8")


def reference_compat(
    v: AnyArray, current: AnyArray, leak: float, threshold: float, xp: ArrayModule
) -> tuple[AnyArray, AnyArray]:
    v_next = xp.tanh((1 - leak) * v + current)
    return xp.where(v_next > threshold, 0.0, v_next), (v_next > threshold).astype("uint8")


def sizes(v: AnyArray, current: AnyArray, rest: float, decay: float, drive: float, xp: ArrayModule) -> AnyArray:
    """The absolute terms of a potential, over all steps: it may be far smaller than they are."""
    driven = xp.abs(drive * current)
    return xp.abs(v - rest) * decay + (driven.sum(axis=0) if driven.ndim > 1 else driven) + abs(rest)


PRECISE = elementwise().loosened(terms=2.0**-22, magnitude=sizes)


def torch_step(
    torch: ModuleType,
    v: AnyArray,
    current: AnyArray,
    held: AnyArray,
    rest: float,
    decay: float,
    drive: float,
    threshold: float,
    reset: float,
    hold: int,
) -> Any:
    v_next = rest + (v - rest) * decay + drive * current
    resting = held > 0
    spikes = ~resting & (v_next >= threshold)
    held_next = torch.where(resting, held - 1, torch.where(spikes, hold, 0).int())
    return torch.where(resting | spikes, reset, v_next), spikes.byte(), held_next


CURRENT = grid(0, 4, 16)
STATE = (In("v", "n", fill=grid(-80, -50, 16)),)
HELD = In("held", "n", dtype="int32", fill=integers(-1, 2))
CELL = {"rest": -70.0, "tau": 20.0, "resistance": 10.0, "threshold": -50.0, "reset": -65.0, "dt": 1.0, "t_ref": 2.0}
derived = {
    "decay": lambda dt, tau: math.exp(-dt / tau),
    "drive": lambda resistance, decay: resistance * (1 - decay),
    "hold": lambda t_ref, dt: math.ceil(t_ref / dt - 1e-9) if dt > 0 else 0,
}
rules = (
    Rule("tau > 0", lambda tau: tau > 0),
    Rule("dt >= 0", lambda dt: dt >= 0),
    Rule("t_ref >= 0", lambda t_ref: t_ref >= 0),
)
cell = (Scalar("decay"), Scalar("drive"), Scalar("rest"), Scalar("threshold"), Scalar("reset"))
state = {"v": [-50.0, np.nextafter(np.float32(-50), -99), -49.9, -70.0, np.nan, np.inf], "current": 0.0}
equal = Golden(
    Workload(n=6, dt=0.0),
    inputs={**state, "held": [0, 0, 0, 3, 0, 2]},
    expected={
        "v_next": [-65, np.nextafter(np.float32(-50), -99), -65, -65, np.nan, -65],
        "spikes": [1, 0, 1, 0, 0, 0],
        "held_next": [0, 0, 0, 2, 0, 1],
    },
    source="calculated: at the threshold a neuron spikes, just below it does not; NaN does not",
)

spec = KernelSpec(
    entry="leaky_integrate_fire",
    arguments=(
        *STATE, In("current", "n", fill=CURRENT), HELD, Out("v_next", "n"), Out("spikes", "n", dtype="uint8"),
        Out("held_next", "n", dtype="int32"), Size("n", "int64"), *cell, Size("hold"),
    ),
    parameters=CELL,
    derived=derived,
    rules=rules,
    launch=launch,
    reference=reference,
    tolerance={"v_next": PRECISE, "spikes": exact(), "held_next": exact()},
    peers={"torch": torch_step},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 6 * n,
    workloads={"S0": Workload(n=1000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(
        *(Workload(n=n) for n in (0, 1, 3, 4099)),
        Workload(n=1001, dt=1e6),
        Workload(n=1001, dt=0.1, t_ref=0.5),
        Workload(n=1001, t_ref=0.0),
        Workload(n=1001, threshold=-200.0),
    ),
    golden=(equal,),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "steps": Variant(
            "many steps in one launch",  # a decay of 1/2 and a threshold between the values of V keep it exact
            arguments=(
                *STATE, In("current", "steps n", fill=CURRENT), HELD, Out("v_next", "n"),
                Out("spikes", "steps n", dtype="uint8"), Out("held_next", "n", dtype="int32"), Size("n", "int64"),
                Size("steps"), *cell, Size("hold"),
            ),
            parameters={**CELL, "dt": 20 * math.log(2), "t_ref": 30.0, "threshold": -50.01, "steps": 8},
            rules=(*rules, Rule("steps >= 1", lambda steps: steps >= 1)),
            launch=launch_steps,
            reference=reference_steps,
            flops=lambda n, steps: 6 * n * steps,
            workloads={"S0": Workload(n=1000), "S1": Workload(n=16 << 20)},
            edges=(*(Workload(n=n) for n in (0, 1, 3, 4100)), Workload(n=1001, steps=1), Workload(n=1000, steps=11)),
            golden=(),
            peers={},
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "bits": Variant(
            "spikes as bits, 32 neurons a word",
            arguments=(
                *STATE, In("current", "n", fill=CURRENT), HELD, Out("v_next", "n"),
                Out("spikes", "words", dtype="uint32"), Out("held_next", "n", dtype="int32"), Size("n", "int64"), *cell,
                Size("hold"),
            ),
            derived={**derived, "words": lambda n: -(-n // 32)},
            launch=lambda n: Launch(grid=-(-n // 1024), block=256, entry="leaky_integrate_fire_bits"),
            reference=reference_bits,
            edges=tuple(Workload(n=n) for n in (0, 1, 3, 31, 33, 4099)),
            golden=(
                Golden(
                    equal.workload, {**state, "held": [0, 0, 0, 3, 0, 2]}, {"spikes": [0b101]},
                    source="calculated: the first and the third spike",
                ),
            ),
            peers={},
            only_labels=("S0", "S1"),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "unheld": Variant(
            "no refractory period and no counter: 13 bytes a neuron",
            arguments=(
                *STATE, In("current", "n", fill=CURRENT), Out("v_next", "n"),
                Out("spikes", "n", dtype="uint8"), Size("n", "int64"), *cell,
            ),
            launch=launch_of("leaky_integrate_fire_unheld"),
            reference=reference_unheld,
            edges=(Workload(n=0), Workload(n=1), Workload(n=4099), Workload(n=1001, dt=1e6)),
            golden=(
                Golden(
                    Workload(n=6, dt=0.0), state,
                    {
                        "v_next": [-65, np.nextafter(np.float32(-50), -99), -65, -70, np.nan, -65],
                        "spikes": [1, 0, 1, 0, 0, 1],
                    },
                    source="calculated",
                ),
            ),
        ),
        "compat": Variant(
            "the older form: V' = tanh((1 - leak) V + I), spike above the threshold, then 0",
            arguments=(
                In("v", "n", fill=grid(-1, 1, 64, interval(-1, 1))), In("current", "n", fill=grid(-1, 1, 16)),
                Out("v_next", "n"), Out("spikes", "n", dtype="uint8"), Size("n", "int64"), Scalar("keep"),
                Scalar("threshold"),
            ),
            parameters={"leak": 0.1, "threshold": 0.5},
            derived={"keep": lambda leak: 1 - leak},
            rules=(),
            launch=launch_of("leaky_integrate_fire_compat"),
            reference=reference_compat,
            tolerance={"v_next": elementwise(), "spikes": exact()},
            edges=(Workload(n=1), Workload(n=4099), Workload(n=1001, leak=1.0, threshold=0.3)),
            golden=(),
            only_labels=("S0", "S1"),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
    },
)  # fmt: skip
