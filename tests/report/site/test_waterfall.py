"""Where the saved time went, bar by bar; bytes where there are no times."""

import pytest

from prism_bench.extensions.fusion.report.charts import waterfall
from tests.extensions.fusion.benefit.toy_chain import toy_ledger


def test_causes_lead_from_separate_launches_to_the_fused_stage():
    found = waterfall(toy_ledger())
    names = [bar["name"] for bar in found["bars"]]
    assert ("s", "separate launches", ["fewer launches", "fewer bytes", "unexplained", "full"]) == (
        found["unit"], names[0], names[-4:]
    )  # fmt: skip
    first, *causes, last = [found["bars"][0], *found["bars"][-4:]]
    assert [first["end"], *(bar["end"] for bar in causes[:-1])] == pytest.approx([bar["start"] for bar in causes])
    assert last["end"] == pytest.approx(causes[-1]["end"])
    assert "3.00x" in last["words"]


def test_without_times_the_bytes_of_the_plans_are_shown():
    found = waterfall(toy_ledger(None))
    assert "B" == found["unit"]
    assert found["bars"][0]["words"].endswith("2 launches")
    assert found["bars"][0]["end"] > found["bars"][-1]["end"]
