"""Hadamard gate on one qubit of a state vector: (a, b) -> (a + b, a - b) / sqrt(2) for amplitudes that differ in it."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, InOut, KernelSpec, Launch, Rule, Size, Variant, Workload, elementwise, reduction
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, Peer, real

from ..peers import custatevec_peers

# Memory-bound: one read and one write of the state.

STATE = Fill(
    lambda rng, count, axes: rng.normal(0, (2 * axes["states"]) ** -0.5, count),
    "normal, of norm 1 in the mean",
    real(),
    runs=ONE_BY_ONE,
)


def launch(states: int, qubit: int) -> Launch:
    """One vector of two amplitudes per thread; two where the partner is in no thread of the same warp."""
    return Launch(grid=-(-states // (256 * (4 if qubit > 5 else 2))), block=256)


def transformed(psi: AnyArray, qubit: int, stack: Callable[..., Any]) -> AnyArray:
    a, b = (psi.reshape(-1, 2, 2 << qubit)[:, k] for k in (0, 1))
    return stack((a + b, a - b)).reshape(-1, 2) * 0.5**0.5


def reference(psi: AnyArray, qubit: int, xp: ArrayModule) -> AnyArray:
    return transformed(psi, qubit, lambda pair: xp.stack(pair, axis=1))


def reference_three(psi: AnyArray, qubit: int, xp: ArrayModule) -> AnyArray:
    for q in range(qubit, qubit + 3):
        psi = reference(psi, q, xp)
    return psi


def sizes(psi: AnyArray, qubit: int, xp: ArrayModule) -> AnyArray:
    """The absolute terms of each amplitude: eight of them, however much of them cancels."""
    terms = xp.abs(psi)
    for q in range(qubit, qubit + 3):
        terms = transformed(terms, q, lambda pair: xp.stack((pair[0], pair[0]), axis=1))
    return terms


def torch_gate(torch: ModuleType, psi: AnyArray, qubit: int) -> Any:
    return transformed(psi, qubit, lambda pair: torch.stack(pair, dim=1))


def torch_three(torch: ModuleType, psi: AnyArray, qubit: int) -> Any:
    for q in range(qubit, qubit + 3):
        psi = torch_gate(torch, psi, q)
    return psi


def gates_at_once(count: int) -> Peer:
    """cuStateVec's product with the matrix of Hadamard gates on `count` neighbouring qubits."""

    def prepare(custatevec: ModuleType, psi: AnyArray, qubit: int) -> Any:
        return custatevec_peers.gate(custatevec, psi, matrix_of(count), range(qubit, qubit + count))

    return Peer(prepare, prepares=True, work="in place, on its own copy of the state")


def matrix_of(count: int) -> AnyArray:
    """The matrix of `count` Hadamard gates side by side."""
    one, product = np.array([[1, 1], [1, -1]]) * 0.5**0.5, np.ones((1, 1))
    for _ in range(count):
        product = np.kron(product, one)
    return product


def basis(state: int) -> Callable[..., Any]:
    """The amplitudes of one basis state."""
    return lambda states: np.eye(states)[state][:, None] * [1, 0]


half = 0.5**0.5

spec = KernelSpec(
    entry="hadamard_gate",
    arguments=(InOut("psi", "states 2", fill=STATE), Size("states", "int64"), Size("qubit")),
    parameters={"qubit": 0},
    derived={"states": lambda qubits: 1 << qubits},
    rules=(Rule("0 <= qubit < qubits", lambda qubits, qubit: 0 <= qubit < qubits),),
    launch=launch,
    reference=reference,
    tolerance=elementwise(),
    peers={"torch": torch_gate, "custatevec": gates_at_once(1)},
    flops=lambda states: 4 * states,
    workloads={
        "S0": Workload(qubits=10, qubit=3),
        "S1": Workload(qubits=27, qubit=13),
        "S2": Workload(qubits=30, qubit=29),
    },
    edges=tuple(
        Workload(qubits=n, qubit=q)
        for n, q in ((1, 0), (2, 0), (2, 1), (3, 2), (7, 5), (7, 6), (11, 0), *((11, q) for q in range(1, 11)))
    ),
    golden=(
        Golden(Workload(qubits=1), {"psi": basis(0)}, {"psi": [[half, 0], [half, 0]]}, source="H|0> = |+>"),
        Golden(Workload(qubits=1), {"psi": basis(1)}, {"psi": [[half, 0], [-half, 0]]}, source="H|1> = |->"),
        Golden(Workload(qubits=9, qubit=8), {"psi": basis(256)}, {}, source="the highest qubit is a large stride"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "low": Variant(
            "a qubit whose partners share a warp",
            workloads={"S1": Workload(qubits=27, qubit=2)},
            edges=(),
            golden=(),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "fused": Variant(
            "three gates in one pass, on qubit, qubit + 1 and qubit + 2",
            entry="hadamard_three",
            rules=(Rule("0 < qubit < qubits - 2", lambda qubits, qubit: 0 < qubit < qubits - 2),),
            launch=lambda states: Launch(grid=-(-states // 4096), block=256),
            reference=reference_three,
            tolerance=reduction(sizes),  # the sums of two gates cancel in the third
            peers={
                "torch": Peer(torch_three, work="a gate after the other, where the kernel reads the state once"),
                "custatevec": gates_at_once(3),
            },
            flops=lambda states: 12 * states,
            workloads={"S0": Workload(qubits=10, qubit=3), "S1": Workload(qubits=27, qubit=13)},
            edges=tuple(Workload(qubits=n, qubit=q) for n, q in ((4, 1), (7, 3), (12, 1), (12, 6), (12, 9))),
            golden=(),
        ),
    },
)
