"""Phase gate diag(1, e^(i phi)) on one qubit of a state vector: phi = pi is Z, pi/2 is S, pi/4 is T."""

import math
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, InOut, KernelSpec, Launch, Rule, Scalar, Size, Variant, Workload, elementwise
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, Peer, real

from ..peers import custatevec_peers

# Memory-bound: half of the state moves; with qubit 0 or 1 every 32-byte sector does, which is twice that.

STATE = Fill(
    lambda rng, count, axes: rng.normal(0, (2 * axes["states"]) ** -0.5, count),
    "normal, of norm 1 in the mean",
    real(),
    runs=ONE_BY_ONE,
)


def tail(value: float) -> float:
    """What float32 loses of a number."""
    return value - float(np.float32(value))


def launch(states: int, qubit: int) -> Launch:
    """One vector of two amplitudes per thread, of those that change."""
    return Launch(grid=-(-states // (256 * (2 if qubit == 0 else 4))), block=256)


def reference(psi: AnyArray, qubit: int, phi: float, xp: ArrayModule) -> AnyArray:
    view = psi.reshape(-1, 2, 1 << qubit, 2)
    x, y = view[:, 1, :, 0], view[:, 1, :, 1]
    turned = xp.stack((math.cos(phi) * x - math.sin(phi) * y, math.sin(phi) * x + math.cos(phi) * y), axis=-1)
    return xp.stack((view[:, 0], turned), axis=1)


def torch_real(torch: ModuleType, psi: AnyArray, qubit: int, phi: float) -> Any:
    """In real numbers, which the compiler makes one kernel of."""
    view = psi.view(-1, 2, 1 << qubit, 2)
    x, y = view[:, 1, :, 0], view[:, 1, :, 1]
    cosine, sine = math.cos(phi), math.sin(phi)
    turned = torch.stack((cosine * x - sine * y, sine * x + cosine * y), dim=-1)
    return torch.stack((view[:, 0], turned), dim=1)


def torch_gate(torch: ModuleType, psi: AnyArray, qubit: int, phi: float) -> Any:
    turned = psi.clone()
    upper = torch.view_as_complex(turned).view(-1, 2, 1 << qubit)[:, 1]
    upper *= complex(math.cos(phi), math.sin(phi))
    return turned


def custatevec_gate(custatevec: ModuleType, psi: AnyArray, qubit: int, phi: float) -> Any:
    """The factor, as a gate on another qubit that this one controls: half of the state moves."""
    factor, other = complex(math.cos(phi), math.sin(phi)), 0 if qubit else 1
    if len(psi) == 2:
        return custatevec_peers.gate(custatevec, psi, np.diag((1, factor)), (qubit,))
    return custatevec_peers.gate(custatevec, psi, factor * np.eye(2), (other,), (qubit,))


def plus(phi: float) -> Golden:
    """The gate on (|0> + |1>) / sqrt(2)."""
    return Golden(
        Workload(qubits=1, phi=phi),
        inputs={"psi": [[0.5**0.5, 0], [0.5**0.5, 0]]},
        expected={"psi": [[0.5**0.5, 0], [0.5**0.5 * math.cos(phi), 0.5**0.5 * math.sin(phi)]]},
        source="calculated: the second amplitude times e^(i phi)",
    )


spec = KernelSpec(
    entry="phase_gate",
    arguments=(
        InOut("psi", "states 2", fill=STATE), Size("states", "int64"), Size("qubit"),
        Scalar("cosine"), Scalar("cosine_tail"), Scalar("sine"), Scalar("sine_tail"),
    ),
    parameters={"qubit": 0, "phi": math.pi / 4},
    derived={
        "states": lambda qubits: 1 << qubits,
        "cosine": lambda phi: math.cos(phi),
        "sine": lambda phi: math.sin(phi),
        "cosine_tail": lambda cosine: tail(cosine),
        "sine_tail": lambda sine: tail(sine),
    },
    rules=(
        Rule("0 <= qubit < qubits", lambda qubits, qubit: 0 <= qubit < qubits),
        Rule("phi to be finite", lambda phi: math.isfinite(phi)),
    ),
    launch=launch,
    reference=reference,
    tolerance=elementwise(),
    peers={
        "torch_real": Peer(torch_real, work="writes the whole state to another place; half of it changes"),
        "torch": Peer(torch_gate, work="writes the whole state to another place; half of it changes"),
        "custatevec": Peer(custatevec_gate, prepares=True, work="in place, on its own copy of the state"),
    },
    flops=lambda states: 3 * states,
    bytes_moved=lambda states, qubit: (16 if qubit < 2 else 8) * states,
    workloads={
        "S0": Workload(qubits=10, qubit=3),
        "S1": Workload(qubits=27, qubit=13),
        "S2": Workload(qubits=30, qubit=29),
    },
    edges=(
        *(Workload(qubits=n, qubit=q) for n, q in ((1, 0), (2, 0), (2, 1), (3, 2), (7, 6))),
        *(Workload(qubits=11, qubit=q) for q in range(11)),
        *(Workload(qubits=9, qubit=4, phi=phi) for phi in (0.0, math.pi, -math.pi / 2, 100.0, 1e-9)),
    ),
    golden=tuple(plus(phi) for phi in (math.pi, math.pi / 2, math.pi / 4, -math.pi / 3)),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "low": Variant(
            "a qubit whose amplitudes share their sectors with others",
            workloads={"S1": Workload(qubits=27, qubit=0)},
            edges=(),
            golden=(),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
    },
)  # fmt: skip
