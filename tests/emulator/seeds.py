"""The seeded bugs: how each is launched, and which mode must catch it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prism_bench.emulator import ORDERS, LaunchReport, Module, compile_source

SOURCE = Path(__file__).parent / "kernels" / "seeded_bugs.cu"


@dataclass(frozen=True)
class Seed:
    """A kernel of seeded_bugs.cu. `caught_by` maps each mode that must catch it to the kind of its finding;
    fast mode may also catch it by outputs that differ ("outputs")."""

    entry: str
    caught_by: dict[str, str]
    grid: int = 1
    cooperative: bool = False
    counts_arrivals: bool = False

    @property
    def lines(self) -> set[int]:
        """The lines marked BUG in the kernel."""
        lines = SOURCE.read_text().split("\n")
        start = next(number for number, line in enumerate(lines, 1) if f"void {self.entry}(" in line)
        end = next(number for number, line in enumerate(lines, 1) if number > start and line == "}")
        return {number for number in range(start, end) if "// BUG" in lines[number - 1]}


_RACE = {"fast": "outputs", "race": "race"}
_HANG = dict.fromkeys(("fast", "race", "address"), "deadlock")

SEEDS = (
    Seed("global_past_end", {"address": "out of bounds", "race": "out of bounds"}),
    Seed("shared_overflow_pointer", {"address": "out of bounds", "race": "out of bounds"}),
    Seed("shared_overflow_index", {"address": "out of bounds", "race": "out of bounds"}),
    Seed("dynamic_overflow", {"fast": "out of bounds", "address": "out of bounds", "race": "out of bounds"}),
    Seed("misaligned_vector", {"address": "misaligned", "race": "misaligned"}),
    Seed("undefined_shift", {"address": "undefined behaviour"}),
    Seed("missing_barrier_exchange", _RACE),
    Seed("missing_barrier_reduction", _RACE),
    Seed("missing_barrier_broadcast", _RACE),
    Seed("missing_second_barrier", _RACE),
    Seed("missing_syncwarp", _RACE),
    Seed("unsynchronised_sum", {"race": "race"}),
    Seed("barrier_for_grid_sync", _RACE, grid=2, cooperative=True),
    Seed("unwritten_shared", {"fast": "outputs", "race": "unwritten shared read"}),
    Seed("divergent_barrier", dict.fromkeys(("fast", "race", "address"), "divergent barrier")),
    *(
        Seed(name, dict.fromkeys(("fast", "race", "address"), "divergent barrier"))
        for name in ("skipped_barrier", "skipped_barrier_in_loop", "skipped_syncwarp", "skipped_vote")
    ),
    Seed("shuffle_against_barrier", _HANG),
    Seed("shuffle_from_exited_lane", dict.fromkeys(("fast", "race", "address"), "undefined lane")),
    Seed("missing_pipeline_wait", {"fast": "outputs", "race": "unwritten shared read"}),
    Seed("unfenced_ticket", {"race": "race"}, grid=4, counts_arrivals=True),
    Seed("read_after_matrix_store", _RACE),
)


def build(mode: str, fixed: bool) -> Module:
    """The module with the bugs, or without them."""
    return compile_source(
        SOURCE, entries=[seed.entry for seed in SEEDS], mode=mode, defines=("FIXED",) if fixed else ()
    )


def run(module: Module, seed: Seed, order: str) -> tuple[np.ndarray, LaunchReport]:
    """One launch on fresh, exactly representable inputs."""
    n = 64 * seed.grid
    x = np.random.default_rng(3).integers(-8, 8, n).astype(np.float32)
    y = np.zeros(2 * n if seed.grid > 1 else n, np.float32)
    arguments = [x, y, np.zeros(1, np.uint32)] if seed.counts_arrivals else [x, y]
    shared = 64 * 4 if seed.entry == "dynamic_overflow" else 0
    report = module.launch(
        seed.entry, seed.grid, 64, arguments, shared_bytes=shared, cooperative=seed.cooperative, order=order
    )
    return y, report


def kinds_found(module: Module, fixed: Module, seed: Seed) -> tuple[set[str], list]:
    """The kinds of all findings under all orders, with "outputs" where an output is not the fixed kernel's."""
    right, _ = run(fixed, seed, "forward")
    kinds, findings = set(), []
    for order in ORDERS:
        output, report = run(module, seed, order)
        findings += report.findings
        kinds |= {finding.kind for finding in report.findings}
        if not report.findings and not np.array_equal(output, right):
            kinds.add("outputs")
    return kinds, findings
