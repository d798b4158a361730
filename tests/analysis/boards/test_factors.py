"""Factors between boards: found as planted, with errors that hold, and withheld where nothing shows them."""

import random
from math import log

import numpy
import pytest

from prism_bench.analysis.boards import BoardAgreement, BoardModel, Observations, agreement, observed, several_boards
from tests.analysis.trend.histories import history, row

SESSION, CASE, NOISE = 0.003, 0.004, 0.004  # standard deviations of logs


def boards_seen(effects, runs=6, cases=40, seed=0, shared=None, session=SESSION, case_scatter=CASE, noise=None):
    """What boards with these effects measured in so many runs each; of `shared`, only those cases on all of them.

    `noise` has that of single cases where it is not the usual one.
    """
    rng = random.Random(seed)
    rows, records = [], []
    levels = [rng.uniform(-12, -7) for _ in range(cases)]
    response = {(b, c): rng.gauss(0, case_scatter) for b in range(len(effects)) for c in range(cases)}
    for run in range(runs):
        for board, effect in enumerate(effects):
            own, number = rng.gauss(0, session), len(records)
            records.append(run)
            for c in range(cases):
                if shared is None or c < shared or c % len(effects) == board:
                    value = levels[c] + effect + response[board, c] + own + rng.gauss(0, (noise or {}).get(c, NOISE))
                    rows.append((c, number, board, value))
    units, sessions, boards, logs = (numpy.array(column) for column in zip(*rows, strict=True))
    names = tuple(f"GPU-{board}" for board in range(len(effects)))
    return Observations(
        names, tuple(f"k{c}" for c in range(cases)), tuple(records), units, sessions, boards, logs
    ), response


def test_a_planted_factor_is_found_within_its_interval_as_often_as_promised():
    inside, widths = 0, []
    for seed in range(60):
        seen, _ = boards_seen([0.0, 0.08], seed=seed, cases=25)
        found = BoardModel(seen).pair("GPU-0", "GPU-1").factor
        assert found.known and (6, 6, 25) == (*found.runs, found.units)
        low, high = found.interval(0.95)
        inside += low <= numpy.exp(0.08) <= high
        widths.append(high - low)
    assert inside >= 54, "an interval of 95 % holds in 60 trials at least 54 times, but for one chance in a hundred"
    assert 0.002 < numpy.median(widths) < 0.03


def test_a_case_that_both_boards_measured_has_its_own_factor():
    seen, response = boards_seen([0.0, 0.05], case_scatter=0.03, runs=12)
    model = BoardModel(seen)
    usual = model.pair("GPU-0", "GPU-1").factor
    for case in range(40):
        own = model.factor(f"k{case}", "GPU-0", "GPU-1")
        true = 0.05 + response[1, case] - response[0, case]
        assert abs(own.log - true) < own.reach and own.error < usual.scatter / 3
    other = model.factor("of another board alone", "GPU-0", "GPU-1")
    assert usual.log == other.log and other.error > usual.scatter


def test_the_factor_back_is_the_inverse():
    model = BoardModel(boards_seen([0.0, 0.08])[0])
    there, back = model.pair("GPU-0", "GPU-1").factor, model.pair("GPU-1", "GPU-0").factor
    assert there.log == pytest.approx(-back.log) and there.error == pytest.approx(back.error)
    assert 1.0 == model.factor("k1", "GPU-1", "GPU-1").ratio


@pytest.mark.parametrize(
    ("options", "words"),
    [({"runs": 1}, "two runs"), ({"shared": 2}, "fewer than 3 cases"), ({"session": 0.3, "runs": 2}, "off by")],
)
def test_a_factor_that_nothing_shows_well_enough_is_not_known(options, words):
    model = BoardModel(boards_seen([0.0, 0.08], **options)[0])
    found = model.factor("k1", "GPU-0", "GPU-1")
    assert not found.known and words in found.reason
    assert (0.0, True) == (found.log, found.reach > 0.3)
    assert "no trusted time of board GPU-9" in model.factor("k1", "GPU-0", "GPU-9").reason


def test_few_odd_cases_do_not_move_a_factor():
    seen, _ = boards_seen([0.0, 0.08])
    logs = seen.logs.copy()
    logs[(seen.boards == 1) & (seen.units < 4)] += 0.5
    odd = Observations(seen.names, seen.cases, seen.records, seen.units, seen.sessions, seen.boards, logs)
    plain, moved = (BoardModel(one).pair("GPU-0", "GPU-1").factor.log for one in (seen, odd))
    assert abs(plain - moved) < 0.004


