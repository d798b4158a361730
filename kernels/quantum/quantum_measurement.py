"""Born's rule p_x = |psi_x|^2 over the basis states of a register; the variant `shots` draws measurements from it.

A shot is the first state whose cumulative probability exceeds u times the whole: no state need be normalised. Of a
subset of measured qubits (a bit mask) it is their bits, side by side. u comes from Philox by shot number and seed.
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
    elementwise,
    exact,
    reduction,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, Peer, real

from ..include.numbers.philox import uniforms
from ..peers import custatevec_peers

# Memory-bound: three operations a state. `shots` is partly latency-bound: a separate launch sums small pieces, and the
# loads of a shot wait for each other, so that a warp draws several.
PART, SCANNED = 256, 1024
SHOTS, WARPS = 8, 8  # shots of a warp at most, warps of a block
ROOTS = "takes the root that it squares again"
IN_DOUBLE = "sums and writes float64, the kernel float32"
normalised = Fill(
    lambda rng, count, axes: rng.normal(0, 2 ** (-(axes["qubits"] + 1) / 2), count),
    "normal, of squared norm 1",
    real(),
    runs=ONE_BY_ONE,
)


def launch(states: int) -> Launch:
    return Launch(grid=-(-states // 512), block=128)


def launch_shots(states: int, parts: int, shots: int, device: Device) -> tuple[Launch | Zero, ...]:
    """Probabilities with the sums of 256 states each; their running sums; a warp for each shot."""
    names = ("psi", "sums", "drawn", "states", "parts", "shots", "mask", "seed")
    return (
        Zero("tiles"),
        Launch(-(-parts // 4), 128, entry="measurement_sums", arguments=("psi", "p", "sums", "states")),
        Launch(-(-parts // SCANNED), SCANNED // 4, entry="measurement_scan", arguments=("sums", "tiles", "parts")),
        Launch(
            max(-(-shots // (WARPS * SHOTS)), min(-(-shots // WARPS), 16 * device.sm_count)),
            256,
            entry="measurement_shots",
            arguments=names,
        ),
    )


def upper_outcomes(mask: int) -> int:
    """Of the measured qubits above the 64 amplitudes that a warp reads at a time."""
    return 1 << (mask >> 6).bit_count()


def shares_of(states: int, mask: int) -> int:
    """Warps that share an outcome's amplitudes: 2^15 of them in all, if each has eight readings.

    Where one warp can take an outcome's few readings, nothing is left to add up in a second launch.
    """
    readings = max(1, states // 64 // upper_outcomes(mask))
    return max(1, min(32_768 // upper_outcomes(mask), readings // 8)) if readings > 32 else 1


def launch_marginals(mask: int, outcomes: int, shares: int) -> tuple[Launch, ...]:
    warps, lanes = upper_outcomes(mask), 32 if shares >= 32 else 1
    block = 32 * min(8, warps)
    number, result = ("float", "p") if shares == 1 else ("double", "sums")
    sums = Launch(
        (-(-32 * warps // block), shares),
        block,
        entry=f"marginal_sums<{number}>",
        arguments=("psi", result, "states", "mask"),
    )
    names = ("sums", "p", "outcomes", "shares")
    totals = Launch(-(-outcomes * lanes // 256), 256, entry=f"marginal_totals<{lanes}>", arguments=names)
    return (sums,) if shares == 1 else (sums, totals)


def runs_of(mask: int, qubits: int) -> Any:
    """Neighbouring qubits that are all measured or all free, from the highest: how many, and which."""
    runs = []
    for qubit in reversed(range(qubits)):
        measured = bool(mask >> qubit & 1)
        if runs and runs[-1][1] == measured:
            runs[-1] = (runs[-1][0] + 1, measured)
        else:
            runs.append((1, measured))
    return runs


def marginals(p: AnyArray, mask: int, qubits: int) -> AnyArray:
    """p summed over the qubits that are not in the mask, for any library's arrays."""
    runs = runs_of(mask, qubits)
    free = tuple(axis for axis, (_, measured) in enumerate(runs) if not measured)
    grouped = p.reshape(tuple(1 << count for count, _ in runs))
    return (grouped.sum(free) if free else grouped).reshape(-1)


