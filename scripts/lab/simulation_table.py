"""The table of how good verdicts are, form of noise by form and design by design: `reports/judgement/simulated.csv`."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from lab import REPOSITORY
from lab.simulated_verdicts import EARLIER, FORMS, NIGHTLY, Design, Form, Suite, generated, judged_suite
from prism_bench.analysis.compare.verdict import CHANGED, NIGHTLY_MOST, RULES, VerdictRules
from prism_bench.workflows.compile_table import write_csv

PLANTED = (1.02, 1.05, 1.10)
DESIGNS = (
    Design(3, 3, False), Design(5, 5, False), Design(5, 5, True), Design(3, 15, False), Design(3, 15, True),
    Design(NIGHTLY, NIGHTLY, False, nightly=True), Design(NIGHTLY, NIGHTLY_MOST, False, nightly=True),
)  # fmt: skip
SEED = 20261122


@dataclass(frozen=True)
class SimulationEffort:
    """Extent of a simulation.

    So many `pairs` of runs in which nothing changed, and so many for each planted change, of so many `cases` each; in
    `jobs` processes, which changes no figure.
    """

    cases: int = 300
    pairs: int = 200
    planted_pairs: int = 20
    seed: int = SEED
    jobs: int = 1


def tally(suite: Suite, design: Design, rules: VerdictRules = RULES) -> Counter[str]:
    """Judge one pair of runs and return the counts."""
    found, counts = judged_suite(suite, design, rules)
    count: Counter[str] = Counter(pairs=1, judged=len(found), processes=sum(counts))
    for case, (one, truth) in enumerate(zip(found, suite.truth.tolist(), strict=True)):
        planted = case in suite.planted
        kind = "planted" if planted else "unchanged"
        low, high = one.estimate.interval()
        count[kind] += 1
        count["covered"] += bool(low <= np.exp(truth) <= high)
        count[f"{kind} same"] += one.verdict == "same"
        count["same beyond"] += one.within is not None and abs(np.expm1(truth)) > one.within
        count["found"] += planted and one.verdict == "slower"
        count["false"] += not planted and one.verdict in CHANGED
    count["pairs with a false one"] = int(count["false"] > 0)
    return count


def tallies(
    rng: np.random.Generator, form: Form, cases: int, pairs: Mapping[float, int]
) -> Iterator[tuple[Design, float, Counter[str]]]:
    """Yield every design's count of every suite: so many `pairs` of runs by the ratio that is planted (1: none)."""
    most = max(design.most for design in DESIGNS)
    for ratio, count in pairs.items():
        for _ in range(count):
            suite = generated(rng, form, cases, most, planted=ratio)
            for design in DESIGNS:
                yield design, ratio, tally(suite, design)


def rows(
    effort: SimulationEffort = SimulationEffort(),
    names: Sequence[str] = tuple(FORMS),  # noqa: B008
) -> Iterator[dict[str, str]]:
    """Yield the lines of the table; all designs judge the same suites. `effort.jobs` forms are simulated at once."""
    lines = partial(form_rows, effort=effort)
    if effort.jobs == 1:
        for name in names:
            yield from lines(name)
        return
    with ProcessPoolExecutor(effort.jobs, get_context("spawn")) as pool:
        for found in pool.map(lines, names):
            yield from found


def form_rows(name: str, effort: SimulationEffort) -> list[dict[str, str]]:
    """Return the lines of one form of noise, one for each design."""
    counts = {1.0: effort.pairs, **dict.fromkeys(PLANTED, effort.planted_pairs)}
    rng = np.random.default_rng([effort.seed, list(FORMS).index(name)])
    sums: dict[tuple[Design, float], Counter[str]] = {}
    for design, ratio, count in tallies(rng, FORMS[name], effort.cases, counts):
        sums.setdefault((design, ratio), Counter()).update(count)
    return [_row(name, design, {ratio: sums[design, ratio] for ratio in counts}) for design in DESIGNS]


def _row(form: str, design: Design, sums: Mapping[float, Counter[str]]) -> dict[str, str]:
    plain, two = sums[1.0], sums[1.02]
    return {
        "noise": form,
        "processes": design.words,
        "stored_floor": "yes" if design.stored else "no",
        "earlier_runs": str(EARLIER if design.nightly else 0),
        "pairs": str(plain["pairs"]),
        "pairs_with_a_false_change": _share(plain, "pairs with a false one", "pairs"),
        "false_verdicts": _share(plain, "false", "unchanged"),
        "coverage": _share(plain, "covered", "judged"),
        **{f"found_{round(ratio * 100 - 100)}": _share(sums[ratio], "found", "planted") for ratio in PLANTED},
        "same": _share(plain, "unchanged same", "unchanged"),
        "same_at_2": _share(two, "planted same", "planted"),
        "same_at_2_beyond_its_word": _share(two, "same beyond", "planted"),
        "mean_processes": _share(plain, "processes", "judged", digits=1),
    }


def _share(count: Counter[str], some: str, of: str, digits: int = 4) -> str:
    return f"{count[some] / count[of]:.{digits}f}" if count[of] else ""


def main() -> None:
    """Simulate as the command line demands, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=SimulationEffort.cases)
    parser.add_argument("--pairs", type=int, default=SimulationEffort.pairs, help="pairs of runs of the same code")
    planted = SimulationEffort.planted_pairs
    parser.add_argument("--planted-pairs", type=int, default=planted, help="for each planted change")
    parser.add_argument("--seed", type=int, default=SimulationEffort.seed)
    parser.add_argument("--jobs", type=int, default=1, help="forms of noise that are simulated at once")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "judgement" / "simulated.csv")
    chosen = parser.parse_args()
    table = rows(SimulationEffort(chosen.cases, chosen.pairs, chosen.planted_pairs, chosen.seed, chosen.jobs))
    lines = []
    for line in table:
        print(*line.values(), sep=",", flush=True)
        lines.append(line)
    write_csv(lines, chosen.output)
    print(chosen.output)
