"""Earlier runs of a case: what its processes differ by within a run, and what its runs differ by.

Three processes of one run know their own spread badly, and what two runs differ by not at all. Five earlier runs of the
same code know both, by an analysis of variance with the run as a random effect (H. Scheffe, The Analysis of Variance,
1959, chapter 7). The cases of a suite know it together:

- The variance within runs is drawn to what is usual in the suite, as far as cases agree in it: the moderated variance
  of G. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3. A case that is noisier than that keeps its own.
- Each run of each case is held against the case's other runs. What they differ by beyond their errors is the scatter
  between runs, which no number of processes reduces. A case whose runs differ by more keeps its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, exp, fsum, log
from statistics import fmean, median

from prism_bench.analysis.compare.comparable import LAUNCHED, SOFTWARE
from prism_bench.analysis.compare.estimate import SAMPLED, WITNESSES, Medians, Spread, cycles, medians, quantile
from prism_bench.analysis.peers import clock_of
from prism_bench.measure.plausibility import valid
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import is_host_time

ENOUGH, _ALIKE = 5, 3  # earlier runs from which on they are used, and how many more there are than groups of one code
_ODD = 2.0  # times the usual variance: a case beyond it is noisier than the others, and its own processes alone count
_ODD_RUNS = 6.0  # an F of 4 and 10 degrees of freedom that one case in a hundred exceeds
_OUTER = 0.997  # of the runs in the history shall be within their intervals
_LEAST = 1e-12  # variance of a log: 1e-6 relative, finer than any clock

_STEP = 0.001  # p-value of a step between runs of one code; a rarer step only makes a case less sure

Runs = Sequence[Sequence[Medians]]  # of one case, in groups of one code, the newest group first
Key = tuple[str, str]  # case and metric
Known = Mapping[Key, tuple[Spread, Spread | None]]  # in time, and in cycles where every run carries the SM clock


@dataclass(frozen=True)
class _Layout:
    """Analysis of variance of one case: processes within runs, and runs within groups of one code."""

    groups: Runs

    @cached_property
    def runs(self) -> list[Medians]:
        return [run for group in self.groups for run in group]

    @property
    def processes(self) -> int:
        return sum(len(run.logs) for run in self.runs)

    @property
    def freedom(self) -> int:
        return self.processes - len(self.runs)

    @property
    def alike(self) -> int:
        """The degrees of freedom between runs: a group of one run shows nothing."""
        return len(self.runs) - len(self.groups)

    @property
    def sampled(self) -> float:
        """The variance of a process's median that its own samples explain."""
        return fsum(run.within for run in self.runs) / len(self.runs)

    @cached_property
    def within(self) -> float:
        """The variance of a process about its run; never below a share of what its own samples explain."""
        squares = fsum(run.total * (len(run.logs) - 1) for run in self.runs if len(run.logs) > 1)
        return max(squares / max(self.freedom, 1), SAMPLED * self.sampled)

    @cached_property
    def squares(self) -> float:
        """The mean square of the runs: the variance of a process as far as runs of one code show it."""
        total = 0.0
        for group in self.groups:
            centre = _centre(group)
            total += fsum(len(run.logs) * (run.centre - centre) ** 2 for run in group)
        return total / self.alike

    @property
    def between(self) -> float:
        """The variance between runs beyond that of their processes, negative where chance made the runs agree."""
        counts = [[len(run.logs) for run in group] for group in self.groups]
        typical = fsum(sum(own) - fsum(count**2 for count in own) / sum(own) for own in counts) / self.alike
        return (self.squares - self.within) / typical


def _centre(group: Sequence[Medians]) -> float:
    return fsum(fsum(run.logs) for run in group) / sum(len(run.logs) for run in group)


