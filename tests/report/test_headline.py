"""The run at a glance."""

from dataclasses import replace
from pathlib import Path

from prism_bench.analysis.gate.budgets import BudgetVerdict, Promises
from prism_bench.analysis.run_analysis import read
from prism_bench.report.headline import chips, headline, tiles
from prism_bench.spec.metric import Budget
from tests.report.peered import peered_record
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


def test_the_headline_counts_what_can_be_trusted():
    assert headline(read(record_of())) == "Nothing was measured."
    assert headline(read(gpu_record())) == "38 of 42 cases verified and timed."
    assert headline(read(cpu_record())) == "All 12 cases verified and timed on the NumPy reference."
    assert headline(read(record_of(case_result("k")))) == "The one case verified."


def test_what_another_tool_measured_is_not_called_verified():
    case = case_result("k", times={"wall_time": 1e-3}, family="imported")
    found = read(record_of(case, backend="asv"))
    assert headline(found) == "The one case timed by asv, and not verified here."


def test_chips_name_every_kind_of_finding():
    words = [text for text, _, _ in chips(read(gpu_record(complete=False)))]
    assert words == ["1 crashed", "1 wrong", "1 invalid", "run cut short", "1 throttled", "1 skipped"]


def test_a_tile_without_a_number_says_what_is_missing():
    assert all(tile.value == "–" and tile.words for tile in tiles(read(record_of())))
    met = BudgetVerdict("matmul[n=256]", Budget("cold_time", at_most=1e-5), 1e-6, "met")
    assert [tile.value for tile in tiles(replace(read(gpu_record()), budgets=(met,) * 7))][-1] == "7/7"


def test_a_promise_on_a_case_that_did_not_run_is_unmeasured_among_all_that_is_promised():
    gone = Budget("cold_time", at_most=1e-5)
    reading = replace(read(cpu_record()), promises=Promises(path=Path("h200.toml"), budgets={"gone[n=1]": (gone,)}))
    (absent,) = reading.every_budget
    assert ("gone[n=1]", "unmeasured", "h200.toml") == (absent.case, absent.verdict, absent.source)
    assert "none could be judged" == tiles(reading)[-1].words
    assert ("0/1", "met; 1 unmeasured") == tuple(vars(tiles(reading, reading.every_budget)[-1]).values())[1:]


def test_the_tile_about_peers_counts_cases_and_has_no_mean():
    (tile,) = [one for one in tiles(read(peered_record())) if one.title == "Slower than a peer"]
    assert (tile.value, tile.words) == ("6 of 12", "cases at S1 and S2, against the best peer of each")
    assert not [one for one in tiles(read(gpu_record())) if "mean" in one.words or one.value.endswith("x")]
