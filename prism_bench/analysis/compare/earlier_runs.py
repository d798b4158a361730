"""Earlier runs of a case: the spread of processes within a run, and the scatter between runs.

Three processes of one run estimate their spread badly, and the scatter between runs not at all. Five earlier runs of
the same code estimate both, by an analysis of variance with the run as a random effect (H. Scheffe, The Analysis of
Variance, 1959, chapter 7). The cases of a suite are combined:

- The variance within runs is drawn to the usual variance in the suite, as far as cases agree in it: the moderated
  variance of G. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3. A noisier case keeps its variance.
- Each run of each case is compared with the case's other runs. Their differences beyond their errors are the scatter
  between runs, which no number of processes reduces. A case whose runs differ by more keeps its scatter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import ceil, exp, fsum, log
from operator import add
from statistics import fmean, median

from prism_bench.analysis.compare.comparable import LAUNCHED, SOFTWARE
from prism_bench.analysis.compare.estimate import (
    SAMPLED,
    WITNESSES,
    Medians,
    Spread,
    cycles,
    larger,
    medians,
    quantile,
)
from prism_bench.analysis.compare.verdict import Pair
from prism_bench.analysis.peers import clock_of
from prism_bench.measure.plausibility import valid
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import is_host_time

ENOUGH, _ALIKE = 5, 3  # the fewest earlier runs that are used, and how many more than groups of one code there must be
_ODD = 2.0  # times the usual variance: a noisier case is judged only by its own processes
_ODD_RUNS = 6.0  # an F of 4 and 10 degrees of freedom that one case in a hundred exceeds
_OUTER = 0.997  # of the runs in the history shall be within their intervals
_LEAST = 1e-12  # variance of a log: 1e-6 relative, finer than any clock
_STEP = 0.001  # p-value of a step between runs of one code; a rarer step only makes a case less sure

Runs = Sequence[Sequence[Medians]]  # of one case, in groups of one code, the newest group first
# By case and metric: the spread in time, and in cycles if every run carries the SM clock.
Known = Mapping[tuple[str, str], tuple[Spread, Spread | None]]


@dataclass(frozen=True)
class _Layout:
    """Analysis of variance of one case: processes within runs, and runs within groups of one code."""

    groups: Runs

    @cached_property
    def runs(self) -> list[Medians]:
        return [run for group in self.groups for run in group]

    @cached_property
    def joined(self) -> "_Layout":
        """The layout with the runs of a single process, such as controls, as one run of several in each group.

        Its variance within runs contains what these differ by as runs, too: it is too large rather than too small.
        """
        groups: list[list[Medians]] = []
        for group in self.groups:
            singles = [run for run in group if len(run.logs) == 1]
            several = [run for run in group if len(run.logs) > 1]
            groups.append([*several, reduce(add, singles)] if singles else several)
        return _Layout(groups)

    @property
    def processes(self) -> int:
        return sum(len(run.logs) for run in self.runs)

    @property
    def freedom(self) -> int:
        return self.processes - len(self.runs)

    @property
    def alike(self) -> int:
        """The degrees of freedom between runs; a group of one run adds none."""
        return len(self.runs) - len(self.groups)

    @property
    def sampled(self) -> float:
        """The variance of a process's median that its own samples explain."""
        return fsum(run.within for run in self.runs) / len(self.runs)

    @cached_property
    def within(self) -> float:
        """The variance of a process about its run, at least a share of the variance that its samples explain."""
        squares = fsum(run.total * (len(run.logs) - 1) for run in self.runs if len(run.logs) > 1)
        return max(squares / max(self.freedom, 1), SAMPLED * self.sampled)

    @cached_property
    def squares(self) -> float:
        """The mean square of the runs: the variance of a process between runs of one code."""
        total = 0.0
        for group in self.groups:
            centre = _centre(group)
            total += fsum(len(run.logs) * (run.centre - centre) ** 2 for run in group)
        return total / self.alike

    @property
    def between(self) -> float:
        """The variance between runs beyond that of their processes, negative if the runs agree by chance."""
        groups = [[len(run.logs) for run in group] for group in self.groups]
        typical = fsum(sum(runs) - fsum(count**2 for count in runs) / sum(runs) for runs in groups) / self.alike
        return (self.squares - self.within) / typical


