"""Pauli X gate on one qubit of a state vector: amplitudes that differ in it change places, in memory.

A thread's stores wait for both of its loads, tied by an integer operation with a zero that the compiler cannot see: a
store into a line that another load still fetches costs a sixth of the time. The operation looks useless and is not.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, InOut, KernelSpec, Launch, Rule, Size, Variant, Workload, exact
from prism_bench.spec import AnyArray, Peer

from ..peers import custatevec_peers

# Memory-bound. Renaming the basis states would cost nothing; this moves them.


def launch(states: int, qubit: int) -> Launch:
    """One vector of two amplitudes per thread; two where the partner is in no thread of the same warp."""
    return Launch(grid=-(-states // (256 * (4 if qubit > 5 else 2))), block=256)


def by_bit(psi: AnyArray, qubit: int) -> AnyArray:
    """The state with an axis for the qubit."""
    return psi.reshape(-1, 2, 2 << qubit)


def custatevec_gate(custatevec: ModuleType, psi: AnyArray, qubit: int) -> Any:
    return custatevec_peers.gate(custatevec, psi, [[0, 1], [1, 0]], (qubit,))


spec = KernelSpec(
    entry="pauli_x_gate",
    arguments=(InOut("psi", "states 2"), Size("states", "int64"), Size("qubit")),
    parameters={"qubit": 0},
    derived={"states": lambda qubits: 1 << qubits},
    rules=(Rule("0 <= qubit < qubits", lambda qubits, qubit: 0 <= qubit < qubits),),
    launch=launch,
    reference=lambda psi, qubit: by_bit(psi, qubit)[:, ::-1],
    tolerance=exact(),
    peers={
        "torch": lambda torch, psi, qubit: by_bit(psi, qubit).flip(1),
        "cupy": lambda cupy, psi, qubit: cupy.ascontiguousarray(by_bit(psi, qubit)[:, ::-1]),
        "custatevec": Peer(custatevec_gate, prepares=True, work="in place, on its own copy of the state"),
    },
    peer_tolerance=exact(),
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
        Golden(Workload(qubits=1), {"psi": [[0.6, 0.0], [0.0, 0.8]]}, {"psi": [[0, 0.8], [0.6, 0]]}, "X swaps 0 and 1"),
        Golden(
            Workload(qubits=8, qubit=7), {"psi": lambda states: np.eye(states)[0][:, None] * [1, 0]},
            {"psi": lambda states: np.eye(states)[128][:, None] * [1, 0]}, source="X on qubit 7 of |0> gives |128>",
        ),
        Golden(
            Workload(qubits=1), {"psi": [[np.nan, np.inf], [-0.0, 1e-45]]}, {"psi": [[-0.0, 1e-45], [np.nan, np.inf]]},
            source="bits are moved, not computed",
        ),
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
    },
)  # fmt: skip
