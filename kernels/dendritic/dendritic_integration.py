"""Soma potentials of neurons with nonlinear dendrites: a warp per neuron, several branches loaded ahead.

Memory-bound: nothing but loads matters.
Branch d of neuron n is driven by s = sum_i w x + coupling v, and y = mean over d of g(s), where `kind` chooses g:
  sigmoid          1 / (1 + exp(-slope (s - threshold)))
  nmda             gain (sum_i w x) B(v) (reversal - v) with Jahr and Stevens' block by magnesium,
                   B(v) = 1 / (1 + magnesium / 3.57 mM exp(-0.062 v / mV)); the potential enters here, not in s
  backpropagating  gain (s - threshold) exp(-decay |s|) above the threshold, 0.1 s below it
  saturating       gain tanh(s)
  nmda_compat      gain (reversal - s) / (1 + magnesium exp(-0.062 s)): the older form, the drive for a potential
  sigma_pi         gain tanh(s) with s = sum over neighbouring pairs of (w x)(w x) + coupling v
The variant `shared` has one set of inputs for all neurons: half the bytes. 80 registers leave a third of an SM's warps.
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
    Size,
    Variant,
    Workload,
    absolute,
    reduction,
)
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, real

KINDS = ("sigmoid", "nmda", "backpropagating", "saturating", "sigma_pi", "nmda_compat")
SIGMOID = {
    "kind": "sigmoid", "coupling": 0.5, "slope": 10.0, "threshold": 0.5, "gain": 1.0, "decay": 0.5, "magnesium": 1.0,
    "reversal": 0.0,
}  # fmt: skip
IN_RANGE = real(most=2.0**28)  # clusters multiply four of them
WEIGHTS = Fill(
    lambda rng, count, axes: rng.normal(size=count) / np.sqrt(max(axes["inputs"], 1)),
    "normal / sqrt(inputs)",
    IN_RANGE,
    runs=ONE_BY_ONE,
)
POTENTIALS = Fill(
    lambda rng, count, axes: rng.normal(-40, 25, count) if axes["kind"] == "nmda" else rng.normal(size=count),
    "normal(-40, 25) mV for nmda, normal otherwise",
    real(),
    runs=ONE_BY_ONE,
)
REDUCTION = 1e-6
UNDERFLOW = 1e-30
LEAST_OPEN = 2.0**-126  # of a magnesium block: beyond, its exponential overflows a float


def launch_of(shared: bool) -> Callable[..., Any]:
    def launch(neurons: int, kind: str) -> Launch:
        entry = f"dendritic_integration<{KINDS.index(kind)}, {str(shared).lower()}>"
        return Launch(grid=-(-neurons // 8), block=256, entry=entry)

    return launch


def synapses(x: AnyArray, w: AnyArray, kind: str, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Each branch's sum over its synapses (or over clusters of two), and the sum of the absolute terms."""
    terms = x * w
    if kind == "sigma_pi":
        even = terms.shape[2] // 2 * 2
        clusters = terms[:, :, 0:even:2] * terms[:, :, 1:even:2]
        return clusters.sum(axis=2) + terms[:, :, even:].sum(axis=2), (
            xp.abs(clusters).sum(axis=2) + xp.abs(terms[:, :, even:]).sum(axis=2)
        )
    return terms.sum(axis=2), xp.abs(terms).sum(axis=2)


def unblocked(v: AnyArray, magnesium: float, xp: ArrayModule) -> AnyArray:
    with np.errstate(over="ignore"):
        return 1 / (1 + magnesium / 3.57 * xp.exp(-0.062 * v))


