"""Noise floor of a comparison: A/A differences of a build, control cases, and what is due to the boards."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import exp, hypot, log, sqrt
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.boards import BoardFactor, KnownBoards
from prism_bench.analysis.compare.comparable import device_of, require_comparable
from prism_bench.analysis.compare.estimate import Estimate, Spread, estimate, pooled, quantile, smallest_change
from prism_bench.analysis.compare.verdict import (
    CHANGED,
    RULES,
    Judgement,
    MachineShift,
    Pair,
    VerdictRules,
    judged,
    pair_of,
)
from prism_bench.analysis.distributions import binomial_tail
from prism_bench.analysis.peers import clock_of
from prism_bench.analysis.run_analysis import Finding
from prism_bench.errors import ResultsError
from prism_bench.io.documents import as_kind
from prism_bench.io.files import Schema, four_digits, path_part
from prism_bench.measure.plausibility import valid
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import count_text, share_text, time_text

# Noise floor: by how much a build differs from itself, measured A/A, so that no such difference is called a change.
#
# They are kept in `reports/noise/<machine>.json`, case by case, so that measuring a few again leaves the others alone:
#
#     schema, machine, device, backend     where the noise was measured
#     protocol                             version of the measuring protocol
#     cases   {name: {metric: values}}     with the fields of `noise.Floor`

_REPAIRINGS = 20


@dataclass(frozen=True)
class Floor:
    """Noise of one metric of one case.

    `between` and `within` are relative standard deviations of a process's median: what processes differ by, and what
    their own samples leave open; `cycles_between` and `cycles_within` are the same in cycles of the SM clock.
    `processes` were measured on each side. `smallest_change` is what that number a side can distinguish from none. The
    processes were dealt anew into two sides `repaired` times; `false_verdicts` of those were called slower or faster,
    without the help of this noise floor.
    """

    seconds: float
    between: float
    within: float
    freedom: int
    processes: int
    smallest_change: float
    false_verdicts: int
    repaired: int
    created: str
    commit: str | None = None
    cycles_between: float | None = None
    cycles_within: float | None = None

    @property
    def spread(self) -> Spread:
        """The spread that an estimate weighs in."""
        return Spread(self.between**2 + self.within**2, self.freedom, self.within**2)

    @property
    def spread_in_cycles(self) -> Spread | None:
        """The same of the process's median in cycles; None where samples carried no clock."""
        if self.cycles_between is None or self.cycles_within is None:
            return None
        return Spread(self.cycles_between**2 + self.cycles_within**2, self.freedom, self.cycles_within**2)


@dataclass(frozen=True)
class Noise:
    """Noise floors of one machine by case and metric."""

    machine: str
    device: str
    backend: str
    protocol: int | None
    floors: Mapping[tuple[str, str], Floor] = field(default_factory=dict[tuple[str, str], Floor])

    def spread(self, case: str, metric: str) -> Spread | None:
        """Return the known spread of the case's metric, or None."""
        floor = self.floors.get((case, metric))
        return floor.spread if floor else None

    def spread_in_cycles(self, case: str, metric: str) -> Spread | None:
        """Return the known spread of the case's metric in cycles of the SM clock, or None."""
        floor = self.floors.get((case, metric))
        return floor.spread_in_cycles if floor else None

    def misfit(self, record: RunRecord) -> str | None:
        """Return why this noise does not apply to the record's times; None where it does."""
        return self.misfit_of(device_of(record), record.backend, record.protocol.get("version"))

    def misfit_of(self, device: str, backend: str, protocol: int | None) -> str | None:
        """Return why this noise does not apply to times of that device, backend and protocol; None where it does."""
        for word, own, other in (
            ("device", self.device, device),
            ("backend", self.backend, backend),
            ("protocol", self.protocol, protocol),
        ):
            if own != other:
                return f"the stored noise floor is of {word} {own}, not {other}: it is not used"
        return None

    @property
    def false_share(self) -> float | None:
        """The share of A/A verdicts that called a change; None where there were none."""
        verdicts = sum(floor.repaired for floor in self.floors.values())
        return sum(floor.false_verdicts for floor in self.floors.values()) / verdicts if verdicts else None


