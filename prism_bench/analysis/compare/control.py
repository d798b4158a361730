"""Control of a comparison: cases of identical code, whose times show what the machine did between the sides.

What they have in common is the machine's shift, a factor and an offset: another host launches every kernel 1.7 us
later, another clock takes 1 % longer for all of it. Every pair is divided by it, with the shift's own error added. What
the control's cases differ by beyond their errors after that widens every error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, hypot, log, sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.compare.estimate import Estimate, estimate, quantile
from prism_bench.analysis.compare.verdict import MachineShift, Pair
from prism_bench.analysis.distributions import binomial_tail
from prism_bench.analysis.findings import Finding
from prism_bench.units import count_text, time_text

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
LEAST, LEAST_SLOWER = 0.001, 0.01  # of a shift that is reported, and of one that is bad where software changed
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
    fit = fitted(seconds, logs, errors)
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


def fitted(seconds: Floats, logs: Floats, errors: Floats) -> Fit:
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
    parts += [f"{fit.factor - 1:+.1%}".replace("%", " %")] if abs(fit.factor - 1) > max(LEAST, 3 * error) else []
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
        slower = control.shift > 1 + LEAST_SLOWER
        why = f"with other software ({software})" if software else "the machine differs between the sides"
        message = (
            f"{count_text(control.cases, 'case')} of identical machine code have "
            f"in common {words}: {why}; it is divided out"
        )
        found.append(Finding("bad" if software and slower else "note", "shift", None, message, ratio=control.shift))
    return found