def spreads(cases: Sequence[Runs]) -> list[Spread | None]:
    """Return the spread that the earlier runs of each case show, None where they are too few.

    The first group of each case is side A of a comparison. Runs of a single process show what processes and what runs
    differ by only together.
    """
    layouts = [_Layout(groups) if _enough(groups) else None for groups in cases]
    several = [layout for layout in layouts if layout and layout.freedom]
    prior = usual([(one.within, one.freedom) for one in several]) if len(several) >= WITNESSES else Spread(0.0, 0)
    within = {id(one): _moderated(one, prior) for one in several}
    scatter = _scatter([(one, within[id(one)]) for one in several])
    return [_spread(one, within.get(id(one)), scatter) if one else None for one in layouts]


def _enough(groups: Runs) -> bool:
    count = sum(map(len, groups))
    return count >= ENOUGH and count - len(groups) >= _ALIKE


def _moderated(layout: _Layout, prior: Spread) -> Spread:
    """Return the spread within runs, drawn to what is usual in the suite unless the case is noisier than that."""
    own = Spread(layout.within, layout.freedom, layout.sampled, earlier=len(layout.groups[0]))
    if not prior.freedom or own.variance > _ODD * prior.variance:
        return own
    freedom = own.freedom + prior.freedom
    variance = (own.freedom * own.variance + prior.freedom * prior.variance) / freedom
    return replace(own, variance=variance, freedom=freedom)


def _spread(layout: _Layout, within: Spread | None, scatter: float) -> Spread:
    if within is None:
        variance = max(layout.squares, SAMPLED * layout.sampled)
        return Spread(variance, layout.alike, layout.sampled, earlier=len(layout.groups[0]))
    if layout.squares <= _ODD_RUNS * within.variance or layout.between < scatter**2:
        return replace(within, runs=scatter**2)
    # The degrees of freedom of both parts together, by F. Satterthwaite, Biometrics Bulletin 2 (1946) 110.
    parts = 2 * within.variance / layout.processes, layout.between * (1 + 1 / within.earlier)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / within.freedom + parts[1] ** 2 / layout.alike)
    return replace(within, freedom=freedom, runs=layout.between)


def _scatter(cases: Sequence[tuple[_Layout, Spread]]) -> float:
    """Return the least standard deviation between runs with which OUTER of all runs are near the others of their group.

    Each run is held against the group's other runs, as the newest run will be.
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
    """Return the variance that is usual in a suite, and the degrees of freedom it is worth next to a case's own.

    `cases` are variances with their degrees of freedom. Smyth's moments: the logs of variances that are one scatter by
    their degrees of freedom alone; the more they scatter, the less the usual one holds for a case.
    """
    logs = [log(max(variance, _LEAST)) - _digamma(freedom / 2) + log(freedom / 2) for variance, freedom in cases]
    centre = fsum(logs) / len(logs)
    scatter = fsum((one - centre) ** 2 for one in logs) / (len(logs) - 1)
    left = scatter - fsum(_trigamma(freedom / 2) for _, freedom in cases) / len(cases)
    most = 2 * median(freedom for _, freedom in cases)
    freedom = next((one for one in range(int(most), 0, -1) if _trigamma(one / 2) >= left), 0)
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
    """Return the derivative of the digamma function, likewise."""
    shift = 0.0
    while value < 6:
        shift, value = shift + 1 / value**2, value + 1
    return shift + 1 / value + 1 / (2 * value**2) + 1 / (6 * value**3) - 1 / (30 * value**5)


@dataclass(frozen=True)
class EarlierRuns:
    """The `newest` earlier record with the processes of all runs of its code, and the spreads that are `known`."""

    newest: RunRecord
    known: Known

    @property
    def known_apart(self) -> Known:
        """The spreads for another side A, of one run, whose processes did not teach them."""
        return {
            key: (replace(time, earlier=0), replace(in_cycles, earlier=0) if in_cycles else None)
            for key, (time, in_cycles) in self.known.items()
        }


def earlier_runs(records: Sequence[RunRecord]) -> EarlierRuns:
    """Return what earlier records, of which the newest comes first, show of its cases; they must be comparable.

    Runs of a case are of one group where machine code and launches, board, driver and toolkit are the same and no step
    is between them. A run of which that is not known is alone in a group.
    """
    tables = [{case.name: case for case in record.cases if case.status == "ok"} for record in records]
    groups = {
        (name, clock_of(case)): _groups(records, tables, name, clock_of(case))
        for name, case in tables[0].items()
        if not case.is_edge
    }
    groups = {key: own for key, own in groups.items() if sum(map(len, own)) >= ENOUGH}
    times = spreads([[[medians(one.processes) for one in group] for group in own] for own in groups.values()])
    clocked = [[[cycles(one) for one in group] for group in own] for own in groups.values()]
    in_cycles = spreads([_whole(own) for own in clocked])
    known = {key: (time, cycle) for key, time, cycle in zip(groups, times, in_cycles, strict=True) if time}
    alike = {key: merged(groups[key][0]) for key in known}
    cases = tuple(_with(case, alike.get((case.name, clock_of(case)))) for case in records[0].cases)
    return EarlierRuns(replace(records[0], cases=cases), known)


def _groups(
    records: Sequence[RunRecord], tables: Sequence[Mapping[str, CaseResult]], name: str, metric: str
) -> list[list[Measurement]]:
    """Return the case's measurements in groups, the newest first; none where the newest record has no valid one."""
    groups: dict[object, list[Measurement]] = {}
    for place, (record, table) in enumerate(zip(records, tables, strict=True)):
        measured = valid(table[name], metric) if name in table else None
        if measured and measured.samples:
            groups.setdefault(_state(record, table[name], metric) or place, []).append(measured)
        elif not place:
            return []
    return [part for group in groups.values() for part in _without_step(group)]


