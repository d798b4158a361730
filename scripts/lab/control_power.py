"""Are changes still found where nightly runs measure unchanged cases in one process? By samples of a kept record.

As many runs as `check` reads are drawn from the record: of each case the median of a process deviates as its
processes did, drawn to the usual spread, and its samples are those of one of its processes. In the one history each run
has three processes of every case, in the other one process of a control and three of the cases whose turn it is. The
newest run has changed code in a tenth of the cases, always in three processes, and is judged by `compare` as `check`
does it, at once and after the rounds in which `nightly` measures undecided cases again. `doubts` counts the controls of
a run that are measured again: where nothing changed, and where a tenth of the cases, the machine, or its clock is
slower although no code changed.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from lab import REPOSITORY
from prism_bench.analysis.compare.comparison import RecordComparison, compare
from prism_bench.analysis.compare.earlier_runs import earlier_runs, usual
from prism_bench.analysis.compare.estimate import medians
from prism_bench.analysis.compare.verdict import CHANGED, RULES, nightly_looks
from prism_bench.analysis.gate.checks import MOST as RUNS
from prism_bench.measure.plausibility import valid
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run.controls import DAYS, METRIC, Controls, KnownTime, is_turn

DAY, PROCESSES, FEWEST, MOST = 739_000, 3, 8, 20  # samples of a control
PLANTED = (1.02, 1.05)
SHARE = 10  # one of so many cases is changed

Factor = Callable[[int], float]


class Nights:
    """Draws runs from a record's cases that were timed in several processes."""

    def __init__(self, record: RunRecord, seed: int, apart: float) -> None:
        """Let runs of a case differ by `apart`, a relative standard deviation, next to what its processes differ by."""
        self._record, self._rng, self._apart = record, np.random.default_rng(seed), apart
        timed = [(case, cold) for case in record.cases if (cold := valid(case, METRIC)) and len(cold.processes) > 1]
        self.cases = [replace(case, measurements=(cold,), peers={}, verification=()) for case, cold in timed]
        spreads = [medians(cold.processes) for _, cold in timed]
        prior = usual([(spread.total, len(spread.logs) - 1) for spread in spreads])
        self._sigmas = [
            max((2 * spread.total + prior.freedom * prior.variance) / (2 + prior.freedom) - spread.within, 0.0) ** 0.5
            for spread in spreads
        ]

    def run(
        self,
        day: int,
        *,
        controls: bool = False,
        processes: int = PROCESSES,
        factor: Factor = lambda _: 1.0,
        clock: float = 1.0,
    ) -> RunRecord:
        """Draw a run in which cases take longer by a factor, and all where the `clock` is lower by one."""
        cases = [
            self._case(place, 1 if controls and not is_turn(case.name, DAYS, day) else processes, factor(place), clock)
            for place, case in enumerate(self.cases)
        ]
        created = datetime.fromordinal(day).isoformat()
        return replace(self._record, created=created, cases=tuple(cases), commit=f"{day:040}")

    def _case(self, place: int, count: int, factor: float, clock: float) -> CaseResult:
        case, (cold,) = self.cases[place], self.cases[place].measurements
        times: list[tuple[float, ...]] = []
        clocks: list[tuple[float, ...]] = []
        of_run = self._apart * self._rng.standard_normal()
        for _ in range(count):
            number = int(self._rng.integers(len(cold.processes)))
            samples = np.asarray(cold.processes[number])
            most = len(samples) if count > 1 else int(np.clip(len(samples), FEWEST, MOST))
            drawn = self._rng.choice(samples / np.median(samples), most)
            offset = of_run + self._rng.standard_normal() * self._sigmas[place]
            times.append(tuple((drawn * (cold.median or 0.0) * np.exp(offset) * factor / clock).tolist()))
            clocks.append((clock * (cold.clock or 0.0),) * most)
        measured = replace(cold, processes=tuple(times), clocks=tuple(clocks) if cold.clocks else (), evidence=())
        return replace(case, measurements=(measured,), control="R" if count == 1 else None)


