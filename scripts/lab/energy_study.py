"""Whether energies hold what they promise: ten runs of the same kernels, and one of them with 5 % more work.

On a GPU each run measures every kernel in a fresh process. The intervals of all kernels together must hold the mean of
their ten runs in 93 to 98 %, as far as so many intervals show that; 5 % more rows of softmax must be found, and counter
and integrated power must agree within 3 %. With --simulate the same numbers come from boards that are played, with
steps of 20 to 100 ms and several noises.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

from lab import REPOSITORY
from lab.trends import wilson
from prism_bench.catalogue import Catalogue, discover
from prism_bench.monitor.energy import MOST_DISAGREEMENT, energy_per_launch
from prism_bench.monitor.played_board import PlayedBoard
from prism_bench.record.measurement import Energy
from prism_bench.record.run_record import RunRecord
from prism_bench.run import Settings, run
from prism_bench.run.settings import Watching
from prism_bench.units import energy_text, share_text
from prism_bench.workflows.compile_table import write_csv

HELD, APART = (0.93, 0.98), 0.03
USUAL, MORE = "softmax[rows=8192,cols=32768]", "softmax[rows=8602,cols=32768]"  # 5 % more rows
KERNELS = (
    USUAL,
    MORE,
    "copy",
    "tensor_core_matmul",
    "matmul",
    "relu",
    "vector_add",
    "conv2d",
)  # a name without axes is its case at S1
STEPS, NOISES = (0.02, 0.05, 0.1), (0.002, 0.01, 0.03)

Energies = Mapping[str, Sequence[Energy]]


@dataclass(frozen=True)
class EnergyRow:
    """One kernel: the mean of its runs in joules, how many intervals `held` it, and the largest disagreement."""

    case: str
    runs: int
    held: int
    joules: float
    interval: float
    disagreement: float | None
    scope: str | None


def rows(energies: Energies) -> Iterator[EnergyRow]:
    """Yield a row for each kernel; runs without an energy are left out."""
    for case, runs in energies.items():
        known = [(energy.joules, energy.uncertainty or 0.0, energy) for energy in runs if energy.joules is not None]
        if not known:
            continue
        mean = fmean(joules for joules, _, _ in known)
        apart = [abs(energy.disagreement) for _, _, energy in known if energy.disagreement is not None]
        held = sum(abs(joules - mean) <= half for joules, half, _ in known)
        width = fmean(half / joules for joules, half, _ in known)
        yield EnergyRow(case, len(known), held, mean, width, max(apart, default=None), known[0][2].scope)


def share_told_apart(usual: Sequence[Energy], more: Sequence[Energy]) -> float:
    """Return the share of pairs of runs whose intervals lie apart, the one with more work above."""
    pairs = [
        (a.joules + a.uncertainty, b.joules - b.uncertainty)
        for a, b in zip(usual, more, strict=True)
        if a.joules is not None and b.joules is not None and a.uncertainty is not None and b.uncertainty is not None
    ]
    return fmean(low > high for high, low in pairs) if pairs else 0.0


def simulated(runs: int) -> dict[str, list[Energy]]:
    """Return the energies of boards that are played, each kernel with its step and noise; the last has more work."""
    criterion = Settings().criteria["energy"]
    energies: dict[str, list[Energy]] = {}

    def measured(seed: int, step: float, noise: float, each: float = 1e-4) -> Energy:
        board = PlayedBoard(step=step, noise=noise, each=each, seed=seed)
        played = energy_per_launch(board.repeated(), board, criterion, clock=board.clock, pause=board.pause)
        return played.energy or Energy()

    for number, (step, noise) in enumerate(product(STEPS, NOISES)):
        seeds = range(number * runs, (number + 1) * runs)
        energies[f"step {step:g} s, noise {noise:g}"] = [measured(seed, step, noise) for seed in seeds]
    energies[USUAL] = [measured(seed, 0.1, 0.01) for seed in range(-runs, 0)]
    energies[MORE] = [measured(seed, 0.1, 0.01, 1.05e-4) for seed in range(-2 * runs, -runs)]
    return energies


def measured(catalogue: Catalogue, kernels: Iterable[str], backend: str, runs: int) -> dict[str, list[Energy]]:
    """Return the energies of each kernel, one a run, each run in a fresh process."""
    cases = [catalogue.anywhere(name) if "[" in name else catalogue.cases([name], ["S1"])[0] for name in kernels]
    criteria = {metric: Settings().criteria[metric] for metric in ("hot_time", "energy")}
    watching = Watching(energy_labels=())
    settings = Settings(processes=1, peers=False, cpu_baseline=False, criteria=criteria, watching=watching)
    energies: dict[str, list[Energy]] = {case.name: [] for case in cases}
    for _ in range(runs):
        record = run(catalogue, backend, cases, settings)
        for name, energy in _energies(record):
            if name in energies:
                energies[name].append(energy)
    return energies


def _energies(record: RunRecord) -> Iterator[tuple[str, Energy]]:
    for case in record.cases:
        measurement = case.measurement("energy")
        if measurement and measurement.energy:
            yield case.name, measurement.energy


def report(energies: Energies, most_apart: float = APART) -> list[str]:
    """Print a line for each kernel and what was promised; return the promises that are not kept."""
    table = list(rows(energies))
    for row in table:
        apart = "unknown" if row.disagreement is None else share_text(row.disagreement)
        width = f"{energy_text(row.joules)} ±{share_text(row.interval)}"
        print(f"{row.case}: {width}, {row.held} of {row.runs} held, {row.scope}, apart from power: {apart}")
    for case, known in energies.items():
        for reason in {energy.reason for energy in known if energy.reason}:
            print(f"{case}: {reason}")
    broken = [f"{case}: no run has an energy" for case in energies if case not in {row.case for row in table}]
    count = sum(row.runs for row in table)
    held, low, high = wilson(sum(row.held for row in table), count) if count else (0.0, 0.0, 1.0)
    if high < HELD[0] or low > HELD[1]:
        broken.append(f"{share_text(held)} of {count} intervals hold the mean of their runs, not 93 to 98 %")
    share = share_told_apart(energies.get(USUAL, ()), energies.get(MORE, ()))
    if share < 1.0:
        broken.append(f"5 % more work is found in {share_text(share)} of the runs")
    apart = [row for row in table if row.disagreement is None or row.disagreement > most_apart]
    broken += [f"{row.case}: not within {share_text(most_apart)} of integrated power" for row in apart]
    shown = f"{share_text(held)} ({share_text(low)} to {share_text(high)})"
    print(f"{shown} of {count} intervals hold the mean; 5 % more work is found in {share_text(share)}")
    return broken


def main() -> int:
    """Measure or simulate; return 1 where a promise is broken, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="play the boards; needs no GPU")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--kernel", action="append", help="a kernel at S1, or a case; default: those that are promised")
    parser.add_argument("--output", type=Path, help="write the rows as CSV")
    chosen = parser.parse_args()
    if chosen.simulate:
        energies, most_apart = simulated(chosen.runs), MOST_DISAGREEMENT  # noise of a step is in it, too
    else:
        energies = measured(discover(chosen.catalogue), chosen.kernel or KERNELS, chosen.backend, chosen.runs)
        most_apart = APART
    broken = report(energies, most_apart)
    if chosen.output:
        write_csv(rows(energies), chosen.output)
    for promise in broken:
        print(f"broken: {promise}")
    return int(bool(broken))
