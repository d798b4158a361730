"""What is tried: all of a small space, what a strategy asks for of a large one; and which few are worth more time."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.workflows.tuning.search import NAMES, best_few, require_strategy, search

SPACE = [{"block": b, "items": i, "width": w} for b in (256, 64, 128, 512) for i in (1, 2, 4, 8) for w in (1, 2, 4)]
LARGE = [one for one in SPACE if one["block"] * one["items"] < 4096]


def tried(space, strategy, budget, seconds=lambda one: 1.0):
    seen = []

    def measure(configuration):
        seen.append(configuration)
        return seconds(configuration)

    search(space, measure, strategy, budget)
    return seen


@pytest.mark.parametrize("strategy, budget", [("exhaustive", 2), ("auto", len(SPACE))])
def test_a_small_space_is_tried_whole_and_in_order(strategy, budget):
    assert SPACE == tried(SPACE, strategy, budget)


def distance(one):
    """Least at block 128 of 4 items; wrong where blocks are of 512."""
    return None if one["block"] == 512 else abs(one["block"] - 128) + 10 * abs(one["items"] - 4) + one["width"]


@pytest.mark.parametrize("strategy", [name for name in NAMES if name != "exhaustive"])
def test_a_strategy_tries_the_default_and_no_more_than_its_budget(strategy):
    seen = tried(LARGE, strategy, 12, distance)
    assert LARGE[0] == seen[0]
    assert 2 <= len(seen) <= 12
    assert len(seen) == len({tuple(one.items()) for one in seen}), "nothing is measured twice"
    assert all(one in LARGE for one in seen)


def test_a_space_beyond_the_budget_goes_to_a_strategy_and_the_same_way_each_time():
    first = tried(LARGE, "auto", 12, distance)
    assert len(first) <= 12
    assert first == tried(LARGE, "auto", 12, distance)


def test_a_strategy_comes_nearer_than_where_it_began():
    seen = tried(LARGE, "genetic_algorithm", 24, distance)
    assert min(filter(None, map(distance, seen))) < distance(LARGE[0])


def test_an_empty_space_and_an_unknown_strategy_are_refused():
    with pytest.raises(UsageError, match="there is no configuration to try"):
        search([], lambda one: 1.0)
    with pytest.raises(UsageError, match="unknown strategy 'genetic'; did you mean genetic_algorithm"):
        require_strategy("genetic")
    assert "auto" == require_strategy("auto")


@pytest.mark.parametrize(
    "seconds, expected",
    [
        ({"d": 1.0, "a": 0.9, "b": 0.8, "c": 0.7}, ["c", "b", "a"]),
        ({"d": 1.0, "a": 0.999, "b": 1.2}, []),
        ({"a": 0.5}, []),
    ],
)
def test_only_what_beats_the_default_is_worth_fresh_processes(seconds, expected):
    assert expected == best_few(seconds, "d")
