"""How well detectors of steps do on generated series, as the rows of reports/judgement/trends.csv.

Without a planted step every step that is found is false. A planted step is found where one is found within so many
runs of its place. Every detector sees the same series, in which a run is one number; `states, clock known` is `states`
with the SM clock of each run, by which our trend sets runs aside.

    ours        prism_bench.analysis.trend, changes of 2 % and more, after the last run
    ours, ever  the same, after every run: what a nightly gate would have reported at any time
    asv         asv.step_detect: steps to the worse that have not recovered, threshold half the step, 2.5 % without one
    otava       apache-otava (pip install --no-deps apache-otava) as it comes: p < 0.001, changes of any size
    otava 2 %   the same, changes of 2 % and more
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from math import log1p, sqrt

import numpy

from prism_bench import __version__
from prism_bench.analysis.trend.detection import level_changes
from prism_bench.analysis.trend.series import visiting
from prism_bench.io.installation import DISTRIBUTION

RUNS, CLOCK, SLOW_CLOCK = 120, 1.98e9, 1.83e9
SLOW_SHARE, OUTLIER_SHARE, QUANTUM = 0.15, 0.05, 0.05
NOISES = ("normal", "heavy tails", "outliers", "slow drift", "drift", "states", "states, clock known", "quantised")
MEMORY = {"slow drift": 0.5, "drift": 0.8}  # correlation of a run with the next
AFTER = (1, 3, 5, 10)  # runs since a single step
STEPS = (0.05, 0.10)
APART = 4  # runs between two steps
PLANTED = ("none", "one", "up, up", "up, down")
WITHIN = {"one": 2, "up, up": 1, "up, down": 1}  # runs that a found step may be off its place
EDGE = 20  # runs before the first of two steps, and after it
COLUMNS = (
    "noise", "nights", "detector", "version", "planted", "step", "nights after", "series", "share", "lower", "upper",
    "per 100 runs", "why",
)  # fmt: skip
_SEED = 20261122

Detector = Callable[[numpy.ndarray, numpy.ndarray, float], Sequence[int]]


@dataclass(frozen=True)
class StepCell:
    """One row of the table: `series` generated series of a `noise`, what is `planted` in them, who looks for it.

    A single step is `after` runs old; of two, the second is APART runs after the first.
    """

    noise: str
    detector: str
    planted: str
    step: float
    after: int
    series: int


def generated(
    noise: str, rng: numpy.random.Generator, steps: Mapping[int, float] | None = None, runs: int = RUNS
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the values of `runs` runs and the clocks they ran at, 0 where nobody read them.

    The level is 1 at first; each of `steps` multiplies it from a run on. The noise is 1 %, in `drift` of each shock.
    """
    level = numpy.ones(runs)
    for place, factor in (steps or {}).items():
        level[place:] *= factor
    values, clocks = level * _noise(noise, rng, runs), numpy.zeros(runs)
    if noise == "outliers":
        values = numpy.where(rng.random(runs) < OUTLIER_SHARE, values * rng.uniform(1.2, 1.6, runs), values)
    if noise.startswith("states"):
        slow = rng.random(runs) < SLOW_SHARE
        values = numpy.where(slow, values * CLOCK / SLOW_CLOCK, values)
        clocks = numpy.where(slow, SLOW_CLOCK, CLOCK) if "known" in noise else clocks
    if noise == "quantised":
        quantum = QUANTUM / rng.uniform(1, 2)
        values = numpy.round(values / quantum) * quantum
    return values, clocks


def _noise(noise: str, rng: numpy.random.Generator, runs: int) -> numpy.ndarray:
    if noise == "heavy tails":
        return 1 + rng.standard_t(3, runs) * 0.01 / sqrt(3)
    memory = MEMORY.get(noise, 0.0)
    shocks, value, values = rng.normal(0, 0.01, runs), rng.normal(0, 0.01 / sqrt(1 - memory**2)), []
    for shock in shocks:
        value = memory * value + shock
        values.append(1 + value)
    return numpy.array(values)


def ours(values: numpy.ndarray, clocks: numpy.ndarray, step: float) -> list[int]:
    """Return the places of the steps that our trend finds."""
    kept = numpy.flatnonzero(~visiting(clocks))
    return [int(kept[change]) for change in level_changes(numpy.log(values[kept]), log1p(0.02))]