def test_runs_in_which_all_code_changed_do_not_hide_what_runs_differ_by():
    """Sessions without a common unit show nothing of each other; those with one do."""
    seen, _ = boards_seen([0.0], runs=8, session=0.02)
    halves = numpy.where(seen.sessions < 4, seen.units, seen.units + 40)
    apart = Observations(seen.names, seen.cases * 2, seen.records, halves, seen.sessions, seen.boards, seen.logs)
    runs, whole = BoardModel(apart).runs, BoardModel(seen).runs
    assert (6, 7) == (runs.freedom, whole.freedom)
    assert 0.005 < runs.sigma < 0.04
    alone = Observations(seen.names, seen.cases * 8, seen.records, seen.units + 40 * seen.sessions, seen.sessions,
                         seen.boards, seen.logs)  # fmt: skip
    assert 0 == BoardModel(alone).runs.freedom


def test_one_code_on_eight_percent_apart_boards_is_called_changed_no_more_often_than_promised():
    total = sum((agreement(boards_seen([0.0, 0.08, -0.05, 0.22], seed=seed, runs=5, cases=20)[0]) for seed in range(4)),
                start=agreement(boards_seen([0.0])[0]))  # fmt: skip
    assert total.given > 4000 and 0 == total.withheld
    assert total.rate <= 0.005
    assert total.plain_rate > 0.5, "without factors nearly all are called changed"


def test_cases_that_differ_from_run_to_run_call_no_change_and_hide_none():
    """Launches of a few microseconds are noisier than others: what a board showed of them is worth less."""
    noise = {case: 0.03 if case < 5 else 0.001 for case in range(80)}

    def seen(runs, seed=0):
        return boards_seen([0.0, 0.02], runs, 80, seed, session=0.0005, noise=noise)[0]

    total = sum((agreement(seen(3, seed)) for seed in range(8)), start=BoardAgreement())
    assert total.given == 8 * 2 * 3 * 80
    assert total.rate <= 0.005
    runs = BoardModel(seen(8)).runs
    assert all(0.015 < runs.noise_of(unit) < 0.06 for unit in range(5))
    assert numpy.mean([runs.noise_of(unit) == runs.noise for unit in range(5, 80)]) > 0.85
    assert runs.noise < 0.0015


def test_agreement_is_withheld_where_the_factors_are():
    found = agreement(boards_seen([0.0, 0.08], runs=1)[0])
    assert (0, None) == (found.given, found.rate)


def test_observations_are_of_known_code_and_boards_and_hold_the_anchors_of_merged_records():
    boards = ["GPU-a", "GPU-b"]
    anchors = {"GPU-a": {"null[n=1]": {"cold_time": 1e-6}}, "GPU-b": {"null[n=1]": {"cold_time": 2e-6}}}
    seen = observed(
        history(
            4,
            row([1e-3] * 4, board=lambda night: boards[night % 2]),
            row([2e-3] * 4, case="unknown[n=1]", code=""),
            row([2e-3] * 4, case="doubtful[n=1]", doubt="throttled"),
            row([1.5e-6] * 4, case="null[n=1]", board=""),
            facts=lambda night: {"device": "GPU-a+GPU-b", "anchors": anchors if night == 3 else {}},
        ),
        "cold_time",
    )
    assert ({"k[n=1]", "null[n=1]"}, set(boards)) == (set(seen.cases), set(seen.names))
    assert 6 == len(seen.logs)
    of_null = [value for unit, value in zip(seen.units, seen.logs, strict=True) if seen.cases[unit] == "null[n=1]"]
    assert [log(1e-6), log(2e-6)] == of_null


def test_other_software_makes_another_unit_and_no_session_of_it_compares():
    seen = observed(
        history(4, row([1e-3] * 4), facts=lambda night: {"software": {"driver": str(night // 2), "numpy": str(night)}}),
        "cold_time",
    )
    assert [0, 0, 1, 1] == seen.units.tolist()


def test_one_board_alone_needs_no_factors():
    assert not several_boards(history(3, row([1e-3] * 3)).records)
    assert several_boards(history(3, row([1e-3] * 3), facts=lambda night: {"device": f"GPU-{night // 2}"}).records)