def reference(
    x: AnyArray,
    w: AnyArray,
    v: AnyArray,
    kind: str,
    coupling: float,
    slope: float,
    threshold: float,
    gain: float,
    decay: float,
    magnesium: float,
    reversal: float,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    total = synapses(x, w, kind, xp)[0]
    v = v[:, None]
    s = total + coupling * v
    if kind == "sigmoid":
        g = special.expit(slope * (s - threshold))
    elif kind == "nmda":
        g = gain * total * unblocked(v, magnesium, xp) * (reversal - v)
    elif kind == "nmda_compat":
        g = gain * (reversal - s) * unblocked(s, 3.57 * magnesium, xp)
    elif kind == "backpropagating":
        g = xp.where(s > threshold, gain * (s - threshold) * xp.exp(-decay * xp.abs(s)), 0.1 * s)
    else:
        g = gain * xp.tanh(s)
    return g.mean(axis=1)


def spread(
    x: AnyArray,
    w: AnyArray,
    v: AnyArray,
    kind: str,
    coupling: float,
    slope: float,
    threshold: float,
    gain: float,
    decay: float,
    magnesium: float,
    reversal: float,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    """How far y moves when each drive moves by its sum of absolute terms, plus what g itself rounds.

    An infinite drive is not rounded.
    """
    total, size = synapses(x, w, kind, xp)
    v = v[:, None]
    s, size = total + coupling * v, xp.nan_to_num(size + xp.abs(coupling * v), nan=0.0, posinf=0.0)
    if kind == "sigmoid":
        g = special.expit(slope * (s - threshold))
        moved = slope * g * (1 - g) * (size + abs(threshold)) + g
    elif kind == "nmda":
        open_ = unblocked(v, magnesium, xp)
        lost = xp.where(open_ < LEAST_OPEN, 1 / REDUCTION, 0.0)  # of what is left where the exponential overflows
        moved = abs(gain) * size * open_ * xp.abs(reversal - v) * (2 + 0.062 * xp.abs(v) + lost)
    elif kind == "nmda_compat":
        open_ = unblocked(s, 3.57 * magnesium, xp)
        steepness = open_ + 0.062 * xp.abs(reversal - s) * open_ * (1 - open_)
        moved = abs(gain) * (steepness * (size + abs(reversal)) + 2 * open_ * xp.abs(reversal - s))
    elif kind == "backpropagating":
        moved = backpropagated(s, size + abs(threshold), threshold, gain, decay, xp)
    else:
        moved = gain * ((1 - xp.tanh(s) ** 2) * size + xp.abs(xp.tanh(s)))
    return moved.mean(axis=1) + UNDERFLOW


def backpropagated(
    s: AnyArray, size: AnyArray, threshold: float, gain: float, decay: float, xp: ArrayModule
) -> AnyArray:
    """Where rounding may decide whether the threshold is passed, the jump between both sides counts too."""
    fade = gain * xp.exp(-decay * xp.abs(s))
    above = fade * (1 + 2 * decay * xp.abs(s - threshold)) * size
    undecided = xp.abs(s - threshold) <= REDUCTION * size
    jump = 0.1 * xp.abs(s) + fade * xp.abs(s - threshold)
    return xp.where(s > threshold, above, 0.1 * size) + xp.where(undecided, jump / REDUCTION, 0.0)


def torch_sigmoid(
    torch: ModuleType, x: AnyArray, w: AnyArray, v: AnyArray, coupling: float, slope: float, threshold: float
) -> Any:
    drive = torch.einsum("ndi,ndi->nd", x, w) + coupling * v[:, None]
    return torch.sigmoid(slope * (drive - threshold)).mean(1)


def torch_shared(
    torch: ModuleType, x: AnyArray, w: AnyArray, v: AnyArray, coupling: float, slope: float, threshold: float
) -> Any:
    drive = torch.einsum("di,ndi->nd", x, w) + coupling * v[:, None]
    return torch.sigmoid(slope * (drive - threshold)).mean(1)


def arguments(inputs: str) -> tuple[Any, ...]:
    return (
        In("x", inputs, domain=IN_RANGE), In("w", "neurons dendrites inputs", fill=WEIGHTS),
        In("v", "neurons", fill=POTENTIALS), Out("y", "neurons"), Size("neurons"), Size("dendrites"), Size("inputs"),
        *(Scalar(name) for name in ("coupling", "slope", "threshold", "gain", "decay", "magnesium", "reversal")),
    )  # fmt: skip


def other(meaning: str, kind: str, **constants: Any) -> Variant:
    return Variant(meaning, parameters={**SIGMOID, "kind": kind, **constants}, only_labels=("S0", "S1"))


spec = KernelSpec(
    entry="dendritic_integration",
    arguments=arguments("neurons dendrites inputs"),
    parameters=SIGMOID,
    rules=(
        Rule(f"kind to be one of {', '.join(KINDS)}", lambda kind: kind in KINDS),
        Rule("at least one dendrite", lambda dendrites: dendrites >= 1),
    ),
    launch=launch_of(shared=False),
    reference=reference,
    tolerance=reduction(magnitude=spread, terms=REDUCTION),
    peers={"torch": torch_sigmoid},
    looked_at={"cub": "would sum products of segments, and leave the branches' function to another pass"},
    flops=lambda neurons, dendrites, inputs: 2 * neurons * dendrites * inputs + 6 * neurons * dendrites,
    workloads={
        "S0": Workload(neurons=10, dendrites=8, inputs=16),
        "S1": Workload(neurons=16_384, dendrites=16, inputs=128),
        "S2": Workload(neurons=65_536, dendrites=32, inputs=128),
    },
    edges=(
        *(Workload(neurons=n, dendrites=d, inputs=i) for n, d, i in ((1, 1, 1), (0, 2, 3), (5, 3, 0), (1, 10, 20))),
        *(
            Workload(neurons=n, dendrites=d, inputs=i)
            for n, d, i in ((1, 8, 16), (17, 33, 7), (9, 70, 4), (3, 5, 1001))
        ),
        *(Workload(neurons=n, dendrites=d, inputs=i) for n, d, i in ((256, 4, 12), (2, 6, 516), (11, 31, 130))),
    ),
    golden=(
        Golden(
            Workload(neurons=10, dendrites=8, inputs=16, kind="sigmoid", threshold=0.5),
            inputs={"x": 0.5, "w": 0.1, "v": 0.0},
            expected={"y": 0.952574127},
            source="profiling guide: x = 0.5, w = 0.1, v = 0, type 0",
        ),
        Golden(
            Workload(neurons=2, dendrites=3, inputs=8),
            inputs={"x": -1000.0, "w": 1.0, "v": (-2000.0, 20.0)},
            expected={},
            source="exp overflows in the naive sigmoid and in the magnesium block",
        ),
        Golden(
            Workload(neurons=2, dendrites=1, inputs=2, kind=KINDS[2], coupling=0.0, threshold=0.25, gain=2.0),
            inputs={"x": (((0.5, 0.0),), ((0.5, 1e-3),)), "w": 0.5, "v": 0.0},
            expected={"y": (0.1 * 0.25, 2.0 * 5e-4 * np.exp(-0.5 * 0.2505))},
            source="a drive on the threshold counts as below it, where g is not continuous",
            tolerance=absolute(1e-6),
        ),
    ),
    variants={
        "nmda": other("conductance with magnesium block", "nmda"),
        "nmda_compat": Variant(
            "the older magnesium block, without its constant and on the drive",
            parameters={**SIGMOID, "kind": "nmda_compat", "reversal": 1.0},
            only_labels=("S0",),
            budgets=(),
        ),
        "backpropagating": other("active back-propagation", "backpropagating", threshold=0.3, gain=2.0),
        "saturating": other("saturating sum, the public project's 'multiplicative'", "saturating"),
        "sigma_pi": other("sigma-pi unit with clusters of two", "sigma_pi"),
        "shared": Variant(
            "inputs shared by all neurons",
            arguments=arguments("dendrites inputs"),
            launch=launch_of(shared=True),
            peers={"torch": torch_shared},
            edges=(
                *(Workload(neurons=n, dendrites=d, inputs=i) for n, d, i in ((1, 1, 1), (0, 2, 3), (17, 33, 7))),
                Workload(neurons=9, dendrites=70, inputs=4),
                *(Workload(neurons=11, dendrites=6, inputs=130, kind=kind) for kind in KINDS),
            ),
            golden=(
                Golden(
                    Workload(neurons=10, dendrites=8, inputs=16),
                    {"x": 0.5, "w": 0.1, "v": 0.0},
                    {"y": 0.952574127},
                    source="profiling guide: x = 0.5, w = 0.1, v = 0, type 0",
                ),
            ),
        ),
    },
    budgets=(
        Budget("bandwidth_share", at_least=0.85, label="S1"),
        Budget("bandwidth_share", at_least=0.85, label="S2"),
    ),
)
