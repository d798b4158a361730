"""Noise floor of a comparison: A/A differences of a build, the control of identical code, and factors of boards."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import exp, hypot, log, sqrt
from pathlib import Path
from random import Random
from statistics import median
from typing import cast

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
from prism_bench.analysis.peers import clock_of
from prism_bench.analysis.run_analysis import Finding
from prism_bench.errors import ResultsError
from prism_bench.io.documents import Schema, as_kind, four_digits
from prism_bench.io.files import path_part
from prism_bench.measure.distributions import binomial_tail
from prism_bench.measure.plausibility import valid
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import count_text, share_text, time_text

# Noise floor: differences of a build from itself, measured A/A, which must not be called a change.
#
# Stored in `reports/noise/<machine>.json` by case, so that a new measurement of a few cases keeps the others:
#
#     schema, machine, device, backend     where the noise was measured
#     protocol                             version of the measuring protocol
#     cases   {name: {metric: values}}     with the fields of `noise.Floor`

_REPAIRINGS = 20


@dataclass(frozen=True)
class Floor:
    """Noise of one metric of one case.

    `between` and `within` are relative standard deviations of a process's median: between processes, and from their
    samples; `cycles_between` and `cycles_within` are the same in cycles of the SM clock. `processes` were measured on
    each side, which can find a `smallest_change`. The processes were dealt anew into two sides `repaired` times;
    `false_verdicts` of these were called slower or faster, without the help of this noise floor.
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
        """The spread that `estimate` weighs in."""
        return Spread(self.between**2 + self.within**2, self.freedom, self.within**2)

    @property
    def spread_in_cycles(self) -> Spread | None:
        """The spread of the process's median in cycles; None if samples carried no clock."""
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
        """Return why this noise does not apply to the record's times, or None."""
        return self.misfit_of(device_of(record), record.backend, record.protocol.get("version"))

    def misfit_of(self, device: str, backend: str, protocol: int | None) -> str | None:
        """Return why this noise does not apply to times of that device, backend and protocol, or None."""
        for name, stored, other in (
            ("device", self.device, device),
            ("backend", self.backend, backend),
            ("protocol", self.protocol, protocol),
        ):
            if stored != other:
                return f"the stored noise floor is of {name} {stored}, not {other}: it is not used"
        return None

    @property
    def false_share(self) -> float | None:
        """The share of A/A verdicts that called a change; None without verdicts."""
        verdicts = sum(floor.repaired for floor in self.floors.values())
        return sum(floor.false_verdicts for floor in self.floors.values()) / verdicts if verdicts else None


def noise_of(a: RunRecord, b: RunRecord, rules: VerdictRules = RULES) -> Noise:
    """Return the noise floors of two interleaved records of one build, for cases timed validly on both sides."""
    require_comparable(a, b, ("A", "B"))
    sides: dict[tuple[str, str], Pair] = {}
    for case in a.cases:
        other = b.case(case.name)
        if other is None or "ok" not in (case.status, other.status) or not (case.measurements and other.measurements):
            continue
        for metric in {"cold_time", "hot_time", clock_of(case)}:
            measured_a, measured_b = valid(case, metric), valid(other, metric)
            if measured_a and measured_b and measured_a.samples and measured_b.samples:
                pair = pair_of(measured_a, measured_b)
                if len(pair.a.logs) > 1 and len(pair.b.logs) > 1:
                    sides[case.name, metric] = pair
    false = _false_verdicts(sides, rules)
    floors = {key: _floor(pair, false[key], a) for key, pair in sides.items()}
    return Noise(str(a.machine["id"]), device_of(a), a.backend, a.protocol.get("version"), floors)


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


def _false_verdicts(sides: Mapping[tuple[str, str], Pair], rules: VerdictRules) -> dict[tuple[str, str], int]:
    """Return by case and metric how often processes of one build, dealt anew into two sides, were called different.

    Each metric is judged as one suite, as in a comparison. Dealt sides share processes, so that twenty of them show
    less than twenty measurements would.
    """
    false = dict.fromkeys(sides, 0)
    for metric in {metric for _, metric in sides}:
        suite = {key: pair for key, pair in sides.items() if key[1] == metric}
        for turn in range(_REPAIRINGS):
            dealt = [_dealt(pair, Random(f"0/{turn}")) for pair in suite.values()]
            for key, judgement in zip(suite, judged(dealt, rules), strict=True):
                false[key] += judgement.verdict in CHANGED
    return false