def noise_of(a: RunRecord, b: RunRecord, rules: VerdictRules = RULES, seed: int = 0) -> Noise:
    """Return the noise floors of two interleaved records of one build, for cases timed validly on both sides."""
    require_comparable(a, b, ("A", "B"))
    sides = {key: pair for key, pair in _measured(a, b).items() if len(pair.a.logs) > 1 and len(pair.b.logs) > 1}
    false = _false_verdicts(sides, rules, seed)
    floors = {key: _floor(pair, false[key], a) for key, pair in sides.items()}
    return Noise(str(a.machine["id"]), device_of(a), a.backend, a.protocol.get("version"), floors)


def _measured(a: RunRecord, b: RunRecord) -> dict[tuple[str, str], Pair]:
    found: dict[tuple[str, str], Pair] = {}
    for case in a.cases:
        other = b.case(case.name)
        if other is None or "ok" not in (case.status, other.status) or not (case.measurements and other.measurements):
            continue
        for metric in {"cold_time", "hot_time", clock_of(case)}:
            one, two = valid(case, metric), valid(other, metric)
            if one and two and one.samples and two.samples:
                found[case.name, metric] = pair_of(one, two)
    return found


def _floor(pair: Pair, false: int, record: RunRecord) -> Floor:
    spread, count = pooled(pair.a, pair.b), min(len(pair.a.logs), len(pair.b.logs))
    in_cycles = pooled(*pair.cycles) if pair.cycles else None
    return Floor(
        seconds=pair.a.typical,
        between=spread.between**0.5,
        within=min(spread.within, spread.variance) ** 0.5,
        freedom=int(spread.freedom),
        processes=count,
        smallest_change=smallest_change(spread, count, count),
        false_verdicts=false,
        repaired=_REPAIRINGS,
        created=record.created,
        commit=record.commit,
        cycles_between=in_cycles.between**0.5 if in_cycles else None,
        cycles_within=min(in_cycles.within, in_cycles.variance) ** 0.5 if in_cycles else None,
    )


def _false_verdicts(
    sides: Mapping[tuple[str, str], Pair], rules: VerdictRules, seed: int
) -> dict[tuple[str, str], int]:
    """Return by case and metric how often processes of one build, dealt anew into two sides, were called different.

    Each metric is judged as one suite, as a comparison does. Dealt sides share processes from one time to the next, so
    that twenty of them show less than twenty measurements would.
    """
    false = dict.fromkeys(sides, 0)
    for metric in {metric for _, metric in sides}:
        suite = {key: pair for key, pair in sides.items() if key[1] == metric}
        for turn in range(_REPAIRINGS):
            dealt = [_dealt(pair, Random(f"{seed}/{turn}")) for pair in suite.values()]
            for key, judgement in zip(suite, judged(dealt, rules), strict=True):
                false[key] += judgement.verdict in CHANGED
    return false


def _dealt(pair: Pair, rng: Random) -> Pair:
    """Return the pair's processes, shuffled into two sides as large as before."""
    order = list(range(len(pair.a.logs) + len(pair.b.logs)))
    rng.shuffle(order)
    first, second = order[: len(pair.a.logs)], order[len(pair.a.logs) :]
    whole = pair.a + pair.b
    in_cycles = pair.cycles[0] + pair.cycles[1] if pair.cycles else None
    return Pair(
        whole.only(first), whole.only(second), (in_cycles.only(first), in_cycles.only(second)) if in_cycles else None
    )


_SCHEMA = Schema("a noise floor", 1, "prism-bench noise")
DEFAULT_NOISE = Path("reports/noise")
_WHOSE = {"machine": str, "device": str, "backend": str, "protocol": int, "cases": dict}


def _merged_noise(old: Noise | None, new: Noise) -> Noise:
    """Return the old noise floors with the new ones; those of another device, backend or protocol are dropped."""
    same = old and (old.device, old.backend, old.protocol) == (new.device, new.backend, new.protocol)
    return replace(new, floors={**(old.floors if old and same else {}), **new.floors})