def ours_ever(values: numpy.ndarray, clocks: numpy.ndarray, step: float) -> list[int]:
    """Return the places of the steps reported after any of the runs; one that is moved by two runs is the same."""
    places: list[int] = []
    for count in range(1, len(values) + 1):
        found = ours(values[:count], clocks[:count], step)
        places += [place for place in found if all(abs(place - other) > 2 for other in places)]
    return places


def asv(values: numpy.ndarray, clocks: numpy.ndarray, step: float) -> list[int]:
    """Return where asv's page of regressions puts steps to the worse that have not recovered."""
    from asv.step_detect import detect_regressions, detect_steps

    found = detect_regressions(detect_steps(values.tolist()), threshold=(step or 0.05) / 2)  # pyright: ignore[reportArgumentType]  # inferred from asv's default 0
    return [after for _, after, *_ in found[2] or ()] if found[2] else []


def otava(values: numpy.ndarray, clocks: numpy.ndarray, step: float, magnitude: float = 0.0) -> list[int]:
    """Return the change points of Otava."""
    from otava.analysis import compute_change_points

    found, _ = compute_change_points(values.tolist(), window_len=50, max_pvalue=0.001, min_magnitude=magnitude)
    return [point.index for point in found]


DETECTORS: dict[str, tuple[Detector, str]] = {
    "ours": (ours, DISTRIBUTION),
    "ours, ever": (ours_ever, DISTRIBUTION),
    "asv": (asv, "asv"),
    "otava": (otava, "apache-otava"),
    "otava 2 %": (partial(otava, magnitude=0.02), "apache-otava"),
}


def version(detector: str) -> str | None:
    """Return the version of the detector's package; None where it is not installed."""
    try:
        return metadata.version(DETECTORS[detector][1])
    except metadata.PackageNotFoundError:
        return __version__ if detector.startswith("ours") else None


def cells(names: Iterable[str], series: int, null: int) -> Iterator[StepCell]:
    """Yield every cell of the table for these detectors; `ours, ever` looks a hundred times, for false steps only."""
    for noise in NOISES:
        for name in names:
            yield StepCell(noise, name, "none", 0.0, 0, null // 5 if name == "ours, ever" else null)
            if name != "ours, ever":
                yield from (StepCell(noise, name, "one", step, after, series) for step in STEPS for after in AFTER)
                yield from (StepCell(noise, name, planted, STEPS[0], 0, series) for planted in PLANTED[2:])


def row(cell: StepCell) -> dict[str, str | float | int | None]:
    """Return the cell's row: the share of series in which every planted step was found, or any that is false."""
    found, false = 0, 0
    rng = numpy.random.default_rng([_SEED, NOISES.index(cell.noise), PLANTED.index(cell.planted), cell.after])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(cell.series):
            steps = _steps(cell, rng)
            places = DETECTORS[cell.detector][0](*generated(cell.noise, rng, steps), cell.step)
            missed = [one for one in steps if not any(abs(one - place) <= WITHIN[cell.planted] for place in places)]
            found += not missed if steps else bool(places)
            false += 0 if steps else len(places)
    numbers = dict(zip(COLUMNS[8:11], (f"{n:.4f}" for n in wilson(found, cell.series)), strict=True))
    rate = "" if cell.step else f"{100 * false / cell.series / RUNS:.4f}"
    return {
        "noise": cell.noise,
        "nights": RUNS,
        "detector": cell.detector,
        "version": version(cell.detector),
        "planted": cell.planted,
        "step": cell.step,
        "nights after": cell.after,
        "series": cell.series,
        **numbers,
        "per 100 runs": rate,
    }


def _steps(cell: StepCell, rng: numpy.random.Generator) -> dict[int, float]:
    if cell.planted == "none":
        return {}
    if cell.planted == "one":
        return {RUNS - cell.after: 1 + cell.step}
    first, up = int(rng.integers(EDGE, RUNS - EDGE)), 1 + cell.step
    return {first: up, first + APART: up if cell.planted == "up, up" else 1 / up}


def wilson(found: int, of: int) -> tuple[float, float, float]:
    """Return the share with its 95 % interval (E. B. Wilson, JASA 22 (1927) 209)."""
    centre = (found + 1.92) / (of + 3.84)
    half = 1.96 * (found * (of - found) / of + 0.96) ** 0.5 / (of + 3.84)
    return found / of, max(0.0, centre - half), min(1.0, centre + half)
