"""Comparisons across boards: withheld where the factor is not known, as sure as any where it is."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from prism_bench.analysis.boards import BoardFactor, BoardModel
from prism_bench.analysis.compare.comparison import compare, comparison_findings
from prism_bench.record.measurement import Measurement
from tests.analysis.boards.test_factors import boards_seen
from tests.report.synthetic import MACHINE, case_result, record_of

CASES, PROCESSES = 40, 5
SESSION, NOISE = 0.003, 0.004


class Planted:
    """Boards whose factors come from a simulated history; made like `KnownBoards`."""

    def __init__(self, model):
        self.model = model

    def factor(self, metric, case, first, second):
        return self.model.factor(case.partition("[")[0], first, second)


def record(board, effect, response, rng, code, changes=None, boards=None):
    """A record of one board; or of several, if `boards` has each case's."""
    own = rng.gauss(0, SESSION)
    cases = []
    for c in range(CASES):
        where = boards[c] if boards else board
        level = 1e-4 * (c + 1) * 2.718281828 ** (effect[where] + response[where, c] + own + rng.gauss(0, NOISE))
        level *= (changes or {}).get(c, 1.0)
        processes = tuple(tuple(level * rng.gauss(1, 0.002) for _ in range(9)) for _ in range(PROCESSES))
        measured = Measurement("cold_time", "kernel", processes)
        found = replace(case_result(f"k{c}", code={"sass": f"{c}{code(c)}"}), measurements=(measured,))
        cases.append(replace(found, board=f"GPU-{where}") if boards else found)
    machine = {name: value for name, value in MACHINE.items() if name != "uuid"}
    return record_of(*cases, machine=machine if boards else {**machine, "uuid": f"GPU-{board}"})


def compared(seed, effects=(0.0, 0.08), changes=None, boards=True, code=lambda case: "new", runs=8):
    """B on the second board with all code new, against A on the first one."""
    seen, response = boards_seen(effects, runs=runs, seed=seed, cases=CASES)
    rng = random.Random(1000 + seed)
    a = record(0, effects, response, rng, lambda case: "old")
    b = record(1, effects, response, rng, code, changes)
    return compare(a, b, boards=Planted(BoardModel(seen)) if boards else None)


def test_no_change_is_called_across_boards_more_often_than_promised():
    """The share of false discoveries that the rules allow is 0.2 %; of cases on two boards at most 0.5 % are called."""
    verdicts = Counter(one.verdict for seed in range(25) for one in compared(seed).cases)
    assert 25 * CASES == verdicts.total()
    assert verdicts["slower"] + verdicts["faster"] <= 0.005 * 25 * CASES, verdicts


def test_a_real_change_of_five_percent_is_found_where_the_factor_is_known():
    slower, found = dict.fromkeys(range(0, CASES, 4), 1.05), Counter()
    for seed in range(10):
        result = compared(seed, changes=slower, runs=20)
        found.update((one.verdict, one.case.partition("[")[0] in {f"k{c}" for c in slower}) for one in result.cases)
    assert found["slower", True] >= 0.8 * 10 * len(slower), found
    assert found["slower", False] + found["faster", False] <= 0.005 * 10 * CASES


def test_without_a_factor_verdicts_are_withheld_with_the_reason():
    for boards, words in ((False, "no history of these boards"), (True, "two runs")):
        result = compared(1, changes={3: 1.05}, boards=boards, runs=1)
        assert {"inconclusive"} == {one.verdict for one in result.cases}
        assert all("withheld: measured on two boards, GPU-0 and GPU-1" in one.reason for one in result.cases)
        assert all(words in one.reason for one in result.cases)
        assert any(f"{CASES} cases were measured on board GPU-0 and on board GPU-1" in note for note in result.notes)
        assert not [one for one in comparison_findings(result) if one.gravity == "bad"]


def test_what_no_two_boards_differ_by_is_called_without_a_factor():
    result = compared(1, changes={3: 3.0}, boards=False)
    assert ["slower"] == [one.verdict for one in result.cases if one.case.startswith("k3[")]


def test_enough_cases_of_one_code_are_the_factor_themselves():
    result = compared(2, boards=False, changes={3: 1.1}, code=lambda case: "new" if case < 6 else "old")
    assert "slower" == next(one.verdict for one in result.cases if one.case.startswith("k3["))
    assert result.control.used and 1.08 == pytest.approx(result.control.fit.factor, abs=0.02)
    assert 1 == sum(one.verdict in ("slower", "faster") for one in result.cases)


def test_cases_of_one_board_are_judged_by_themselves_in_records_of_several():
    """Every fourth case moved to another board, whose 8 % nobody knows: those are withheld, the others are the same."""
    effects = (0.0, 0.0, 0.08)
    response, rng = {(b, c): 0.0 for b in range(3) for c in range(CASES)}, random.Random(5)
    a = record(0, effects, response, rng, lambda case: "old", boards=[0] * CASES)
    b = record(0, effects, response, rng, lambda case: "new" if case % 4 == 0 else "old",
               boards=[2 if c % 4 == 0 else 0 for c in range(CASES)])  # fmt: skip
    found = {one.case.partition("[")[0]: one for one in compare(a, b).cases}
    moved = [found[f"k{c}"] for c in range(0, CASES, 4)]
    assert {"inconclusive"} == {one.verdict for one in moved}
    assert all("GPU-0 and GPU-2" in one.reason for one in moved)
    assert {"same"} == {one.verdict for name, one in found.items() if int(name[1:]) % 4}


def test_a_factor_that_is_known_says_how_well():
    factor = BoardFactor(log=0.08, error=0.002, freedom=20.0)
    assert factor.known and 0.007 < factor.reach < 0.009
    assert factor.interval()[0] < 1.0833 < factor.interval()[1]