def _dealt(pair: Pair, rng: Random) -> Pair:
    """Return the pair's processes, shuffled into two sides as large as before."""
    order = list(range(len(pair.a.logs) + len(pair.b.logs)))
    rng.shuffle(order)
    dealt_a, dealt_b = order[: len(pair.a.logs)], order[len(pair.a.logs) :]
    whole = pair.a + pair.b
    in_cycles = pair.cycles[0] + pair.cycles[1] if pair.cycles else None
    return Pair(
        whole.only(dealt_a),
        whole.only(dealt_b),
        (in_cycles.only(dealt_a), in_cycles.only(dealt_b)) if in_cycles else None,
    )


_SCHEMA = Schema("a noise floor", 1, "prism-bench compare --itself")
DEFAULT_NOISE = Path("reports/noise")
_HEADER = {"machine": str, "device": str, "backend": str, "protocol": int, "cases": dict}


def path_for(machine: str, root: Path = DEFAULT_NOISE) -> Path:
    """Return the path of the noise of the machine of that id."""
    return root / f"{path_part(machine)}.json"


def stored_noise(machine: str, root: Path = DEFAULT_NOISE) -> Noise | None:
    """Return the noise kept for the machine of that id, or None."""
    return read_noise(path_for(machine, root))


def keep_noise(noise: Noise, root: Path = DEFAULT_NOISE) -> Path:
    """Merge the noise floors into those kept for their machine; return the path.

    Kept noise floors of another device, backend or protocol are dropped.
    """
    path = path_for(noise.machine, root)
    old = read_noise(path)
    if old and (old.device, old.backend, old.protocol) == (noise.device, noise.backend, noise.protocol):
        noise = replace(noise, floors={**old.floors, **noise.floors})
    return write_noise(noise, path)


def write_noise(noise: Noise, path: Path) -> Path:
    """Write the noise floors to `path` atomically; return the path."""
    cases: dict[str, dict[str, object]] = {}
    for (case, metric), floor in sorted(noise.floors.items()):
        cases.setdefault(case, {})[metric] = dict(sorted(four_digits(asdict(floor)).items()))
    return _SCHEMA.write(path, {**{key: getattr(noise, key) for key in _HEADER if key != "cases"}, "cases": cases})


def read_noise(path: Path) -> Noise | None:
    """Return the noise floors kept at `path`, None without such a file; a ResultsError names the damage."""
    data = _SCHEMA.read(path)
    if data is None:
        return None
    for key, kind in _HEADER.items():
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


# Control of a comparison: cases of identical code, whose times show how the machine changed between the sides.
#
# Their common change is the machine's shift, a factor and an offset: another host launches every kernel 1.7 us later,
# another clock takes 1 % longer for all of it. Every pair is divided by it, and the shift's error is added. The scatter
# of the control's cases beyond their errors then widens every error.

# The error of a median of n equal errors is 1.25 / sqrt(n) of one: with eight it makes the error of a difference 9 %
# larger, with fewer it takes more of the power than an unknown shift costs.
ENOUGH = 8
BY_CHANCE = 0.01
OUTER = 0.95  # of the control's cases shall lie within their intervals
HALVINGS = 30
TURNS = 30  # of the fit; it does not change after ten
HUBER = 1.345
CERTAIN = 4.0  # standard errors from zero that prove an offset
SPAN = 4.0  # between the shortest and the longest case, to distinguish an offset from a factor
_LEAST, _LEAST_SLOWER = 0.001, 0.01  # of a shift that is reported, and of a shift that is bad if software changed
LEAST_ERROR = 1e-6  # relative; samples of four digits are no surer

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Model of the ratio of B to A: `factor` + `offset` / seconds, within the observed `range` of A's seconds.

    `covariance` is that of factor and offset: (factor, both, offset). `scatter` is the standard deviation of cases from
    the fit, as a log.
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
        factor, both, offset = self.covariance
        variance = factor + 2 * inverse * both + inverse**2 * offset
        if ratio <= 0:
            return MachineShift()
        return MachineShift(log(ratio), hypot(sqrt(max(variance, 0.0)) / ratio, self.scatter))


@dataclass(frozen=True)
class Control:
    """Cases of identical code: their number, the median ratio of B to A (`shift`), and the `fit` that divides pairs.

    All errors were multiplied by `widening`. `changed` are the cases that differ nevertheless, `chance` the probability
    of at least that many. Fewer cases than ENOUGH are counted but not used.
    """

    cases: int = 0
    changed: tuple[str, ...] = ()
    chance: float = 1.0
    shift: float = 1.0
    widening: float = 1.0
    fit: Fit = field(default_factory=Fit)

    @property
    def used(self) -> bool:
        """Whether the control is large enough to be used."""
        return self.cases >= ENOUGH

    @property
    def excess(self) -> bool:
        """Whether more cases differ than chance explains."""
        return self.used and self.chance < BY_CHANCE

    def spoils(self, software: str | None) -> bool:
        """Return whether no verdict can be trusted: more cases differ than chance explains, with the same software."""
        return self.excess and not software