def path_for(machine: str, root: Path = DEFAULT_NOISE) -> Path:
    """Return the path of the noise of the machine of that id."""
    return root / f"{path_part(machine)}.json"


def write_noise(noise: Noise, path: Path) -> Path:
    """Keep the noise floors at `path`, whole or not at all; return the path."""
    cases: dict[str, dict[str, object]] = {}
    for (case, metric), floor in sorted(noise.floors.items()):
        cases.setdefault(case, {})[metric] = dict(sorted(four_digits(asdict(floor)).items()))
    return _SCHEMA.write(path, {**{key: getattr(noise, key) for key in _WHOSE if key != "cases"}, "cases": cases})


def read_noise(path: Path) -> Noise | None:
    """Return the noise floors kept at `path`, None without such a file; a ResultsError names what is damaged."""
    data = _SCHEMA.read(path)
    return None if data is None else _decode(data, path)


def _decode(data: Mapping[str, Any], path: Path) -> Noise:
    for key, kind in _WHOSE.items():
        if not isinstance(data.get(key), kind):
            raise ResultsError(f"{path}: '{key}' is {data.get(key)!r:.40}, not a {kind.__name__}")
    floors: dict[tuple[str, str], Floor] = {}
    for case, metrics in data["cases"].items():
        if not isinstance(metrics, dict):
            raise ResultsError(f"{path}: {case}: not a table of metrics")
        for metric, plain in cast("dict[str, object]", metrics).items():
            floors[case, metric] = _decoded_floor(plain, f"{path}: {case} {metric}")
    return Noise(data["machine"], data["device"], data["backend"], data["protocol"], floors)


def _decoded_floor(plain: object, where: str) -> Floor:
    try:
        floor: Floor = as_kind(plain, Floor)
        unknown = set(cast("dict[str, object]", plain)) - set(Floor.__dataclass_fields__)
    except ValueError as error:
        raise ResultsError(f"{where}: damaged ({error})") from error
    if unknown:
        raise ResultsError(f"{where}: damaged (unknown fields: {', '.join(sorted(unknown))})")
    in_cycles = floor.cycles_between or 0.0, floor.cycles_within or 0.0
    if min(floor.seconds, floor.between, floor.within, floor.freedom, floor.processes, *in_cycles) < 0:
        raise ResultsError(f"{where}: a negative spread or count")
    return floor


def stored_noise(machine: str, root: Path = DEFAULT_NOISE) -> Noise | None:
    """Return the noise kept for the machine of that id, or None."""
    return read_noise(path_for(machine, root))


def keep_noise(noise: Noise, root: Path = DEFAULT_NOISE) -> Path:
    """Put the noise floors among those kept for their machine; return the path."""
    path = path_for(noise.machine, root)
    return write_noise(_merged_noise(read_noise(path), noise), path)


# Control of a comparison: cases of identical code, whose times show what the machine did between the sides.
#
# What they have in common is the machine's shift, a factor and an offset: another host launches every kernel 1.7 us
# later, another clock takes 1 % longer for all of it. Every pair is divided by it, with the shift's own error added.
# What the control's cases differ by beyond their errors after that widens every error.

