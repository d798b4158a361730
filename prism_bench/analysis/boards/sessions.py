"""Sessions of one board: what its runs differ by, of which a difference between two boards must be more.

Sessions and units are fitted in turn, by Huber's weighted means, which few odd cases do not move.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, sqrt

import numpy

from prism_bench.analysis.boards.observed import Floats, Ints, Observations

_TURNS, _HUBER = 50, 1.345
_SAME = 1e-9
_ONE_IN_TWENTY = 1.6449  # standard deviations beyond which one normal value in twenty is


@dataclass(frozen=True)
class SessionSpread:
    """What sessions of one board differ by: `sigma` as a whole and `noise` of one unit, as standard deviations of logs.

    `memory` is the correlation of a session with the next one of its board; `freedom` what sigma was learned from.
    `own` has the noise of units that are noisier than others.
    """

    sigma: float = 0.0
    noise: float = 0.0
    memory: float = 0.0
    freedom: float = 0.0
    own: Mapping[int, float] = field(default_factory=dict[int, float])

    def noise_of(self, unit: int) -> float:
        """Return what two sessions differ by in a unit: as in all units, or more where that is one of the noisy."""
        return max(self.noise, self.own.get(unit, 0.0))

    def between(self, unit: int) -> float:
        """Return what a unit's times of two sessions on one board differ by, with what the sessions do."""
        return hypot(self.sigma, self.noise_of(unit))

    def independent(self, count: float) -> float:
        """Return how many independent sessions so many in a row are worth."""
        return max(1.0, count * (1 - self.memory) / (1 + self.memory))


def runs_of(seen: Observations) -> SessionSpread:
    """Return what sessions of one board differ by, from all boards with several sessions of the same units."""
    squares = products = 0.0
    freedom, left, residuals, fitted = 0, 0, list[Floats](), list[Ints]()
    for board in range(len(seen.names)):
        own = seen.rows(seen.boards == board)
        effects, rest, groups = two_way(own.units, own.sessions, own.logs)
        residuals.append(rest)
        fitted.append(own.units)
        left += len(rest) - len(set(own.units.tolist())) - len(effects) + groups
        values = numpy.array([effects[session] for session in sorted(effects, key=lambda one: seen.records[one])])
        squares += float(values @ values)
        products += float(values[1:] @ values[:-1])
        freedom += len(effects) - groups
    if freedom < 1 or left < 1:
        return SessionSpread()
    memory = products / squares if squares else 0.0
    memory += (1 + 4 * memory) / (freedom + 1)  # Kendall 1954, as in `trend.runs`
    rest = numpy.concatenate(residuals)
    noise = 1.4826 * float(numpy.median(numpy.abs(rest))) * sqrt(len(rest) / left)
    own = _noise_by_unit(fitted, rest, noise)
    return SessionSpread(sqrt(squares / freedom), noise, min(max(memory, 0.0), 0.9), freedom, own)


def _noise_by_unit(fitted: Sequence[Ints], residuals: Floats, usual: float) -> dict[int, float]:
    """Return the noise of each unit that is noisier than the `usual`, beyond what one unit in twenty is by chance.

    Freedom is how many more residuals a unit has than levels were fitted to it, one on each board.
    """
    units, levels = numpy.concatenate(fitted), numpy.concatenate([numpy.unique(one) for one in fitted])
    freedom = numpy.bincount(units) - numpy.bincount(levels)
    variances = numpy.bincount(units, residuals**2) / numpy.maximum(freedom, 1)
    spread = 2 / (9 * numpy.maximum(freedom, 1))
    # The quantile of a chi-square by E. B. Wilson and M. M. Hilferty, PNAS 17, 1931.
    most = usual**2 * (1 - spread + _ONE_IN_TWENTY * numpy.sqrt(spread)) ** 3
    noisy = numpy.flatnonzero((freedom > 0) & (variances > most))
    return dict(zip(noisy.tolist(), numpy.sqrt(variances[noisy]).tolist(), strict=True))


def two_way(units: Ints, sessions: Ints, logs: Floats) -> tuple[dict[int, float], Floats, int]:
    """Return the effect of each session, the residuals, and how many groups of sessions share no unit.

    By Huber's weighted means of rows and columns in turn; the effects of a group have the mean 0.
    """
    if not len(logs):
        return {}, logs, 0
    known, session = numpy.unique(sessions, return_inverse=True)
    _, unit = numpy.unique(units, return_inverse=True)
    group = _groups(unit, session, len(known))
    effects, levels, weights = numpy.zeros(len(known)), numpy.zeros(int(unit.max()) + 1), numpy.ones(len(logs))
    for _ in range(_TURNS):
        before = effects
        levels = _means(unit, logs - effects[session], weights)
        effects = _means(session, logs - levels[unit], weights)
        effects = effects - _means(group, effects, numpy.ones(len(known)))[group]
        away = numpy.abs(logs - levels[unit] - effects[session])
        scale = max(1.4826 * float(numpy.median(away)), _SAME)
        weights = numpy.minimum(1.0, _HUBER * scale / numpy.maximum(away, _SAME))
        if float(numpy.max(numpy.abs(effects - before))) < _SAME:
            break
    return (
        dict(zip(known.tolist(), effects.tolist(), strict=True)),
        logs - levels[unit] - effects[session], int(group.max()) + 1,
    )  # fmt: skip


def _means(places: Ints, values: Floats, weights: Floats) -> Floats:
    return numpy.bincount(places, values * weights) / numpy.maximum(numpy.bincount(places, weights), _SAME)


def _groups(unit: Ints, session: Ints, count: int) -> Ints:
    """Return the group of each session: two that measured one unit are in one group."""
    group = numpy.arange(count)
    while True:
        least = numpy.full(int(unit.max()) + 1, count)
        numpy.minimum.at(least, unit, group[session])
        found = group.copy()
        numpy.minimum.at(found, session, least[unit])
        if (found == group).all():
            return numpy.unique(group, return_inverse=True)[1]
        group = found
