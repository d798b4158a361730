"""The verdict: what is called a change, what is withheld, and how often it is wrong where the truth is known."""

import re
from math import log

import numpy as np
import pytest

from prism_bench.analysis.compare.estimate import Medians, Spread, medians, pooled
from prism_bench.analysis.compare.verdict import CHANGED, MachineShift, Pair, VerdictRules, judged


def side(ratio=1.0, spread=0.001, processes=5, **facts):
    """Processes evenly around a ratio."""
    steps = np.linspace(-1, 1, processes) if processes > 1 else [0.0]
    return Medians(tuple(log(ratio) + spread * step for step in steps), (0.0,) * processes, **facts)


def verdict(a, b, *, rules=VerdictRules(), **facts):  # noqa: B008
    (found,) = judged([Pair(a, b, **facts)], rules)
    return found.verdict, found.reason


def test_what_takes_longer_is_slower_and_the_other_way_round():
    assert ("slower", None) == verdict(side(), side(1.05))
    assert ("faster", None) == verdict(side(1.05), side())


def test_what_differs_by_less_than_is_worth_a_word_is_the_same():
    assert ("same", "within 0.6 %") == verdict(side(), side(1.004))


def test_same_says_within_how_much_and_true_changes_lie_within_it():
    (found,) = judged([Pair(side(spread=0.01), side(1.02, spread=0.01))])
    assert ("same", "within 3.2 %") == (found.verdict, found.reason)
    assert 0.02 < found.within < 0.032


def test_what_takes_longer_by_more_than_is_worth_a_word_is_never_the_same():
    """It is 2 % slower beyond doubt, but these processes would have to see 2.3 % for a change to be called."""
    (found,) = judged([Pair(side(spread=0.0035), side(1.02, spread=0.0035), known=Spread(0.0065**2, 6))])
    assert "inconclusive" == found.verdict
    assert 1.01 < found.estimate.interval()[0]


@pytest.mark.parametrize(("least", "expected"), [(0.002, "inconclusive"), (0.03, "same"), (0.1, "same")])
def test_nothing_is_the_same_that_may_hide_a_change_worth_a_word(least, expected):
    a, b = side(spread=0.01), side(1.005, spread=0.01)
    assert expected == verdict(a, b, rules=VerdictRules(least=least, most=least))[0]


def test_a_change_below_the_floor_is_withheld_and_says_so():
    found, reason = verdict(side(), side(1.03), known=Spread(0.012**2, 50))
    expected = "withheld: 3.0 % slower is below the noise floor of 3.4 %; about 7 processes a side would decide"
    assert ("inconclusive", expected) == (found, reason)


def test_a_floor_that_hides_a_lot_makes_nothing_the_same():
    found, reason = verdict(side(spread=0.1), side(spread=0.1))
    assert "inconclusive" == found
    assert "neither shows nor excludes a change" in reason


def test_one_process_a_side_is_inconclusive_and_says_why():
    found, reason = verdict(side(processes=1), side(2.0, processes=1))
    assert ("inconclusive", "one process a side does not show the spread between processes") == (found, reason)


def test_one_process_a_side_is_judged_where_the_noise_is_known():
    assert "slower" == verdict(side(processes=1), side(1.2, processes=1), known=Spread(1e-4, 9))[0]


def test_a_slower_clock_is_no_slower_kernel():
    found, reason = verdict(side(), side(1.05), cycles=(side(), side(1.0)))
    assert ("inconclusive", "5.0 % slower in time and +0.0 % in cycles: the SM clock was 4.8 % lower") == (
        found,
        reason,
    )
    assert "slower" == verdict(side(), side(1.05), cycles=(side(), side(1.05)))[0]
    assert "faster" == verdict(side(), side(0.95), cycles=(side(), side(0.95)))[0]


def test_a_difference_of_one_tick_is_not_called_a_change():
    tick = log(1.03)
    assert "slower" == verdict(side(spread=0), side(1.03, spread=0))[0]
    assert "inconclusive" == verdict(side(spread=0, resolution=tick), side(1.03, spread=0, resolution=tick))[0]


def test_what_alone_would_be_called_a_change_is_not_among_many_that_are_none():
    doubtful = Pair(side(spread=0.016, processes=13), side(1.02, spread=0.016, processes=13))
    quiet = [Pair(side(), side()) for _ in range(200)]
    assert "slower" == judged([doubtful])[0].verdict
    assert ["inconclusive"] == [one.verdict for one in judged([doubtful, *quiet])][:1]


def test_no_pairs_no_judgements():
    assert [] == judged([])


def test_widening_takes_back_what_a_control_makes_doubtful():
    (found,) = judged([Pair(side(), side(1.03))], widening=20.0)
    assert found.verdict not in CHANGED