def judged(nights: Nights, *, controls: bool, planted: float) -> list[RecordComparison]:
    """Return the comparison of the newest run with earlier ones, and after each round for undecided cases.

    Planted changes are of a tenth of the cases.
    """
    earlier = [nights.run(DAY - ago, controls=controls) for ago in range(1, RUNS + 1)]
    known, looks = earlier_runs(earlier), nightly_looks(PROCESSES)
    whole = nights.run(DAY, processes=looks[-1], factor=lambda place: 1.0 if place % SHARE else planted)
    counts = [
        1 if controls and place % SHARE and not is_turn(case.name, DAYS, DAY) else PROCESSES
        for place, case in enumerate(whole.cases)
    ]
    found: list[RecordComparison] = []
    for more in (*looks[1:], 0):
        cases = tuple(
            _first(case, count, "" if place % SHARE else "changed")
            for place, (case, count) in enumerate(zip(whole.cases, counts, strict=True))
        )
        rules = replace(RULES, looks=len(looks))
        found.append(compare(known.newest, replace(whole, cases=cases), rules=rules, earlier=known.known))
        undecided = {row.case for row in found[-1].cases if row.verdict == "inconclusive"}
        counts = [more if case.name in undecided else n for case, n in zip(whole.cases, counts, strict=True)]
    return found


def _first(case: CaseResult, count: int, code: str) -> CaseResult:
    """Return the case with its first processes, and with other machine code where that is named."""
    (cold,) = case.measurements
    measured = replace(cold, processes=cold.processes[:count], clocks=cold.clocks[:count])
    codes = {**case.code, "sass": code} if code else case.code
    return replace(case, measurements=(measured,), code=codes, control="R" if count == 1 else None)


def rows(nights: Nights) -> Iterator[dict[str, str]]:
    """Yield the shares of planted changes that were called slower, and of other cases that were called changed."""
    names = [case.name for case in nights.cases]
    for planted in PLANTED:
        for controls in (False, True):
            at_once, *_, at_last = [
                {row.case: row.verdict for row in comparison.cases}
                for comparison in judged(nights, controls=controls, planted=planted)
            ]
            line = {"slower": f"{planted:g}", "history": "controls" if controls else "three processes"}
            for when, verdicts in (("at once", at_once), ("at last", at_last)):
                line[f"found {when}"] = f"{np.mean([verdicts[name] == 'slower' for name in names[::SHARE]]):.3f}"
                others = [verdicts[name] in CHANGED for place, name in enumerate(names) if place % SHARE]
                line[f"false {when}"] = f"{np.mean(others):.4f}"
            yield line


def doubts(nights: Nights) -> Iterator[dict[str, str]]:
    """Yield the shares of controls in doubt: of those that are slower, and of the others."""
    full = nights.run(DAY, controls=False)
    known = {case.name: KnownTime("R", "", case.measurements[0]) for case in full.cases}
    shifts: dict[str, tuple[Factor, float]] = {"nothing": (lambda _: 1.0, 1.0)}
    for factor in (1.02, 1.03, 1.05):
        shifts[f"a tenth {factor:g}"] = (lambda place, by=factor: 1.0 if place % SHARE else by, 1.0)
        shifts[f"the machine {factor:g}"] = (lambda _, by=factor: by, 1.0)
        shifts[f"its clock {factor:g}"] = (lambda _: 1.0, 1 / factor)
    for name, (factor, clock) in shifts.items():
        run = nights.run(DAY + 1, controls=True, factor=factor, clock=clock)
        moved = {case.name for place, case in enumerate(run.cases) if factor(place) * clock != 1}
        tested = {case.name for case in run.cases if case.control}
        doubted = Controls(known).in_doubt(run.cases)
        line = {"slower": name}
        for what, some in (("of them in doubt", moved & tested), ("of the others", tested - moved)):
            line[what] = f"{len(doubted & some) / len(some):.3f}" if some else ""
        yield line


def main() -> None:
    """Print both tables for the record that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path, nargs="?", help="by default the newest one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--apart", type=float, default=0.0, help="relative standard deviation between runs")
    chosen = parser.parse_args()
    path = chosen.record or store.newest(REPOSITORY / "reports" / "runs")
    nights = Nights(store.read(path, edges=False), chosen.seed, chosen.apart)
    for table in (rows(nights), doubts(nights)):
        for line in table:
            print(", ".join(f"{key} {value}" for key, value in line.items()), flush=True)


if __name__ == "__main__":
    main()