def control_of(pairs: Mapping[str, Pair]) -> Control:
    """Return the control of these pairs of identical code."""
    if not pairs:
        return Control()
    shift = median(exp(pair.b.centre - pair.a.centre) for pair in pairs.values())
    estimates = [(pair, estimate(pair.a, pair.b, pair.known)) for pair in pairs.values()]
    known = [(pair, ratio) for pair, ratio in estimates if ratio.freedom]
    if len(known) < ENOUGH:
        return Control(len(pairs), shift=shift)
    seconds = np.array([pair.a.typical for pair, _ in known])
    errors = np.maximum([ratio.error for _, ratio in known], LEAST_ERROR)
    logs = np.array([_unexplained(pair, ratio) for pair, ratio in known])
    fit = _fitted(seconds, logs, errors)
    left = np.abs(logs - [fit.at(time).log for time in seconds.tolist()])
    freedoms = [ratio.freedom for _, ratio in known]
    widening = max(1.0, float(np.median(left / errors / [quantile(0.75, freedom) for freedom in freedoms])))
    outer = np.array([quantile((1 + OUTER) / 2, freedom) for freedom in freedoms])
    scatter = _scatter(left, errors * widening, outer)
    return Control(len(pairs), shift=shift, fit=replace(fit, scatter=scatter), widening=widening)


def _unexplained(pair: Pair, ratio: Estimate) -> float:
    """Return the log ratio that the SM clock does not explain: that of time or of cycles, whichever is nearer to zero.

    A kernel follows the clock between fully (its cycles stay) and not at all (its time stays): if one of them grew and
    the other shrank, the clock explains the whole change.
    """
    if pair.cycles is None:
        return ratio.log
    in_cycles = pair.cycles[1].centre - pair.cycles[0].centre
    return min(ratio.log, in_cycles, key=abs) if ratio.log * in_cycles > 0 else 0.0


def _fitted(seconds: _Floats, logs: _Floats, errors: _Floats) -> Fit:
    """Return the factor, and the offset if it is certain, by Huber's regression of the ratios."""
    ratios, ones = np.exp(logs), np.ones(len(logs))
    span = float(seconds.min()), float(seconds.max())
    both, covariance = _huber(np.stack([ones, 1 / seconds]), ratios, errors * ratios)
    if span[1] > SPAN * span[0] and 0 < CERTAIN * sqrt(covariance[1, 1]) < abs(both[1]):
        flat = (float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1]))
        return Fit(float(both[0]), float(both[1]), flat, span)
    alone, covariance = _huber(ones[None], ratios, errors * ratios)
    return Fit(float(alone[0]), 0.0, (float(covariance[0, 0]), 0.0, 0.0))


def _huber(columns: _Floats, values: _Floats, errors: _Floats) -> tuple[_Floats, _Floats]:
    """Return the coefficients of `columns` and their covariance; outlying values have less weight."""
    scale, units = 1.0, np.sqrt((columns**2).mean(axis=1))
    columns = columns / units[:, None]
    weights = errors**-2
    coefficients = np.zeros(len(columns))
    normal = np.eye(len(columns))
    for _ in range(TURNS):
        normal = (columns * weights) @ columns.T
        if np.linalg.det(normal) > 0:
            coefficients = np.linalg.solve(normal, (columns * weights) @ values)
        away = np.abs(values - coefficients @ columns) / errors
        scale = max(1.0, float(np.median(away)) / 0.6745)
        weights = errors**-2 * np.minimum(1.0, HUBER * scale / np.maximum(away, 1e-12))
    covariance = np.linalg.inv(normal) * scale**2 if np.linalg.det(normal) > 0 else np.zeros_like(normal)
    return coefficients / units, covariance / np.outer(units, units)


def _scatter(left: _Floats, errors: _Floats, quantiles: _Floats) -> float:
    """Return the least scatter with which 95 % of the control's cases are within their 95 % interval."""

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
    """Return the control with its cases that differ after the division by the shift and the widening."""
    chance = binomial_tail(len(changed) - 1, control.cases, BY_CHANCE) if changed else 1.0
    return replace(control, changed=changed, chance=chance)


def shift_words(control: Control) -> str | None:
    """Return the machine's shift as text if it exceeds its error, or None."""
    fit = control.fit
    error = hypot(sqrt(max(fit.covariance[0], 0.0)), fit.scatter)
    if not control.used:
        return None
    parts = [f"{'+' if fit.offset > 0 else '-'}{time_text(abs(fit.offset))} a launch"] if fit.offset else []
    parts += [f"{fit.factor - 1:+.1%}".replace("%", " %")] if abs(fit.factor - 1) > max(_LEAST, 3 * error) else []
    return " and ".join(parts) or None