def suite(kind, change, cases=150, processes=5, spread=0.006):
    rng = np.random.default_rng(17)
    for _ in range(cases):
        sides = []
        for factor in (1.0, change):
            strays = rng.standard_normal(processes) if kind == "normal" else (rng.random(processes) < 0.3) * 2.2
            levels = 1e-5 * factor * np.exp(spread * strays)
            sides.append(medians([level * np.exp(np.abs(rng.normal(0, 0.02, 15))) for level in levels]))
        yield Pair(*sides)


@pytest.mark.parametrize("kind", ["normal", "two states"])
def test_of_pairs_that_are_the_same_next_to_none_is_called_a_change(kind):
    found = judged(list(suite(kind, 1.0)))
    assert sum(one.verdict in CHANGED for one in found) <= 0.01 * len(found)


@pytest.mark.parametrize("kind", ["normal", "two states"])
def test_a_planted_five_per_cent_is_found_where_the_floor_allows_it(kind):
    found = [one for one in judged(list(suite(kind, 1.05))) if one.floor < 0.03]
    assert len(found) > 50
    assert sum(one.verdict == "slower" for one in found) >= 0.95 * len(found)


def clocked(a, b, clock_a, clock_b):
    """Both sides in cycles, whose processes ran at these logs of the SM clock."""
    sides = ((a, clock_a), (b, clock_b))
    return tuple(Medians(tuple(np.add(one.logs, clocks)), (0.0,) * len(one.logs)) for one, clocks in sides)


def test_cycles_of_a_noisy_clock_take_no_verdict_away():
    """The clock of one process was 10 % lower and its time was not: a memory-bound kernel, 9 % slower."""
    a, b = side(), side(1.09)
    cycles = clocked(a, b, [0.0] * 5, [0.0, 0.0, 0.0, 0.0, -0.1])
    assert ("slower", None) == verdict(a, b, cycles=cycles)


def test_clocks_that_are_the_same_to_the_bit_have_no_say():
    a, b = side(processes=3), side(1.1, processes=3)
    loud = Medians(a.logs, (0.02**2,) * 3), Medians(b.logs, (0.02**2,) * 3)
    assert "slower" == verdict(a, b, cycles=loud)[0]


def test_a_change_larger_than_that_of_the_clock_is_called():
    """The clock explains at most 1 % of 9 %, whatever the cycles' noise is."""
    a, b = side(), side(1.09)
    cycles = clocked(a, b, [0.0] * 5, [-0.01 + 0.001 * step for step in (-1, 0, 1, 0, 0)])
    loud = tuple(Medians(one.logs, (0.05**2,) * 5) for one in cycles)
    assert "slower" == verdict(a, b, cycles=loud)[0]


def test_what_the_clock_may_explain_must_show_in_cycles():
    """Cycles that lean the same way, within their error, confirm nothing where the clock was lower."""
    a, b = side(), side(1.04)
    cycles = clocked(a, b, [0.0] * 5, [-0.03 + 0.01 * step for step in (-1, 0.5, 0.5, -0.5, 0.5)])
    found, reason = verdict(a, b, cycles=cycles)
    assert "inconclusive" == found
    assert "4.0 % slower in time and +0.9 % in cycles: the SM clock was 3.0 % lower" == reason


def test_a_kernel_that_follows_its_clock_is_judged_by_its_quieter_cycles():
    """Its times vary with the clock by 4 %, in A/A measurement too; its cycles do not, and both sides ran alike."""
    strays = [0.02, -0.02, 0.01, -0.01, 0.0]
    a, b = (Medians(tuple(log(ratio) + step for step in strays), (0.0,) * 5) for ratio in (1.0, 1.04))
    cycles = clocked(a, b, [-step for step in strays], [-step for step in strays])
    quiet = Spread(0.0005**2, 8)
    found, reason = verdict(a, b, cycles=cycles, known=Spread(0.02**2, 8), known_cycles=quiet)
    assert ("slower", "in cycles +4.0 % (+3.9 to +4.1 %) at equal SM clocks") == (found, reason)
    assert "inconclusive" == verdict(a, b, cycles=cycles, known=Spread(0.02**2, 8))[0]
    moved = clocked(a, b, [-step for step in strays], [-0.04 - step for step in strays])
    assert "slower" != verdict(a, b, cycles=moved, known=Spread(0.02**2, 8), known_cycles=quiet)[0]