def _centre(group: Sequence[Medians]) -> float:
    return fsum(fsum(run.logs) for run in group) / sum(len(run.logs) for run in group)


def spreads(cases: Sequence[Runs]) -> list[Spread | None]:
    """Return the spread that the earlier runs of each case show, None if they are too few.

    The first group of each case is side A of a comparison. Runs of a single process show the variances of processes and
    of runs only together.
    """
    counts = [sum(map(len, groups)) for groups in cases]
    layouts = [
        _Layout(groups) if count >= ENOUGH and count - len(groups) >= _ALIKE else None
        for groups, count in zip(cases, counts, strict=True)
    ]
    several = [layout for layout in layouts if layout and layout.freedom]
    prior = Spread(0.0, 0)
    if len(several) >= WITNESSES:
        prior = usual([(layout.within, layout.freedom) for layout in several])
    within = {id(layout): _moderated(layout, prior) for layout in several}
    scatter = _scatter([(layout, within[id(layout)]) for layout in several])
    with_singles = [layout.joined for layout in several]
    if len(several) >= WITNESSES:
        prior = usual([(layout.within, layout.freedom) for layout in with_singles])
    joined = {id(layout): _moderated(whole, prior) for layout, whole in zip(several, with_singles, strict=True)}
    return [
        _spread(layout, within.get(id(layout)), joined.get(id(layout)), scatter) if layout else None
        for layout in layouts
    ]


def with_spreads(pairs: Mapping[str, Pair]) -> dict[str, Pair]:
    """Return the pairs with the spread of their side of more processes, unless a larger one is known.

    It is for sides of a single process, which shows no spread, next to a side of several. Each is drawn to the usual
    spread of all pairs.
    """
    times = [max(pair.a, pair.b, key=lambda side: len(side.logs)) for pair in pairs.values()]
    in_cycles = [max(pair.cycles, key=lambda side: len(side.logs)) if pair.cycles else None for pair in pairs.values()]
    return {
        name: replace(pair, known=larger(pair.known, time), known_cycles=larger(pair.known_cycles, cycle))
        for (name, pair), time, cycle in zip(pairs.items(), _of_sides(times), _of_sides(in_cycles), strict=True)
    }


def _of_sides(sides: Sequence[Medians | None]) -> list[Spread | None]:
    layouts = [_Layout([[side]]) if side and len(side.logs) > 1 else None for side in sides]
    several = [(layout.within, layout.freedom) for layout in layouts if layout]
    prior = usual(several) if len(several) >= WITNESSES else Spread(0.0, 0)
    return [replace(_moderated(layout, prior), earlier=0) if layout else None for layout in layouts]


def _moderated(layout: _Layout, prior: Spread) -> Spread:
    """Return the spread within runs, drawn to the usual spread of the suite unless the case is noisier."""
    spread = Spread(layout.within, layout.freedom, layout.sampled, earlier=len(layout.groups[0]))
    if not prior.freedom or spread.variance > _ODD * prior.variance:
        return spread
    freedom = spread.freedom + prior.freedom
    variance = (spread.freedom * spread.variance + prior.freedom * prior.variance) / freedom
    return replace(spread, variance=variance, freedom=freedom)


