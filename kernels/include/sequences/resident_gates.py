"""Launches of resident_gates.cuh: sequences of a recurrent cell whose weights stay in one block."""

from math import sqrt

from prism_bench import Launch, Rule
from prism_bench.spec import UNIT_ROUNDOFF, AnyArray, ArrayModule, Device

UNITS, MOST_INPUTS = 128, 256
BUSY_ROUNDS = 16  # samples that a multiprocessor takes one after the other before tiles of many samples pay
CHUNK = 64
# Threads of a unit and groups of four weights of each gate that a thread keeps in registers, by the number of gates.
LANES, KEPT = 4, {3: 8, 4: 6}
STEPS = {3: 16, 4: 8}


LIMIT = 1e-5  # normwise error of a sequence

EDGES_OF_RESIDENT = ((65, 256, 128), (17, 12, 100), (67, 6, 9))  # steps, inputs, units


def tile_rule(*tiles: str) -> Rule:
    """Which tiles a sequence may have: these, and `Resident` for few units and inputs."""
    names = ("auto", *tiles, "Resident")
    few = lambda tile, inputs, hidden: tile != "Resident" or (inputs <= MOST_INPUTS and hidden <= UNITS)  # noqa: E731
    return Rule(
        f"tile is one of {', '.join(names)}, Resident for at most {UNITS} units and {MOST_INPUTS} inputs",
        lambda tile, inputs, hidden: tile in names and few(tile, inputs, hidden),
    )


def reachable(state: AnyArray, sums: AnyArray, gates: int, inputs: int, xp: ArrayModule) -> AnyArray:
    """Magnitude of a sequence's tolerance: the terms of a state, or all that it may be where a gate is lost.

    `sums` are the absolute terms of the gates' sums of each step. A gate whose finite sum is rounded by 1 or more may
    have any value in float32, and the state with it: then the tolerance is the size of the state itself.
    """
    batch, hidden = state.shape
    lost = xp.isfinite(sums) & (UNIT_ROUNDOFF["float32"] * sums >= 1)
    is_lost = lost.reshape(len(sums), batch, gates, hidden).any(axis=(0, 2))
    return xp.where(is_lost, state * (sqrt(inputs + hidden) / LIMIT), state)


def shared_bytes(gates: int, inputs: int, lanes: int, kept: int, chunk: int = CHUNK) -> int:
    """Weights that are not in registers, what comes from the inputs of a chunk of steps, inputs, and two states."""
    weights = 4 * gates * (UNITS // 4 // lanes - kept) * UNITS * lanes
    return 4 * (weights + chunk * gates * UNITS + STEPS[gates] * (-(-inputs // 4) * 4) + 2 * UNITS)


def suits_resident(gates: int, batch: int, inputs: int, hidden: int, device: Device) -> bool:
    """Whether a block holds the weights, and the samples are few."""
    if hidden > UNITS or inputs > MOST_INPUTS or batch > BUSY_ROUNDS * device.sm_count:
        return False
    return shared_bytes(gates, inputs, LANES, KEPT[gates]) <= device.max_shared_bytes


def resident(entry: str, arguments: tuple[str, ...], gates: int, batch: int, inputs: int) -> Launch:
    """The launch of `entry`, a block per sample."""
    kept = KEPT[gates]
    shared = shared_bytes(gates, inputs, LANES, kept)
    return Launch(batch, UNITS * LANES, shared, f"{entry}<{LANES}, {kept}>", arguments)