# The error of a median of n equal errors is 1.25 / sqrt(n) of one: with eight it makes the error of a difference 9 %
# larger, with fewer it takes more of the power than an unknown shift costs.
ENOUGH = 8
BY_CHANCE = 0.01
OUTER = 0.95  # of the control's cases shall lie within their intervals
HALVINGS = 30
TURNS = 30  # of the fit; it does not change after ten
HUBER = 1.345
CERTAIN = 4.0  # standard errors from zero, for an offset to be one
SPAN = 4.0  # between the shortest and the longest case, for an offset to be distinguished from a factor
_LEAST, _LEAST_SLOWER = 0.001, 0.01  # of a shift that is reported, and of one that is bad where software changed
LEAST_ERROR = 1e-6  # relative; samples of four digits are no surer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """The ratio of B to A is `factor` + `offset` / seconds, within the `range` of A's seconds that was seen.

    `covariance` is that of factor and offset: (factor, both, offset). `scatter` is by what cases differ from it, as a
    standard deviation of the log.
    """

    factor: float = 1.0
    offset: float = 0.0
    covariance: tuple[float, float, float] = (0.0, 0.0, 0.0)
    range: tuple[float, float] = (0.0, float("inf"))
    scatter: float = 0.0

    def at(self, seconds: float) -> MachineShift:
        """Return the shift of a case that takes that long in A."""
        inverse = 1 / min(max(seconds, self.range[0]), self.range[1]) if self.offset else 0.0
        ratio = self.factor + self.offset * inverse
        own, both, other = self.covariance
        variance = own + 2 * inverse * both + inverse**2 * other
        if ratio <= 0:
            return MachineShift()
        return MachineShift(log(ratio), hypot(sqrt(max(variance, 0.0)) / ratio, self.scatter))


@dataclass(frozen=True)
class Control:
    """Cases of identical code: how many, the median ratio of B to A (`shift`), and the `fit` that divides all pairs.

    `widening` is the factor by which all errors were widened. `changed` are those that differ all the same, `chance`
    how likely at least so many are. Fewer cases than ENOUGH are counted and used for nothing.
    """

    cases: int = 0
    changed: tuple[str, ...] = ()
    chance: float = 1.0
    shift: float = 1.0
    widening: float = 1.0
    fit: Fit = field(default_factory=Fit)

    @property
    def used(self) -> bool:
        """Whether it is large enough to be used."""
        return self.cases >= ENOUGH

    @property
    def excess(self) -> bool:
        """Whether more cases differ than chance explains."""
        return self.used and self.chance < BY_CHANCE

    def spoils(self, software: str | None) -> bool:
        """Return whether no verdict can be trusted: more cases differ than chance explains, and no software does."""
        return self.excess and not software


def control_of(pairs: Mapping[str, Pair]) -> Control:
    """Return the control that these pairs of identical code make."""
    if not pairs:
        return Control()
    shift = median(exp(pair.b.centre - pair.a.centre) for pair in pairs.values())
    found = [(pair, estimate(pair.a, pair.b, pair.known)) for pair in pairs.values()]
    known = [(pair, one) for pair, one in found if one.freedom]
    if len(known) < ENOUGH:
        return Control(len(pairs), shift=shift)
    seconds = np.array([pair.a.typical for pair, _ in known])
    errors = np.maximum([one.error for _, one in known], LEAST_ERROR)
    logs = np.array([unexplained(pair, one) for pair, one in known])
    fit = _fitted(seconds, logs, errors)
    left = np.abs(logs - [fit.at(where).log for where in seconds.tolist()])
    freedoms = [one.freedom for _, one in known]
    widening = max(1.0, float(np.median(left / errors / [quantile(0.75, one) for one in freedoms])))
    scatter = _scatter(left, errors * widening, np.array([quantile((1 + OUTER) / 2, one) for one in freedoms]))
    return Control(len(pairs), shift=shift, fit=replace(fit, scatter=scatter), widening=widening)


def unexplained(pair: Pair, found: Estimate) -> float:
    """Return the log ratio that the SM clock does not explain: of time and cycles the one nearer to nothing.

    A kernel follows the clock between fully (its cycles stay) and not at all (its time stays): where one of them grew
    and the other one shrank, the clock explains all of it.
    """
    if pair.cycles is None:
        return found.log
    in_cycles = pair.cycles[1].centre - pair.cycles[0].centre
    return min(found.log, in_cycles, key=abs) if found.log * in_cycles > 0 else 0.0


def _fitted(seconds: Floats, logs: Floats, errors: Floats) -> Fit:
    """Return the factor, and the offset where there is one beyond doubt, by Huber's regression of the ratios."""
    ratios, ones = np.exp(logs), np.ones(len(logs))
    span = float(seconds.min()), float(seconds.max())
    both, covariance = _huber(np.stack([ones, 1 / seconds]), ratios, errors * ratios)
    if span[1] > SPAN * span[0] and 0 < CERTAIN * sqrt(covariance[1, 1]) < abs(both[1]):
        flat = (float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1]))
        return Fit(float(both[0]), float(both[1]), flat, span)
    alone, covariance = _huber(ones[None], ratios, errors * ratios)
    return Fit(float(alone[0]), 0.0, (float(covariance[0, 0]), 0.0, 0.0))