def torch_marginals(torch: ModuleType, psi: AnyArray, mask: int, qubits: int) -> Any:
    return marginals(torch.view_as_complex(psi).abs().square(), mask, qubits)


def torch_squares(torch: ModuleType, psi: AnyArray, mask: int, qubits: int) -> Any:
    return marginals(psi.square().sum(1), mask, qubits)


def custatevec_probabilities(custatevec: ModuleType, psi: AnyArray, qubits: int) -> Any:
    return custatevec_peers.Register(custatevec, psi).probabilities(range(qubits))


def custatevec_marginals(custatevec: ModuleType, psi: AnyArray, mask: int, qubits: int) -> Any:
    measured = [qubit for qubit in range(qubits) if mask >> qubit & 1]
    return custatevec_peers.Register(custatevec, psi).probabilities(measured)


def reference(psi: AnyArray) -> AnyArray:
    return psi[:, 0] ** 2 + psi[:, 1] ** 2


def shots_of(
    psi: AnyArray, qubits: int, shots: int, seed: int, mask: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray]:
    p = reference(psi)
    cumulative = xp.cumsum(p)
    drawn = uniforms(shots, seed, xp) * cumulative[-1]
    state = xp.searchsorted(cumulative, drawn, side="right")
    bits = [q for q in range(qubits) if mask >> q & 1]
    outcome = sum(((state >> q & 1) << i for i, q in enumerate(bits)), xp.zeros(shots, dtype="int64"))
    there = (cumulative[-1] > 0) & xp.isfinite(cumulative[-1])
    return p, xp.where(there, outcome, -1)


