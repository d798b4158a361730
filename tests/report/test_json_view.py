"""`--json`: the encoded record with derived values, plain JSON without NaN."""

import json

import pytest

from prism_bench.analysis.run_analysis import read
from prism_bench.record.run_record import decode, encode
from prism_bench.report.plain import view
from tests.report.peered import peered_record
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


@pytest.mark.parametrize("record", [gpu_record(), cpu_record(), record_of(case_result("k"))])
def test_the_view_is_the_record_and_more(record):
    plain = json.loads(json.dumps(view(read(record)), allow_nan=False))
    assert encode(decode(plain, "view")) == encode(decode(json.loads(json.dumps(encode(record))), "record"))
    assert {"limits", "findings"} <= set(plain)
    assert all("derived" in case for case in plain["cases"])


def test_derived_values_follow_the_planted_ones():
    times = {"cold_time": 1e-3, "cold_time@peer:torch": 2e-3}
    derived = view(read(record_of(case_result("k", times=times, bytes=4_000_000_000))))["cases"][0]["derived"]
    assert derived["bandwidth"] == pytest.approx(4e12)
    assert (derived["best_peer"], derived["peer_ratio"]) == ("torch", pytest.approx(2))
    assert derived["times"] == {"cold_time": {"median": pytest.approx(1e-3), "spread": 0.0}}
    assert derived["bandwidth_share"] is None
    assert derived["throttled"] == 0


def test_the_headline_is_a_list_of_rows_and_each_case_lists_its_peers():
    plain = json.loads(json.dumps(view(read(peered_record())), allow_nan=False))
    assert [(row["peers"], row["cases"], row["below"]) for row in plain["headline"] if row["labels"] == ["S0"]] == [
        ("library kernel", 4, 2), ("compiled", 3, 1), ("eager chain", 3, 0), ("best of all", 6, 3)
    ]  # fmt: skip
    by_case = {case["name"]: case["derived"]["peers"] for case in plain["cases"]}
    compiled, *_ = by_case["softmax[n=1000]"]
    assert (compiled["peer"], compiled["kind"], compiled["counts"]) == ("torch_compiled", "compiled", True)
    assert compiled["unstable"] == pytest.approx([3.72e-6, 18.4e-6])
    (absent,) = by_case["attention[n=100]"]
    assert absent["seconds"] is None and "peers-strong" in absent["reason"]
    assert view(read(record_of()))["headline"] == []