def _state(record: RunRecord, case: CaseResult, metric: str) -> tuple[object, ...] | None:
    """Return what the case's time depends on; None where it is not known to be the same in another run."""
    board, code = record.host_of(case) if is_host_time(metric) else record.board_of(case), case.code
    if code.get("sass"):
        world = {name: version for name, version in record.software.items() if name.startswith(SOFTWARE)}
        return board, *(str(code.get(name)) for name in LAUNCHED), str(sorted(world.items()))
    world = str(sorted(record.software.items()))
    if code.get("source"):
        return board, code.get("language"), code.get("compiler"), code["source"], world
    return (board, record.commit, world) if record.commit and not record.dirty else None


def _without_step(group: list[Measurement]) -> list[list[Measurement]]:
    """Return the runs, the newest first, in two parts where a step is between them: each part apart from the other one.

    A step is larger than what runs differ by within the parts explains, by Student's t. A single run apart is no step.
    """
    centres = [medians(one.processes).centre for one in group]
    for place in range(2, len(centres) - 1):
        parts = centres[:place], centres[place:]
        left = fsum((log - fmean(part)) ** 2 for part in parts for log in part) / (len(centres) - 2)
        error = (left * (1 / len(parts[0]) + 1 / len(parts[1]))) ** 0.5
        apart = min(parts[0]) > max(parts[1]) or max(parts[0]) < min(parts[1])
        if apart and abs(fmean(parts[0]) - fmean(parts[1])) > quantile(1 - _STEP / 2, len(centres) - 2) * error:
            return [group[:place], group[place:]]
    return [group]


def _whole(groups: Sequence[Sequence[Medians | None]]) -> list[list[Medians]]:
    """Return the groups where all of their runs are known; else none."""
    known = [[run for run in group if run] for group in groups]
    return known if sum(map(len, known)) == sum(map(len, groups)) else []


def _with(case: CaseResult, measured: Measurement | None) -> CaseResult:
    if measured is None:
        return case
    others = (one for one in case.measurements if (one.metric, one.subject) != (measured.metric, measured.subject))
    return replace(case, measurements=(measured, *others))
