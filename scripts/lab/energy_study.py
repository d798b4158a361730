"""Whether energies hold what they promise: ten runs of the same kernels, and one of them with 5 % more work.

On a GPU each run reads the counter in a fresh process while each kernel repeats, for longer than an energy takes, and
keeps its jumps in a file. From such a file the energies follow as `run` would have measured them. The intervals of all
kernels together must hold the mean of their ten runs in 93 to 98 %, within the error of that share. 5 % more
rows of softmax must be found, and counter and integrated power must agree within 3 %. With --simulate the same numbers
come from boards that are played, with steps of 20 to 100 ms and several noises.
"""

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, product
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import fmean
from time import perf_counter, sleep

from lab import REPOSITORY
from lab.trends import wilson
from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.measure import Criterion
from prism_bench.monitor.energy import MOST_DISAGREEMENT, IdlePower, Meter, energy_per_launch
from prism_bench.monitor.played_board import PlayedBoard
from prism_bench.monitor.sampler import watched
from prism_bench.record.measurement import Energy
from prism_bench.run import Settings
from prism_bench.spec.case import Case
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
    "conv2d",
)  # a name without axes is its case at S1
WHOLE = Criterion(precision=0.0, max_samples=10**6, seconds=2.1)  # longer than any energy takes
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


@dataclass(frozen=True)
class CounterJump:
    """Jump of the counter to `joules`, seen `at` a time in seconds after `launches`; `before` is the reading before it.

    `idle` and `watts` are the power before the run of the case and at the jump.
    """

    case: str
    run: int
    idle: float
    before: float
    at: float
    joules: float
    launches: int
    watts: float


class Tape:
    """Keeps what a meter answers while a kernel repeats."""

    def __init__(self, meter: Meter, clock: Callable[[], float]) -> None:
        self.jumps: list[tuple[float, float, float, int, float]] = []  # before, at, joules, launches, watts
        self._meter, self._clock = meter, clock
        self._now = self._before = self._joules = 0.0
        self._launches = 0

    def clock(self) -> float:
        """Return the time of the next reading."""
        self._before, self._now = self._now, self._clock()
        return self._now

    def energy(self) -> float | str:
        """Return the meter's counter."""
        joules = self._meter.energy()
        self._joules = joules if isinstance(joules, float) else 0.0
        return joules

    def power(self) -> Mapping[str, float]:
        """Return the meter's power, which is read at each jump."""
        power = self._meter.power()
        self.jumps.append((self._before, self._now, self._joules, self._launches, power.get("gpu", 0.0)))
        return power

    def repeated(self, replays: Iterator[int]) -> Iterator[int]:
        """Yield the launches done so far."""
        for launches in replays:
            self._launches = launches
            yield launches


class Playback(IdlePower):
    """Board that answers as one did when these jumps of its counter were seen."""

    def __init__(self, jumps: Sequence[CounterJump]) -> None:
        super().__init__()
        self._idle, first, at, done = jumps[0].idle, jumps[0].joules - 1.0, 0.0, 0
        self._looks = [(0.0, first, 0, 0.0)]
        for jump in jumps:
            self._looks += [(jump.before, first, done, at), (jump.at, jump.joules, jump.launches, jump.watts)]
            first, done, at = jump.joules, jump.launches, jump.watts
        self._place = -1

    def of(self, meter: Meter, clock: Callable[[], float], pause: Callable[[float], None]) -> tuple[float, float]:
        """Return the idle power, which was measured before."""
        return self._idle, 0.0

    def clock(self) -> float:
        """Go on to the next reading and return its time."""
        self._place += 1
        return self._looks[self._place][0]

    def energy(self) -> float:
        """Return the counter."""
        return self._looks[self._place][1]

    def power(self) -> dict[str, float]:
        """Return the GPU's power."""
        return {"gpu": self._looks[self._place][3]}

    def repeated(self) -> Iterator[int]:
        """Yield the launches done at the next reading, as long as there is one."""
        while self._place + 1 < len(self._looks):
            yield self._looks[self._place + 1][2]


