"""Bisection of a change in time: the posterior over the commits that may have made a case slower.

History is a row of nodes, commits whose machine code, launch and inputs are equal. Each measurement is the log ratio of
a node's time over that of node 0, with its variance. The hypotheses are: no change, one change before node i, and two
changes before nodes i < j. A change has an unknown size with a normal prior, which is integrated out, so that the
evidence of a hypothesis is a normal density in closed form (linear regression on step functions). The next node to
measure is the one that divides the probability of the places most evenly; measured nodes gain precision by repetition.
No measurement divides the places before a node that cannot be measured and before the next one: they are one place.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NO_CHANGE, _ONE_CHANGE = 0.5, 0.48  # prior probabilities; two changes have the rest
_SIZE = 0.10  # standard deviation of the prior of a change's log ratio
NAMED = 0.97  # the least probability with which a place is named
_LEFT = 0.1  # the largest expected number of further changes with which a search ends


@dataclass(frozen=True)
class Observation:
    """One measurement of `node`: its log time over that of node 0, with its `variance`."""

    node: int
    log: float
    variance: float


@dataclass(frozen=True)
class Posterior:
    """Probabilities of the hypotheses after some measurements.

    `none` is that of no change, `single[i]` of a single change before node i, `double[i, j]` of two changes before
    nodes i and j, and `at[i]` of any change before node i, so that the sum of `at` may exceed 1. They are 0 for nodes
    that cannot be measured: a change there belongs to the next node. `spread[k]` is the variance of the expected log
    ratio of node k over the hypotheses.
    """

    none: float
    single: Floats
    double: Floats = field(repr=False)
    spread: Floats = field(repr=False)

    @cached_property
    def at(self) -> Floats:
        """The probability of a change before each node."""
        return self.single + self.double.sum(axis=0) + self.double.sum(axis=1)

    @property
    def culprits(self) -> tuple[int, ...]:
        """The named nodes: a change before each has at least the probability `NAMED`."""
        return tuple(int(node) for node in np.flatnonzero(self.at >= NAMED))

    @property
    def decided(self) -> bool:
        """Whether nothing changed, or the places of the changes are named and other changes are improbable."""
        named = list(self.culprits)
        rest = float(self.at.sum() - self.at[named].sum())
        return self.none >= NAMED or (bool(named) and rest <= _LEFT)


@dataclass(frozen=True)
class _Fits:
    """The log evidence of hypotheses over that of no change, and the changes that they expect."""

    evidence: Floats
    first: Floats
    second: Floats


def posterior(nodes: int, observations: list[Observation], skip: Collection[int] = ()) -> Posterior:
    """Return the posterior of a history of `nodes` nodes; a node may have been observed more than once.

    The nodes `skip` cannot be measured; neither the first nor the last is among them.
    """
    weight, moment = np.zeros(nodes), np.zeros(nodes)
    for observed in observations:
        weight[observed.node] += 1 / observed.variance
        moment[observed.node] += observed.log / observed.variance
    later = [np.cumsum(sums[::-1])[::-1] for sums in (weight, moment)]
    single, double = _one_change(*later), _two_changes(*later)
    places = max(nodes - 1, 1)
    pairs = max(places * (places - 1) / 2, 1)
    logs = (
        single.evidence + np.log(_ONE_CHANGE / places),
        double.evidence + np.log((1 - _NO_CHANGE - _ONE_CHANGE) / pairs),
    )
    none = np.log(_NO_CHANGE)
    top = max(none, logs[0].max(), logs[1].max())
    raw = np.exp(none - top), np.exp(logs[0] - top), np.exp(logs[1] - top)
    total = raw[0] + raw[1].sum() + raw[2].sum()
    chances = raw[1] / total, raw[2] / total
    spread = _spread(*chances, single, double)
    return Posterior(float(raw[0] / total), *_merged(*chances, skip), spread)


def _merged(single: Floats, double: Floats, skip: Collection[int]) -> tuple[Floats, Floats]:
    """Return the probabilities with those of the nodes `skip` added to the next node; two changes there become one."""
    if not skip:
        return single, double
    place = np.arange(single.size)
    for node in sorted(skip, reverse=True):
        place[node] = place[node + 1]
    merged_single, merged_double = np.zeros_like(single), np.zeros_like(double)
    np.add.at(merged_single, place, single)
    np.add.at(merged_double, (place[:, None], place[None, :]), double)
    merged_single += np.diag(merged_double)
    np.fill_diagonal(merged_double, 0.0)
    return merged_single, merged_double


def _one_change(weight: Floats, moment: Floats) -> _Fits:
    """Return the fits of one change before each node, from the weight w and moment m of that and the later nodes.

    With the prior precision p = 1/SIZE^2 the evidence is log sqrt(p / (p + w)) + m^2 / 2 (p + w), the size m / (p + w).
    """
    prior = 1 / _SIZE**2
    evidence = 0.5 * np.log(prior / (prior + weight)) + moment**2 / (2 * (prior + weight))
    evidence[0] = -np.inf
    return _Fits(evidence, moment / (prior + weight), np.zeros_like(moment))


def _two_changes(weight: Floats, moment: Floats) -> _Fits:
    """Return the fits of changes before nodes i < j as [i, j]; the evidence is -inf elsewhere.

    As for one change, with the precision matrix [[p + w_i, w_j], [w_j, p + w_j]] and the moments (m_i, m_j).
    """
    prior = 1 / _SIZE**2
    first, second = (prior + weight)[:, None], (prior + weight)[None, :]
    shared = np.broadcast_to(weight[None, :], (weight.size, weight.size))
    ordered = np.triu(np.ones_like(shared, dtype=bool), 1)
    ordered[0] = False
    determinant = np.where(ordered, first * second - shared**2, prior**2)
    mine, theirs = moment[:, None], moment[None, :]
    sizes = (second * mine - shared * theirs) / determinant, (first * theirs - shared * mine) / determinant
    evidence = 0.5 * (np.log(prior**2 / determinant) + mine * sizes[0] + theirs * sizes[1])
    return _Fits(np.where(ordered, evidence, -np.inf), *(np.where(ordered, size, 0.0) for size in sizes))


def _spread(single: Floats, double: Floats, fits: _Fits, double_fits: _Fits) -> Floats:
    """Return the variance of each node's expected log ratio over the hypotheses, from their probabilities and fits."""
    both = double_fits.first + double_fits.second
    mean = np.cumsum(single * fits.first)
    mean += np.cumsum((double * double_fits.first).sum(axis=1)) + np.cumsum((double * double_fits.second).sum(axis=0))
    square = np.cumsum(single * fits.first**2)
    begun, ended = double * double_fits.first**2, double * (both**2 - double_fits.first**2)
    square += np.cumsum(begun.sum(axis=1)) + np.cumsum(ended.sum(axis=0))
    return np.maximum(square - mean**2, 0.0)


def next_node(known: Posterior, observations: list[Observation], skip: Collection[int] = ()) -> int:
    """Return the node to measure next: first the last node, then that with the largest variance over the hypotheses.

    The nodes `skip` are never chosen.
    """
    if not observations:
        return known.at.size - 1
    spread = known.spread.copy()
    spread[[0, *skip]] = -np.inf
    return int(np.argmax(spread))