def control_findings(control: Control, software: str | None) -> list[Finding]:
    """Return the findings of a control: an excess, and a shift, which is bad if other software made code slower."""
    findings: list[Finding] = []
    if control.spoils(software):
        message = (
            f"{len(control.changed)} of {count_text(control.cases, 'case')} of identical "
            "machine code have times that differ beyond "
            f"chance (median ratio {control.shift:.3f}): the machine changed between the sides"
        )
        findings.append(Finding("untrusted", "control", None, message))
    if shift := shift_words(control):
        slower = control.shift > 1 + _LEAST_SLOWER
        why = f"with other software ({software})" if software else "the machine differs between the sides"
        message = (
            f"{count_text(control.cases, 'case')} of identical machine code have "
            f"in common {shift}: {why}; it is divided out"
        )
        findings.append(Finding("bad" if software and slower else "note", "shift", None, message, ratio=control.shift))
    return findings


# Comparison across boards: the boards' part of a difference, from the control or from the history of the boards.
#
# Cases are grouped by the two boards that measured their sides. Cases of one board, and of each pair of boards with
# enough cases of identical code, have their own control. Elsewhere the factor between the boards is divided out, with
# its error and the scatter between two runs of one board. The error of an unknown factor is that of boards without a
# comparison, so that no smaller change is called.

_Boards = tuple[str, str]  # UUIDs of both sides
_UNLEARNED = "no history of these boards was read"


@dataclass(frozen=True)
class Crossings:
    """Cases whose sides two boards measured: both UUIDs by case, and the `factors` between the boards where needed."""

    boards: Mapping[str, _Boards] = field(default_factory=dict[str, _Boards])
    factors: Mapping[str, BoardFactor] = field(default_factory=dict[str, BoardFactor])

    def reason(self, case: str, judgement: Judgement) -> str | None:
        """Return why the boards withhold a verdict on the case, or None."""
        factor = self.factors.get(case)
        if factor is None or judgement.verdict != "inconclusive":
            return None
        a, b = self.boards[case]
        if not factor.known:
            return f"withheld: measured on two boards, {a} and {b}, whose factor is not known: {factor.reason}"
        return f"{judgement.reason}; the factor of the boards {a} and {b} is known to {share_text(factor.reach)}"

    def notes(self) -> list[str]:
        """Return for each pair of boards how its cases were compared."""
        groups: dict[_Boards, list[BoardFactor]] = {}
        for case, factor in self.factors.items():
            groups.setdefault(self.boards[case], []).append(factor)
        notes: list[str] = []
        for (a, b), factors in groups.items():
            known = sorted(factor.ratio for factor in factors if factor.known)
            were = "was" if len(factors) == 1 else "were"
            note = f"{count_text(len(factors), 'case')} {were} measured on board {a} and on board {b}"
            left = f"; of {len(factors) - len(known)} it is not known" if len(known) < len(factors) else ""
            if known:
                notes.append(f"{note}: divided by their factor, {known[len(known) // 2]:.3f} in the middle{left}")
            else:
                notes.append(f"{note}: their factor is not known ({factors[0].reason}), and verdicts are withheld")
        return notes


def crossed(cases: Mapping[str, tuple[CaseResult, CaseResult]], a: RunRecord, b: RunRecord) -> dict[str, _Boards]:
    """Return the boards of the cases whose sides two known boards measured."""
    boards: dict[str, _Boards] = {}
    for name, (case_a, case_b) in cases.items():
        board_a, board_b = a.board_of(case_a), b.board_of(case_b)
        if board_a and board_b and board_a != board_b:
            boards[name] = board_a, board_b
    return boards


def shifts_of(
    pairs: Mapping[str, Pair],
    identical: Collection[str],
    boards: Mapping[str, _Boards],
    history: KnownBoards | None,
    metrics: Mapping[str, str],
) -> tuple[Control, float, dict[str, MachineShift], Crossings]:
    """Return the control, the usual widening of errors, the shift that divides each pair, and the cases across boards.

    The control is that of the group with the most cases; its count is that of all groups with a control. `history` has
    the boards' factors, `metrics` the metric of each case.
    """
    groups: dict[_Boards | None, list[str]] = {}
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
                factor = BoardFactor(reason=_UNLEARNED)
                if history:
                    factor = history.factor(metrics[case], case, *group)
                factors[case] = factor
                # The error includes the scatter between runs of either board.
                shifts[case] = MachineShift(factor.log, hypot(factor.sure_error, sqrt(2) * factor.between_runs))
    largest = max(controls.values(), key=lambda control: control.cases, default=Control())
    used = [control for control in controls.values() if control.used]
    count = sum(control.cases for control in used)
    widening = sum(control.widening * control.cases for control in used) / count if used else 1.0
    together = replace(largest, cases=count, widening=widening) if used else largest
    return together, widening, shifts, Crossings(boards, factors)
