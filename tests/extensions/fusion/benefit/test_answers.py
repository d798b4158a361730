"""How long a host waits for each stage: from planted times of items, none without them."""

import pytest

from tests.extensions.fusion.benefit.toy_chain import ROWS, SERVED, TOY, latencies, toy_ledger


def test_stages_stand_with_their_forms_and_the_empty_item_first():
    found = toy_ledger(chain=SERVED, latencies=latencies(*ROWS)).answers
    told = [(one.stage, one.form, one.launches, one.answer.median) for one in found]
    assert [
        ("empty", "persistent", 0, 4e-6),
        ("baseline", "graph", 1, 15e-6), ("baseline", "launch", 2, 20e-6),
        ("full", "graph", 1, 9e-6), ("full", "launch", 1, 8e-6),
        ("persistent", "persistent", 0, 6e-6), ("persistent", "launches", 1, 30e-6),
    ] == told  # fmt: skip
    assert [3e-7, 3e-7] == [one.error for one in found[-2:]]


def test_every_stage_is_held_against_the_fastest_graph():
    found = toy_ledger(chain=SERVED, latencies=latencies(*ROWS)).answers
    ratios = {(one.stage, one.form): one.against_graph for one in found}
    assert 1.5 == pytest.approx(ratios["persistent", "persistent"])
    assert 0.6 == pytest.approx(ratios["baseline", "graph"])
    assert ratios["empty", "persistent"] is None


def test_where_no_graph_was_timed_there_is_no_ratio():
    found = toy_ledger(chain=SERVED, latencies=latencies(*ROWS[:2])).answers
    assert [None, None] == [one.against_graph for one in found]


@pytest.mark.parametrize(("chain", "rows"), [(TOY, ROWS), (SERVED, ()), (SERVED, ROWS[3:])])
def test_a_chain_that_was_not_served_has_no_answers(chain, rows):
    assert () == toy_ledger(chain=chain, latencies=latencies(*rows)).answers
    assert () == toy_ledger(chain=chain).answers


def test_the_served_stage_launches_nothing_and_has_no_time_of_a_launch():
    row = toy_ledger(chain=SERVED, latencies=latencies(*ROWS)).row("persistent")
    assert 0 == row.plan.launches
    assert "timed from request to answer" in row.figures["cold_time"].reason
    assert (None, {}, ()) == (row.passed, row.speedups, row.notes)