def measured(catalogue: Catalogue, kernels: Iterable[str], backend: str, runs: int) -> list[CounterJump]:
    """Return the counter's jumps. In each run, a fresh process, the kernels repeat one after the other, shuffled."""
    cases = [catalogue.anywhere(name) if "[" in name else catalogue.cases([name], ["S1"])[0] for name in kernels]
    jumps: list[CounterJump] = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as process:
        for number in range(runs):
            names = [case.name for case in cases]
            Random(number).shuffle(names)
            jumps += process.submit(_one_run, catalogue.folder, names, backend, number).result()
            print(f"run {number + 1} of {runs}: {len(jumps)} jumps", flush=True)
    return jumps


def _one_run(folder: Path, names: Iterable[str], backend_name: str, number: int) -> list[CounterJump]:
    catalogue, backend = discover(folder), open_backend(backend_name)
    jumps: list[CounterJump] = []
    with watched(backend.facts().get("uuid"), Settings().watching.hertz) as sampler:
        for case in map(catalogue.anywhere, names):
            probe = sampler.probes[0] if sampler.probes else None
            jumps += _jumps_of(case, backend, probe, number)
    return jumps


def _jumps_of(case: Case, backend: Backend, probe: Meter | None, number: int) -> list[CounterJump]:
    with backend.prepare(case, case.inputs(0)) as runnable:
        once = runnable.timers()["hot_time"]()
        once()
        board = getattr(once, "board", None)  # of the null backend
        meter, clock, pause = (board, board.clock, board.pause) if board else (probe, perf_counter, sleep)
        if meter is None:
            return []
        idle, tape = IdlePower(), Tape(meter, clock)
        watts, _ = idle.of(meter, clock, pause) or (0.0, 0.0)
        begun = clock()
        with closing(once.repeated()) as replays:
            energy_per_launch(tape.repeated(replays), tape, WHOLE, idle, clock=tape.clock, pause=pause)
    return [
        CounterJump(case.name, number, watts, before - begun, at - begun, joules, launches, power)
        for before, at, joules, launches, power in tape.jumps
    ]


def energies_of(jumps: Iterable[CounterJump]) -> dict[str, list[Energy]]:
    """Return the energies of each case, one a run, as they would have been measured."""
    energies: dict[str, list[Energy]] = {}
    for (case, _), group in groupby(jumps, lambda jump: (jump.case, jump.run)):
        board = Playback([*group])
        known = energy_per_launch(board.repeated(), board, Settings().criteria["energy"], board, clock=board.clock)
        energies.setdefault(case, []).append(known.energy or Energy())
    return energies


def kept(path: Path) -> list[CounterJump]:
    """Return the jumps of a file."""
    with path.open(newline="") as stream:
        lines = [*csv.DictReader(stream)]
    kinds = CounterJump.__annotations__
    return [CounterJump(**{name: kinds[name](text) for name, text in line.items()}) for line in lines]


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
    """Measure, play or simulate; return 1 where a promise is broken, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="play the boards; needs no GPU")
    parser.add_argument("--jumps", type=Path, help="the counter's jumps: a file that is read, or written if missing")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--kernel", action="append", help="a kernel at S1, or a case; default: those that are promised")
    parser.add_argument("--output", type=Path, help="write the rows as CSV")
    chosen = parser.parse_args()
    if chosen.simulate:
        energies, most_apart = simulated(chosen.runs), MOST_DISAGREEMENT  # noise of a step is in it, too
    else:
        if chosen.jumps and chosen.jumps.is_file():
            jumps = kept(chosen.jumps)
        else:
            jumps = measured(discover(chosen.catalogue), chosen.kernel or KERNELS, chosen.backend, chosen.runs)
            if chosen.jumps:
                write_csv(jumps, chosen.jumps)
        energies, most_apart = energies_of(jumps), APART
    broken = report(energies, most_apart)
    if chosen.output:
        write_csv(rows(energies), chosen.output)
    for promise in broken:
        print(f"broken: {promise}")
    return int(bool(broken))