def _spread(layout: _Layout, within: Spread | None, joined: Spread | None, scatter: float) -> Spread:
    """Return the spread of a case; that of `joined` runs, which has more degrees of freedom, if runs are not odd."""
    if within is None or joined is None:
        variance = max(layout.squares, SAMPLED * layout.sampled)
        return Spread(variance, layout.alike, layout.sampled, earlier=len(layout.groups[0]))
    if layout.squares <= _ODD_RUNS * within.variance or layout.between < scatter**2:
        variance = max(within.variance, joined.variance)
        return replace(within, variance=variance, freedom=joined.freedom, runs=scatter**2)
    # Degrees of freedom of both parts together: F. Satterthwaite, Biometrics Bulletin 2 (1946) 110.
    parts = 2 * within.variance / layout.processes, layout.between * (1 + 1 / within.earlier)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / within.freedom + parts[1] ** 2 / layout.alike)
    return replace(within, freedom=freedom, runs=layout.between)


def _scatter(cases: Sequence[tuple[_Layout, Spread]]) -> float:
    """Return the least standard deviation between runs with which 99.7 % of all runs are near their group.

    Each run is compared with the group's other runs, as the newest run will be.
    """
    beyond: list[float] = []
    for layout, within in cases:
        reach = quantile((1 + _OUTER) / 2, within.freedom)
        for group in layout.groups:
            processes, centre = sum(len(run.logs) for run in group), _centre(group)
            for run in group if len(group) > 1 else ():
                share = len(run.logs) / processes
                away = (run.centre - centre) / (1 - share)  # from the mean of the other runs
                error = within.variance * (1 / len(run.logs) + 1 / (processes - len(run.logs)))
                beyond.append(max((away / reach) ** 2 - error, 0.0) / (1 + 1 / (len(group) - 1)))
    return sorted(beyond)[ceil(_OUTER * len(beyond)) - 1] ** 0.5 if beyond else 0.0


def usual(cases: Sequence[tuple[float, float]]) -> Spread:
    """Return the usual variance in a suite, with the degrees of freedom that it has next to a case's variance.

    `cases` are variances with their degrees of freedom. Smyth's moments: the logs of equal variances scatter only by
    their degrees of freedom; the more they scatter, the less the usual variance holds for a case.
    """
    logs = [log(max(variance, _LEAST)) - _digamma(freedom / 2) + log(freedom / 2) for variance, freedom in cases]
    centre = fsum(logs) / len(logs)
    scatter = fsum((value - centre) ** 2 for value in logs) / (len(logs) - 1)
    left = scatter - fsum(_trigamma(freedom / 2) for _, freedom in cases) / len(cases)
    most = 2 * median(freedom for _, freedom in cases)
    freedom = next((count for count in range(int(most), 0, -1) if _trigamma(count / 2) >= left), 0)
    if not freedom:
        return Spread(0.0, 0)
    return Spread(exp(centre + _digamma(freedom / 2) - log(freedom / 2)), freedom)


def _digamma(value: float) -> float:
    """Return the derivative of the log of the gamma function, by its recurrence and asymptotic series."""
    shift = 0.0
    while value < 6:
        shift, value = shift - 1 / value, value + 1
    return shift + log(value) - 1 / (2 * value) - 1 / (12 * value**2) + 1 / (120 * value**4)


def _trigamma(value: float) -> float:
    """Return the derivative of the digamma function, by its recurrence and asymptotic series."""
    shift = 0.0
    while value < 6:
        shift, value = shift + 1 / value**2, value + 1
    return shift + 1 / value + 1 / (2 * value**2) + 1 / (6 * value**3) - 1 / (30 * value**5)


@dataclass(frozen=True)
class EarlierRuns:
    """The `newest` earlier record with the processes of all runs of its code, and the `known` spreads."""

    newest: RunRecord
    known: Known

    @property
    def known_apart(self) -> Known:
        """The spreads for another side A of one run, from whose processes they were not learned."""
        return {
            key: (replace(time, earlier=0), replace(in_cycles, earlier=0) if in_cycles else None)
            for key, (time, in_cycles) in self.known.items()
        }