def basis(states: int) -> AnyArray:
    """All amplitude in one state, i times 3 of it."""
    return np.stack((np.zeros(states), 3.0 * (np.arange(states) == states // 3)), axis=1)


def sparse(states: int) -> AnyArray:
    """A state with amplitude in one of 700 basis states."""
    return np.where(np.arange(states)[:, None] % 700 == 5, [[0.6, -0.8]], 0.0)


few = tuple(Workload(qubits=q) for q in (0, 1, 2, 9, 13))
spec = KernelSpec(
    entry="quantum_measurement",
    arguments=(In("psi", "states 2", fill=normalised), Out("p", "states"), Size("states", "int64")),
    derived={"states": lambda qubits: 1 << qubits},
    rules=(Rule("0 <= qubits <= 40", lambda qubits: 0 <= qubits <= 40),),
    launch=launch,
    reference=reference,
    tolerance=elementwise(ulps=4, floor=1e-44),
    peers={
        "torch_squares": lambda torch, psi: psi.square().sum(1),
        "torch": Peer(
            lambda torch, psi: torch.view_as_complex(psi).abs().square(), work=ROOTS
        ),
        "cupy": lambda cupy, psi: cupy.abs(psi.view("complex64")[:, 0]) ** 2,
        "custatevec": Peer(custatevec_probabilities, prepares=True, work=IN_DOUBLE),
    },
    flops=lambda states: 3 * states,
    workloads={"S0": Workload(qubits=10), "S1": Workload(qubits=27), "S2": Workload(qubits=30)},
    edges=few,
    golden=(
        Golden(Workload(qubits=6), {"psi": basis}, {"p": lambda states: basis(states)[:, 1] ** 2},
        source="a basis state"),
        Golden(
            Workload(qubits=2), {"psi": [[np.nan, 0], [np.inf, 1], [1e-30, 1e-20], [1e15, 1e18]]}, {},
            source="NaN, infinite, underflow, large",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "marginals": Variant(
            "of a subset of the qubits, the others summed over", launch=launch_marginals,
            arguments=(
                In("psi", "states 2", fill=normalised), Out("p", "outcomes"),
                Scratch("sums", "outcomes shares", "float64"), Size("states", "int64"), Size("outcomes", "int64"),
                Size("shares"), Scalar("mask", "uint64"),
            ),
            parameters={"measured": 0},
            derived={
                "states": lambda qubits: 1 << qubits,
                "mask": lambda measured: measured,
                "outcomes": lambda measured: 1 << measured.bit_count(),
                "shares": shares_of,
            },
            rules=(
                Rule("0 <= qubits <= 40", lambda qubits: 0 <= qubits <= 40),
                Rule("a bit mask of qubits", lambda measured, qubits: 0 <= measured < 1 << qubits),
            ),
            reference=lambda psi, mask, qubits: marginals(reference(psi), mask, qubits),
            tolerance=reduction(lambda psi, mask, qubits: marginals(reference(psi), mask, qubits)),
            peers={
                "torch": Peer(torch_marginals, work=ROOTS),
                "torch_squares": torch_squares,
                "custatevec": Peer(custatevec_marginals, prepares=True, work=IN_DOUBLE),
            },
            workloads={
                "S0": Workload(qubits=10, measured=0b1111),
                "S1": Workload(qubits=27, measured=0xFF << 12),
                "S2": Workload(qubits=30, measured=0xF0F << 3),
            },
            edges=(
                *(Workload(qubits=q, measured=m) for q, m in ((0, 0), (1, 0), (1, 1), (2, 2), (5, 0b10101), (6, 7))),
                *(Workload(qubits=13, measured=m) for m in (0, 1, 0x1FFF, 0x1000, 0b1010101010101, 0x1FC0, 0x3F)),
                Workload(qubits=17, measured=0b10000000000100001),
            ),
            golden=(
                Golden(
                    Workload(qubits=2, measured=0b10), {"psi": [[0.5, 0], [0, 0.5], [0.1, 0.7], [0, 0]]},
                    {"p": [0.5, 0.5]}, source="calculated: the lower qubit is summed over",
                ),
            ),
        ),
        # cuStateVec draws shots too, from random numbers of its caller: other draws than the reference's.
        "shots": Variant(
            "with measurements drawn", launch=launch_shots,
            arguments=(
                In("psi", "states 2", fill=normalised), Out("p", "states"), Out("drawn", "shots", "int64"),
                Scratch("sums", "parts", "float64"), Scratch("tiles", "words", "uint64"), Size("states", "int64"),
                Size("parts", "int64"), Size("shots", "int64"), Scalar("mask", "uint64"), Scalar("seed", "uint64"),
            ),
            parameters={"shots": 65_536, "seed": 1234, "measured": 0},
            derived={
                "states": lambda qubits: 1 << qubits,
                "parts": lambda states: -(-states // PART),
                "words": lambda parts: 1 - -parts // SCANNED,
                "mask": lambda states, measured: measured or states - 1,
            },
            rules=(
                Rule("0 <= qubits <= 40", lambda qubits: 0 <= qubits <= 40),
                Rule("a bit mask of qubits, 0 for all", lambda measured, qubits: 0 <= measured < 1 << qubits),
            ),
            reference=shots_of,
            bytes_moved=lambda states, shots: 12 * states + 8 * shots + 8 * min(states, PART * shots),
            traffic_factor=None,  # each shot reads the amplitudes of its chunk, from the L2 cache if shots are many
            tolerance={"p": elementwise(ulps=4, floor=1e-44), "drawn": exact()},
            workloads={"S0": Workload(qubits=10, shots=1000), "S1": Workload(qubits=27), "S2": Workload(qubits=30)},
            edges=(
                *(Workload(qubits=q, shots=s) for q, s in ((0, 3), (1, 40), (5, 0), (12, 300))),
                Workload(qubits=6, shots=100, measured=0b101001, seed=2**64 - 3),
                Workload(qubits=19, shots=3),
            ),
            golden=(
                Golden(
                    Workload(qubits=10, shots=1, seed=0), {"psi": [[0.03125, 0]]}, {"drawn": 0x6627E8D5 >> 22},
                    source="Philox4x32-10 of counter and key 0 begins with 6627e8d5 (Random123's known answers)",
                ),
                Golden(
                    Workload(qubits=6, shots=20), {"psi": basis}, {"drawn": 21}, source="not normalised, one outcome"
                ),
                Golden(Workload(qubits=11, shots=200), {"psi": sparse}, {}, source="impossible states are never drawn"),
                Golden(Workload(qubits=4, shots=5), {"psi": 0.0}, {"drawn": -1}, source="no norm, no outcome"),
                Golden(Workload(qubits=4, shots=5), {"psi": np.nan}, {"drawn": -1}, source="no norm, no outcome"),
            ),
        ),
    },
)  # fmt: skip
