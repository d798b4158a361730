"""Which commit made a case slower: a posterior over the places where its time may have changed.

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
NAMED = 0.97  # the probability from which on a place is named
_LEFT = 0.1  # the expected number of further changes up to which a search ends


@dataclass(frozen=True)
class Observation:
    """One measurement of `node`: its log time over that of node 0, and the `variance` of that."""

    node: int
    log: float
    variance: float


@dataclass(frozen=True)
class Posterior:
    """What is known of a history of `nodes` nodes after some measurements.

    `none` is the probability that nothing changed; `at[i]` that time changed before node i, in hypotheses of one or two
    changes, so that the sum of `at` may exceed 1; `one[i]` the same for a single change. Before nodes that cannot be
    measured it is 0: what may have changed there belongs to the next node. `spread[k]` is the variance of the expected
    log ratio of node k over the hypotheses.
    """

    none: float
    one: Floats
    two: Floats = field(repr=False)
    spread: Floats = field(repr=False)

    @cached_property
    def at(self) -> Floats:
        """The probability of a change before each node."""
        return self.one + self.two.sum(axis=0) + self.two.sum(axis=1)

    @property
    def culprits(self) -> tuple[int, ...]:
        """The nodes that are named: a change before each has at least the probability `NAMED`."""
        return tuple(int(node) for node in np.flatnonzero(self.at >= NAMED))

    @property
    def decided(self) -> bool:
        """Whether nothing changed, or the places of the changes are named and hardly any other is left."""
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
    one, two = raw[1] / total, raw[2] / total
    spread = _spread(one, two, single, double)
    return Posterior(float(raw[0] / total), *_together(one, two, skip), spread)


def _together(one: Floats, two: Floats, skip: Collection[int]) -> tuple[Floats, Floats]:
    """Return the probabilities with those of the nodes `skip` added to the next node; two changes in there are one."""
    if not skip:
        return one, two
    place = np.arange(one.size)
    for node in sorted(skip, reverse=True):
        place[node] = place[node + 1]
    single, double = np.zeros_like(one), np.zeros_like(two)
    np.add.at(single, place, one)
    np.add.at(double, (place[:, None], place[None, :]), two)
    single += np.diag(double)
    np.fill_diagonal(double, 0.0)
    return single, double


def _one_change(weight: Floats, moment: Floats) -> _Fits:
    """Return the fits of one change before each node, from the weight w and moment m of the nodes from there on.

    With the prior precision p = 1/SIZE^2 the evidence is log sqrt(p / (p + w)) + m^2 / 2 (p + w), the size m / (p + w).
    """
    prior = 1 / _SIZE**2
    evidence = 0.5 * np.log(prior / (prior + weight)) + moment**2 / (2 * (prior + weight))
    evidence[0] = -np.inf
    return _Fits(evidence, moment / (prior + weight), np.zeros_like(moment))


def _two_changes(weight: Floats, moment: Floats) -> _Fits:
    """Return the fits of changes before nodes i < j as [i, j]; the evidence is -inf elsewhere.

    As for one, with the precision matrix [[p + w_i, w_j], [w_j, p + w_j]] and the moments (m_i, m_j).
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


def _spread(one: Floats, two: Floats, single: _Fits, double: _Fits) -> Floats:
    """Return for each node the variance over the hypotheses of the log ratio that they expect of it."""
    whole = double.first + double.second
    mean = np.cumsum(one * single.first)
    mean += np.cumsum((two * double.first).sum(axis=1)) + np.cumsum((two * double.second).sum(axis=0))
    square = np.cumsum(one * single.first**2)
    begun, ended = two * double.first**2, two * (whole**2 - double.first**2)
    square += np.cumsum(begun.sum(axis=1)) + np.cumsum(ended.sum(axis=0))
    return np.maximum(square - mean**2, 0.0)


def next_node(found: Posterior, observations: list[Observation], skip: Collection[int] = ()) -> int:
    """Return the node to measure next: the last one first, then the one whose time the hypotheses differ in most.

    The nodes `skip` are never chosen.
    """
    if not observations:
        return found.at.size - 1
    spread = found.spread.copy()
    spread[[0, *skip]] = -np.inf
    return int(np.argmax(spread))
