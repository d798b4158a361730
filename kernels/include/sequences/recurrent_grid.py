"""Launches of recurrent_grid.cuh: sequences of a recurrent cell whose weights stay on a grid of blocks."""

from dataclasses import dataclass, replace

from prism_bench import Launch, Rule, Scratch, Zero
from prism_bench.spec import Device

from ..products.gemm_tile import on_tiles
from .resident_gates import MOST_INPUTS
from .resident_gates import UNITS as RESIDENT_UNITS

SAMPLES, UNITS, WHOLE_UNITS, MOST_UNITS = 64, 8, 16, 1024
MOST_STEPS = 128  # of a launch: bounds what the products of x take
WARPS, APART = 8, 16  # counters, and their distance in words
STAGES = {3: 4, 4: 3}  # by the number of gates, as in the entries

# The products of x of a launch, the states of two steps, and what blocks count for each other.
SCRATCH = (
    Scratch("by_x", "by_x_rows gates"),
    Scratch("states", "grid_states hidden"),
    Scratch("counters", "counter_words", dtype="uint64"),
)
# steps, samples, inputs, units: warps without a part, more steps than a launch has, more chunks than are in flight and
# large tiles
EDGES_OF_GRID = (
    (1, 1, 0, 16), (3, 64, 33, 32), (2, 5, 7, 144), (131, 2, 3, 16), (2, 64, 9, 656),
)  # fmt: skip
GRID_RULE = Rule(
    f"Grid is for at most {SAMPLES} samples, and units in groups of {WHOLE_UNITS}, at most {MOST_UNITS}",
    lambda tile, batch, hidden: tile != "Grid" or fits(batch, hidden),
)


def fits(batch: int, hidden: int) -> bool:
    """Whether a grid can have the samples and units."""
    return batch <= SAMPLES and hidden % WHOLE_UNITS == 0 and 0 < hidden <= MOST_UNITS


def may_be_grid(batch: int, inputs: int, hidden: int, tile: str) -> bool:
    """Whether a launch may take the grid: few units are left to single blocks."""
    many = batch > 0 and (hidden > RESIDENT_UNITS or inputs > MOST_INPUTS)
    return tile == "Grid" or (tile == "auto" and many and fits(batch, hidden))


def by_x_rows(steps: int, batch: int, inputs: int, hidden: int, tile: str) -> int:
    return min(steps, MOST_STEPS) * batch if may_be_grid(batch, inputs, hidden, tile) else 0


def grid_states(batch: int, inputs: int, hidden: int, tile: str) -> int:
    return 2 * SAMPLES if may_be_grid(batch, inputs, hidden, tile) else 0


def counter_words(batch: int, inputs: int, hidden: int, tile: str) -> int:
    return WARPS * APART + 1 if may_be_grid(batch, inputs, hidden, tile) else 0


DERIVED = {"by_x_rows": by_x_rows, "grid_states": grid_states, "counter_words": counter_words}


@dataclass(frozen=True)
class GridCell:
    """A cell on a grid: the entry that walks its steps, that entry's arguments, gates, and the bias added to W_ih x."""

    entry: str
    arguments: tuple[str, ...]
    gates: int
    bias: str

    def shared_bytes(self, hidden: int) -> int:
        """Weights of a block's units, and the chunks that its warps have in flight."""
        return 4 * (UNITS * self.gates * hidden + WARPS * STAGES[self.gates] * WHOLE_UNITS * SAMPLES)

    def suits(self, batch: int, inputs: int, hidden: int, tile: str, device: Device) -> bool:
        """Whether the grid is chosen: by its name, or where all blocks are on the device, each with its weights."""
        resident = hidden // UNITS <= device.sm_count and self.shared_bytes(hidden) <= device.max_shared_bytes
        return tile == "Grid" or (resident and may_be_grid(batch, inputs, hidden, tile))

    def launches(self, steps: int, batch: int, hidden: int, device: Device) -> tuple[Launch | Zero, ...]:
        """For every MOST_STEPS the product of x, then the grid."""
        grid, shared = hidden // UNITS, self.shared_bytes(hidden)
        walk = Launch(grid, 32 * WARPS, shared, self.entry, self.arguments, cooperative=True)
        names = ("x", "w_ih", self.bias, "by_x", "counters", "steps", "batch", "inputs", "hidden")
        plan: list[Launch | Zero] = [Zero("counters")]
        for first in range(0, steps, MOST_STEPS):
            rows = min(MOST_STEPS, steps - first) * batch
            product = on_tiles(f"recurrent_inputs<{{}}, {self.gates}>", rows, self.gates * hidden, "auto", device)
            plan += [replace(product, arguments=names), walk]
        return tuple(plan)
