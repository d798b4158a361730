"""Controlled NOT on a state vector: where the control qubit is 1, the target qubit is flipped."""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, InOut, KernelSpec, Launch, Rule, Size, Variant, Workload, exact
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..peers import custatevec_peers

# Memory-bound: half of the state moves; with control 0 or 1 every 32-byte sector does, which is twice that.


def launch(states: int, control: int, target: int) -> Launch:
    """An element of those that move per thread (one amplitude with control 0, else two).

    Two elements where their partners are in no thread of the same warp.
    """
    elements = states // 2 if control == 0 else states // 4
    position = target - 1 if control == 0 or target < control else target - 2
    return Launch(grid=-(-elements // (512 if target > 0 and position > 4 else 256)), block=256)


def reference(psi: AnyArray, states: int, control: int, target: int, xp: ArrayModule) -> AnyArray:
    index = xp.arange(states)
    return psi[index ^ (((index >> control) & 1) << target)]


def torch_gate(torch: ModuleType, psi: AnyArray, control: int, target: int) -> Any:
    """Both qubits become axes; the target's is reversed where the control is 1."""
    high, low = max(control, target), min(control, target)
    moved = psi.clone()
    old, new = (state.view(-1, 2, 1 << (high - low - 1), 2, 2 << low) for state in (psi, moved))
    if control > target:
        new[:, 1] = old[:, 1].flip(2)
    else:
        new[:, :, :, 1] = old[:, :, :, 1].flip(1)
    return moved


def custatevec_gate(custatevec: ModuleType, psi: AnyArray, control: int, target: int) -> Any:
    return custatevec_peers.gate(custatevec, psi, [[0, 1], [1, 0]], (target,), (control,))


def two_qubits(control: int, expected: tuple[int, int, int, int]) -> Golden:
    """Amplitudes 1, 2, 3, 4 of |00>, |01>, |10>, |11>."""
    return Golden(
        Workload(qubits=2, control=control, target=1 - control),
        inputs={"psi": [[1, -1], [2, -2], [3, -3], [4, -4]]},
        expected={"psi": [[value, -value] for value in expected]},
        source="the truth table of CNOT",
    )


spec = KernelSpec(
    entry="cnot_gate",
    arguments=(InOut("psi", "states 2"), Size("states", "int64"), Size("control"), Size("target")),
    derived={"states": lambda qubits: 1 << qubits},
    rules=(
        Rule("control and target to differ", lambda control, target: control != target),
        Rule("0 <= control < qubits", lambda qubits, control: 0 <= control < qubits),
        Rule("0 <= target < qubits", lambda qubits, target: 0 <= target < qubits),
    ),
    launch=launch,
    reference=reference,
    tolerance=exact(),
    peers={
        "torch": Peer(torch_gate, work="writes the whole state to another place; half of it changes"),
        "custatevec": Peer(custatevec_gate, prepares=True, work="in place, on its own copy of the state"),
    },
    peer_tolerance=exact(),
    bytes_moved=lambda states, control: (16 if control < 2 else 8) * states,
    workloads={
        "S0": Workload(qubits=10, control=5, target=3),
        "S1": Workload(qubits=27, control=20, target=13),
        "S2": Workload(qubits=30, control=12, target=29),
    },
    edges=(
        *(Workload(qubits=3, control=c, target=t) for c in range(3) for t in range(3) if c != t),
        *(Workload(qubits=11, control=0, target=t) for t in (1, 5, 6, 7, 10)),
        *(Workload(qubits=11, control=c, target=0) for c in (1, 5, 10)),
        *(Workload(qubits=11, control=c, target=t) for c, t in ((10, 9), (9, 10), (10, 1), (1, 10), (6, 5), (5, 6))),
        *(Workload(qubits=11, control=c, target=t) for c, t in ((4, 7), (3, 6), (7, 5), (8, 6), (2, 8))),
    ),
    golden=(
        two_qubits(control=1, expected=(1, 2, 4, 3)),
        two_qubits(control=0, expected=(1, 4, 3, 2)),
        Golden(
            Workload(qubits=2, control=0, target=1), {"psi": [[0.5**0.5, 0], [0.5**0.5, 0], [0, 0], [0, 0]]},
            {"psi": [[0.5**0.5, 0], [0, 0], [0, 0], [0.5**0.5, 0]]}, source="a Bell state",
        ),
        Golden(
            Workload(qubits=2, control=1, target=0), {"psi": [[0, 0], [0, 0], [np.nan, np.inf], [-0.0, 1e-45]]},
            {"psi": [[0, 0], [0, 0], [-0.0, 1e-45], [np.nan, np.inf]]}, source="bits are moved, not computed",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "low": Variant(
            "a control whose amplitudes share their sectors with others, a target within a warp",
            workloads={"S1": Workload(qubits=27, control=0, target=3)},
            edges=(),
            golden=(),
            budgets=(),
        ),
    },
)  # fmt: skip
