"""What is tried: all of a small space, proposals in a large one; and which few are worth more time."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.workflows.tuning.search import best_few, search

SPACE = [{"block": b, "items": i, "width": w} for b in (256, 64, 128, 512) for i in (1, 2, 4, 8) for w in (1, 2, 4)]
LARGE = [one for one in SPACE if one["block"] * one["items"] < 4096]


def tried(space, budget, seconds=lambda one: 1.0):
    seen = []

    def measure(configuration):
        seen.append(configuration)
        return seconds(configuration)

    search(space, measure, budget)
    return seen


def test_a_small_space_is_tried_whole_and_in_order():
    assert SPACE == tried(SPACE, len(SPACE))


def distance(one):
    """Least at block 128 of 4 items; wrong where blocks are of 512."""
    return None if one["block"] == 512 else abs(one["block"] - 128) + 10 * abs(one["items"] - 4) + one["width"]


def test_a_large_space_is_tried_from_the_default_on_up_to_the_budget():
    seen = tried(LARGE, 12, distance)
    assert LARGE[0] == seen[0]
    assert 2 <= len(seen) <= 12
    assert len(seen) == len({tuple(one.items()) for one in seen}), "nothing is measured twice"
    assert all(one in LARGE for one in seen)
    assert seen == tried(LARGE, 12, distance), "the same way each time"


def test_a_search_comes_nearer_than_where_it_began():
    seen = tried(LARGE, 24, distance)
    assert min(filter(None, map(distance, seen))) < distance(LARGE[0])


def test_an_empty_space_is_refused():
    with pytest.raises(UsageError, match="there is no configuration to try"):
        search([], lambda one: 1.0)


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
