"""Which commit made it slower: right culprits on planted histories, none on clean ones, and what the numbers mean."""

from math import log1p

import numpy as np
import pytest

from prism_bench.analysis.bisection import Observation, next_node, posterior

NOISE = 0.014  # standard deviation of a log ratio of two processes, each of which is off by 1 %


def searched(sizes, nodes=64, seed=0, most=120):
    """Search a history in which time changes by `sizes`, {node: share}; return the posterior and the observations."""
    rng, observations = np.random.default_rng(seed), []
    found = posterior(nodes, observations)
    while len(observations) < most and not found.decided:
        node = next_node(found, observations)
        level = sum(log1p(size) for place, size in sizes.items() if place <= node)
        observations.append(Observation(node, level + NOISE * rng.standard_normal(), NOISE**2))
        found = posterior(nodes, observations)
    return found, observations


@pytest.mark.parametrize(("size", "least"), [(0.05, 0.95), (0.02, 0.90)])
def test_a_planted_culprit_is_found(size, least):
    places = np.random.default_rng(5).integers(1, 64, 60)
    right = [searched({int(place): size}, seed=seed)[0].culprits == (place,) for seed, place in enumerate(places)]
    assert np.mean(right) >= least


def test_a_long_history_takes_few_more_measurements():
    found, observations = searched({300: 0.05}, nodes=512)
    assert (300,) == found.culprits
    assert len(observations) < 30


def test_a_clean_history_has_no_culprit():
    named = [searched({}, seed=seed)[0].culprits for seed in range(100)]
    assert sum(map(bool, named)) <= 1


def test_an_improvement_is_a_change_too():
    assert (20,) == searched({20: -0.05})[0].culprits


def test_two_culprits_are_two_answers():
    assert (10, 50) == searched({10: 0.05, 50: 0.08})[0].culprits


def test_the_last_node_is_measured_first():
    assert 63 == next_node(posterior(64, []), [])
    _, observations = searched({32: 0.05})
    assert 63 == observations[0].node


def test_probabilities_are_of_everything_that_may_be():
    found = posterior(5, [Observation(4, 0.05, 0.01**2), Observation(2, 0.0, 0.01**2)])
    assert 1 == pytest.approx(found.none + found.single.sum() + found.double.sum())
    assert 0 == found.at[0]
    assert found.single[3] == pytest.approx(found.single[4])  # nothing was measured between them
    assert found.single[3] > 10 * found.single[1]


def test_one_change_has_the_density_that_integration_gives():
    """The closed form against a sum over sizes of the change."""
    seen = [Observation(2, 0.04, 0.01**2), Observation(1, -0.01, 0.02**2)]
    found = posterior(3, seen)
    sizes = np.linspace(-1, 1, 400_001)
    prior = np.exp(-(sizes**2) / 2 / 0.1**2) / 0.1 / np.sqrt(2 * np.pi)

    def evidence(first):
        logs = sum(-((shown.log - sizes * (shown.node >= first)) ** 2) / 2 / shown.variance for shown in seen)
        return float(np.sum(prior * np.exp(logs)) * (sizes[1] - sizes[0]))

    assert evidence(2) / evidence(1) == pytest.approx(found.single[2] / found.single[1], rel=1e-3)


def test_repeating_a_node_makes_it_certain():
    noisy = [Observation(3, 0.02, 0.02**2)]
    assert posterior(4, noisy).none > 0.3
    assert posterior(4, noisy * 30).none < 0.01


def test_a_node_that_cannot_be_measured_is_one_place_with_the_next():
    seen = [Observation(4, 0.05, 0.01**2), Observation(1, 0.0, 0.01**2)]
    whole, found = posterior(5, seen), posterior(5, seen, {2, 3})
    assert 1 == pytest.approx(found.none + found.single.sum() + found.double.sum())
    assert whole.single[2:].sum() == pytest.approx(found.single[4], abs=0.05)
    assert [0, 0] == [found.at[node] for node in (2, 3)]
    assert whole.none == found.none
    assert found.at[4] > 0.97 > whole.at.max()


def test_a_node_that_cannot_be_measured_is_not_next():
    seen = [Observation(4, 0.05, 0.01**2)]
    chosen = next_node(posterior(5, seen), seen)
    left = {1, 2, 3} - {chosen}
    assert next_node(posterior(5, seen, {chosen}), seen, {chosen}) in left
    assert 4 == next_node(posterior(5, seen, {1, 2, 3}), seen, {1, 2, 3})