def earlier_runs(records: Sequence[RunRecord]) -> EarlierRuns:
    """Return the spreads of comparable earlier records, the newest first.

    Runs of a case are of one group if machine code and launches, board, driver and toolkit are the same and no step is
    between them. A run for which this is not known forms a group. A control, which few processes measured, has the
    processes of its group in the newest record, however few runs there are.
    """
    tables = [{case.name: case for case in record.cases if case.status == "ok"} for record in records]
    groups: dict[tuple[str, str], list[list[Measurement]]] = {}
    sides: dict[tuple[str, str], list[Measurement]] = {}  # of one code, for side A
    for name, case in tables[0].items():
        key = name, clock_of(case)
        runs = [] if case.is_edge else _groups(records, tables, *key)
        if sum(map(len, runs)) >= ENOUGH:
            groups[key] = runs
        if runs and case.control:
            sides[key] = runs[0]
    times = spreads([[[medians(run.processes) for run in group] for group in runs] for runs in groups.values()])
    in_cycles = spreads([_in_cycles(runs) for runs in groups.values()])
    known = {key: (time, cycle) for key, time, cycle in zip(groups, times, in_cycles, strict=True) if time}
    sides |= {key: groups[key][0] for key in known}
    cases = list(records[0].cases)
    for position, case in enumerate(cases):
        key = case.name, clock_of(case)
        if key in sides:
            whole = merged(sides[key])
            others = [run for run in case.measurements if (run.metric, run.subject) != (whole.metric, whole.subject)]
            cases[position] = replace(case, measurements=(whole, *others))
    return EarlierRuns(replace(records[0], cases=tuple(cases)), known)


def _in_cycles(groups: Sequence[Sequence[Measurement]]) -> list[list[Medians]]:
    """Return the medians in cycles, empty unless all runs have them."""
    known = [[run for measurement in group if (run := cycles(measurement))] for group in groups]
    return known if sum(map(len, known)) == sum(map(len, groups)) else []


def _groups(
    records: Sequence[RunRecord], tables: Sequence[Mapping[str, CaseResult]], name: str, metric: str
) -> list[list[Measurement]]:
    """Return the case's measurements in groups, the newest first; empty if the newest record has no valid one."""
    groups: dict[object, list[Measurement]] = {}
    for position, (record, table) in enumerate(zip(records, tables, strict=True)):
        measured = valid(table[name], metric) if name in table else None
        if measured and measured.samples:
            groups.setdefault(_state(record, table[name], metric) or position, []).append(measured)
        elif not position:
            return []
    return [part for group in groups.values() for part in _without_step(group)]


def _state(record: RunRecord, case: CaseResult, metric: str) -> tuple[object, ...] | None:
    """Return the state that the case's time depends on; None if it cannot be recognized in another run."""
    board, code = record.host_of(case) if is_host_time(metric) else record.board_of(case), case.code
    if code.get("sass"):
        world = {name: version for name, version in record.software.items() if name.startswith(SOFTWARE)}
        return board, *(str(code.get(name)) for name in LAUNCHED), str(sorted(world.items()))
    world = str(sorted(record.software.items()))
    if code.get("source"):
        return board, code.get("language"), code.get("compiler"), code["source"], world
    return (board, record.commit, world) if record.commit and not record.dirty else None


def _without_step(group: list[Measurement]) -> list[list[Measurement]]:
    """Return the runs, the newest first, in two disjoint parts if a step is between them.

    A step is larger than the scatter of runs within the parts explains, by Student's t. A single run apart is no step.
    """
    centres = [medians(run.processes).centre for run in group]
    for split in range(2, len(centres) - 1):
        parts = centres[:split], centres[split:]
        left = fsum((log - fmean(part)) ** 2 for part in parts for log in part) / (len(centres) - 2)
        error = (left * (1 / len(parts[0]) + 1 / len(parts[1]))) ** 0.5
        apart = min(parts[0]) > max(parts[1]) or max(parts[0]) < min(parts[1])
        if apart and abs(fmean(parts[0]) - fmean(parts[1])) > quantile(1 - _STEP / 2, len(centres) - 2) * error:
            return [group[:split], group[split:]]
    return [group]