def test_an_interval_that_excludes_no_change_names_what_decided():
    """A loud case is below its floor; 8.9 % to 12 % is not proven among many cases."""
    quiet = [Pair(side(processes=3), side(processes=3)) for _ in range(200)]
    loud = Pair(side(1.0, spread=0.2, processes=3), side(0.6, spread=0.1, processes=3), known=Spread(0.14**2, 8))
    reason = "withheld: 40 % faster is below the noise floor of 82 %; about 7 processes a side would decide"
    assert reason == judged([loud, *quiet])[0].reason
    near = Pair(side(spread=0.008, processes=3), side(1.1, spread=0.008, processes=3))
    found = judged([near, *quiet])[0]
    words = r"10 % slower \(8\.\d % to 12 %\), not proven among 201 cases by 3 processes a side"
    assert re.fullmatch(f"{words}; about 4 processes a side would decide", found.reason)


def test_the_processes_that_a_reason_names_do_decide():
    near = Pair(side(spread=0.03, processes=3), side(1.1, spread=0.03, processes=3))
    found = judged([near])[0]
    count = int(re.search(r"about (\d+) processes", found.reason)[1])

    # Sides that keep their spread: `side` spaces its processes evenly, whose spread falls with their number.
    def kept(ratio, processes):
        one = side(ratio, 0.03, processes)
        scale = (side(ratio, 0.03, 3).total / one.total) ** 0.5
        return Medians(tuple(log(ratio) + scale * (step - log(ratio)) for step in one.logs), one.variances)

    fewer, enough = (judged([Pair(kept(1.0, n), kept(1.1, n))])[0].verdict for n in (count - 1, count))
    assert ("inconclusive", "slower") == (fewer, enough)


def test_three_processes_on_another_level_are_no_change_where_the_suite_shows_such_levels():
    """One process of another case is 6 % off: so may be all three of this one."""
    suspect = Pair(side(processes=3), side(1.05, processes=3))
    placed = Pair(Medians((0.0, 0.0, log(1.06)), (0.0,) * 3), side(processes=3))
    found, _ = judged([suspect, placed])
    assert "inconclusive" == found.verdict
    why = "processes of one side differ by 6.0 % here, and 3 a side do not exclude that: 13 do, or a noise floor"
    assert found.reason == f"5.0 % slower, but {why}"
    assert "slower" == judged([suspect, Pair(side(processes=3), side(processes=3))])[0].verdict


def test_a_noise_floor_that_no_longer_holds_proves_nothing():
    """Two of three cases differ by ten times what their floors say: so may the third."""
    known = Spread(0.001**2, 8)
    suspect = Pair(side(), side(1.05), known=known)
    loud = Pair(side(spread=0.04), side(spread=0.04), known=known)
    assert "slower" == judged([suspect])[0].verdict
    found = judged([suspect, loud, loud])[0]
    assert ("inconclusive", True) == (found.verdict, "processes of one side differ by 8.3 % here" in found.reason)
    assert "slower" == judged([suspect, loud, *[Pair(side(), side(), known=known)] * 99])[0].verdict


def test_a_loud_case_of_known_noise_is_no_witness_against_many_others():
    loud = Pair(side(spread=0.1, processes=3), side(spread=0.1, processes=3), known=Spread(0.1**2, 8))
    suspect, quiet = Pair(side(processes=3), side(1.05, processes=3)), Pair(side(processes=3), side(processes=3))
    assert "slower" == judged([suspect, loud, *[quiet] * 19])[0].verdict
    assert "inconclusive" == judged([suspect, loud, *[quiet] * 5])[0].verdict


def test_a_known_spread_and_thirteen_processes_exclude_unequal_placement():
    placed = Pair(Medians((0.0, 0.0, log(1.06)), (0.0,) * 3), side(processes=3))
    for processes, known in ((3, Spread(0.001**2, 8)), (13, None)):
        pair = Pair(side(processes=processes), side(1.05, processes=processes), known=known)
        assert "slower" == judged([pair, placed])[0].verdict


def test_more_looks_ask_for_more_evidence():
    pairs = [Pair(side(spread=0.016, processes=13), side(1.02, spread=0.016, processes=13))]
    (once,), (often,) = (
        judged(pairs, VerdictRules(discoveries=0.0001)),
        judged(pairs, VerdictRules(discoveries=0.0001, looks=4)),
    )
    assert "slower" == once.verdict
    assert often.verdict not in CHANGED


def test_a_shift_is_divided_out_and_its_error_added():
    (found,) = judged([Pair(side(), side(1.03))], shifts=[MachineShift(log(1.03), 0.001)])
    assert "same" == found.verdict
    assert (0.0, 1.03) == pytest.approx((found.estimate.log, found.shift.ratio), abs=1e-9)
    assert found.estimate.error > 0.001


def test_pooled_processes_make_the_floor_where_none_is_stored():
    pair = Pair(side(spread=0.002), side(spread=0.002))
    (own,), (stored,) = judged([pair]), judged([Pair(pair.a, pair.b, None, pooled(pair.a, pair.b))])
    assert own.floor == stored.floor