def _huber(columns: Floats, values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of `columns` and their covariance; a value counts less the further it is out."""
    scale, units = 1.0, np.sqrt((columns**2).mean(axis=1))
    columns = columns / units[:, None]
    weights = errors**-2
    found = np.zeros(len(columns))
    normal = np.eye(len(columns))
    for _ in range(TURNS):
        normal = (columns * weights) @ columns.T
        found = np.linalg.solve(normal, (columns * weights) @ values) if np.linalg.det(normal) > 0 else found
        away = np.abs(values - found @ columns) / errors
        scale = max(1.0, float(np.median(away)) / 0.6745)
        weights = errors**-2 * np.minimum(1.0, HUBER * scale / np.maximum(away, 1e-12))
    covariance = np.linalg.inv(normal) * scale**2 if np.linalg.det(normal) > 0 else np.zeros_like(normal)
    return found / units, covariance / np.outer(units, units)


def _scatter(left: Floats, errors: Floats, quantiles: Floats) -> float:
    """Return the least scatter with which as many of the control's cases are within their 95 % interval as should."""

    def explains(scatter: float) -> bool:
        return float(np.quantile(left / np.hypot(errors, scatter) / quantiles, OUTER, method="lower")) <= 1

    low, high = 0.0, float(left.max())
    if high == 0 or explains(0.0):
        return 0.0
    for _ in range(HALVINGS):
        half = (low + high) / 2
        low, high = (low, half) if explains(half) else (half, high)
    return high


def with_changed(control: Control, changed: tuple[str, ...]) -> Control:
    """Return the control with those of its cases that differ after all was divided and widened."""
    chance = binomial_tail(len(changed) - 1, control.cases, BY_CHANCE) if changed else 1.0
    return replace(control, changed=changed, chance=chance)


def shift_words(control: Control) -> str | None:
    """Return what the machine did to every case, where that is beyond its own error; None where it did nothing."""
    fit = control.fit
    error = hypot(sqrt(max(fit.covariance[0], 0.0)), fit.scatter)
    if not control.used:
        return None
    parts = [f"{'+' if fit.offset > 0 else '-'}{time_text(abs(fit.offset))} a launch"] if fit.offset else []
    parts += [f"{fit.factor - 1:+.1%}".replace("%", " %")] if abs(fit.factor - 1) > max(_LEAST, 3 * error) else []
    return " and ".join(parts) or None


def control_findings(control: Control, software: str | None) -> list[Finding]:
    """Return the findings of a control: an excess, and a shift, which is bad where other software made code slower."""
    found: list[Finding] = []
    if control.spoils(software):
        message = (
            f"{len(control.changed)} of {count_text(control.cases, 'case')} of identical "
            "machine code have times that differ beyond "
            f"chance (median ratio {control.shift:.3f}): the machine changed between the sides"
        )
        found.append(Finding("untrusted", "control", None, message))
    words = shift_words(control)
    if words:
        slower = control.shift > 1 + _LEAST_SLOWER
        why = f"with other software ({software})" if software else "the machine differs between the sides"
        message = (
            f"{count_text(control.cases, 'case')} of identical machine code have "
            f"in common {words}: {why}; it is divided out"
        )
        found.append(Finding("bad" if software and slower else "note", "shift", None, message, ratio=control.shift))
    return found


# Comparison across boards: what of a difference is the boards', by the control or by what the history knows of them.
#
# Cases are put together by the two boards that measured their sides. Those on one board have the control that they are;
# so has each pair of boards with enough cases of identical code. Elsewhere the factor between the boards is divided
# out, with its error and with what two runs of one board differ by. Where it is not known, the error is that of boards
# that nobody compared, so that no change smaller than these is called one.

BoardsOfPair = tuple[str, str]
_UNLEARNED = "no history of these boards was read"


@dataclass(frozen=True)
class Crossings:
    """The cases whose sides two boards measured: both UUIDs by case, and the `factors` between them where needed."""

    boards: Mapping[str, BoardsOfPair] = field(default_factory=dict[str, BoardsOfPair])
    factors: Mapping[str, BoardFactor] = field(default_factory=dict[str, BoardFactor])

    def reason(self, case: str, judgement: Judgement) -> str | None:
        """Return why no verdict on the case is given, where it is for the boards; None otherwise."""
        factor = self.factors.get(case)
        if factor is None or judgement.verdict != "inconclusive":
            return None
        one, other = self.boards[case]
        if not factor.known:
            return f"withheld: measured on two boards, {one} and {other}, whose factor is not known: {factor.reason}"
        return f"{judgement.reason}; the factor of the boards {one} and {other} is known to {share_text(factor.reach)}"

    def notes(self) -> list[str]:
        """Return for each pair of boards how its cases were compared."""
        counts = Counter(self.boards[case] for case in self.factors)
        return [self._note(boards, count) for boards, count in counts.items()]

    def _note(self, boards: BoardsOfPair, count: int) -> str:
        own = [factor for case, factor in self.factors.items() if self.boards[case] == boards]
        known = sorted(factor.ratio for factor in own if factor.known)
        were = "was" if count == 1 else "were"
        words = f"{count_text(count, 'case')} {were} measured on board {boards[0]} and on board {boards[1]}"
        if not known:
            return f"{words}: their factor is not known ({own[0].reason}), and verdicts are withheld"
        left = f"; of {count - len(known)} it is not known" if len(known) < count else ""
        return f"{words}: divided by their factor, {known[len(known) // 2]:.3f} in the middle{left}"


def crossed(cases: Mapping[str, tuple[CaseResult, CaseResult]], a: RunRecord, b: RunRecord) -> dict[str, BoardsOfPair]:
    """Return the boards of the cases whose sides two known boards measured."""
    found: dict[str, BoardsOfPair] = {}
    for name, (one, other) in cases.items():
        first, second = a.board_of(one), b.board_of(other)
        if first and second and first != second:
            found[name] = first, second
    return found


def shifts_of(
    pairs: Mapping[str, Pair],
    identical: Collection[str],
    boards: Mapping[str, BoardsOfPair],
    known: tuple[KnownBoards | None, Mapping[str, str]],
) -> tuple[Control, float, dict[str, MachineShift], Crossings]:
    """Return the control, the usual widening of errors, what to divide each pair by, and what crosses boards.

    The control is that of the group with the most cases, counting those of all groups that have one. `known` are the
    boards' factors, and the metric of each case.
    """
    groups: dict[BoardsOfPair | None, list[str]] = {}
    for case in pairs:
        groups.setdefault(boards.get(case), []).append(case)
    controls = {
        group: control_of({case: pairs[case] for case in cases if case in identical}) for group, cases in groups.items()
    }
    shifts: dict[str, MachineShift] = {}
    factors: dict[str, BoardFactor] = {}
    for group, cases in groups.items():
        control = controls[group]
        for case in cases:
            if control.used:
                shifts[case] = control.fit.at(pairs[case].a.typical)
            elif group is None:
                shifts[case] = MachineShift()
            else:
                factors[case] = _factor(case, group, known)
                shifts[case] = _shift(factors[case])
    largest = max(controls.values(), key=lambda one: one.cases, default=Control())
    used = [one for one in controls.values() if one.used]
    count = sum(one.cases for one in used)
    widening = sum(one.widening * one.cases for one in used) / count if used else 1.0
    together = replace(largest, cases=count, widening=widening) if used else largest
    return together, widening, shifts, Crossings(boards, factors)


def _factor(case: str, boards: BoardsOfPair, known: tuple[KnownBoards | None, Mapping[str, str]]) -> BoardFactor:
    history, metrics = known
    return history.factor(metrics[case], case, *boards) if history else BoardFactor(reason=_UNLEARNED)


def _shift(factor: BoardFactor) -> MachineShift:
    """Return the factor with its error, and with what a run on either board differs from another one."""
    return MachineShift(factor.log, hypot(factor.sure_error, sqrt(2) * factor.between_runs))
