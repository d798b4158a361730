"""The ledger of fusion for terminals, programs and as a picture."""

import io
import json
import struct
from dataclasses import replace

import pytest
from rich.console import Console

from prism_bench.errors import ResultsError
from prism_bench.extensions.fusion.benefit import Sources, compared
from prism_bench.extensions.fusion.benefit.saving import Speedup
from prism_bench.extensions.fusion.report.charts import Moved, Times, fusion_picture
from prism_bench.extensions.fusion.report.terminal import (
    Footnotes,
    fusion_json,
    fusion_view,
    percent,
    ratio_words,
    signed,
    verdict,
)
from prism_bench.record.measurement import Measurement
from tests.extensions.fusion.benefit.toy_chain import (
    APART,
    BEFORE_TIMES,
    MEASURED,
    ROWS,
    SERVED,
    TOY,
    latencies,
    record,
    result,
    toy_ledger,
)


def shown(*ledgers, sources=None, width=160):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(fusion_view(ledgers, compared(ledgers), sources or Sources(MEASURED)))
    return console.export_text()


def line(text, start):
    return next(one for one in text.splitlines() if one.strip().startswith(start)).split()


def test_each_stage_has_a_line_of_costs():
    costs = line(shown(toy_ledger()), "baseline")
    assert ["baseline", "2", "16.0", "kB"] == costs[:4]
    assert ["12.0", "us", "8.00", "us", "20.0", "us", "20.0", "us", "12.0", "us"] == costs[-12:-2]
    assert "1.0e-06" == costs[-1]


def test_fused_stages_have_a_line_of_gains():
    gains = line(shown(toy_ledger()).split("times faster")[1], "full")
    assert "full 3.00x (3.00 to 3.00) 2.67x (2.67 to 2.67) 6.67x (6.67 to 6.67) - passed" == " ".join(gains)


def test_the_saving_is_told_in_its_parts():
    words = " ".join(line(shown(toy_ledger()).split("by launches")[1], "full"))
    assert words.startswith("full 8.00 us 1.00 us 8.00 ns [")
    assert words.endswith("] (model) 6.99 us 8.00 ns 0.2 %")


def test_nothing_is_cut_off_where_the_terminal_is_narrow():
    assert "…" not in shown(toy_ledger(), width=100)


def test_what_a_host_waits_for_has_a_table_where_items_were_timed():
    served = toy_ledger(chain=SERVED, latencies=latencies(*ROWS))
    text = shown(served).split("from request to answer")[1]
    words = " ".join(line(text, "persistent"))
    assert "persistent persistent 0 6.00 us 5.40 us to 6.60 us 12.0 us 3.00 us 1.50x 3.0e-07" == words
    assert "from request to answer" not in shown(toy_ledger())


def test_the_library_call_is_named():
    times = BEFORE_TIMES | {"cold_time@peer:torch": 10e-6}
    assert "library: torch 10.0 us, cold" in shown(toy_ledger(record(result(times=times))))
    assert "library: [" in shown(toy_ledger())


def test_of_an_unstable_library_call_the_fastest_process_counts():
    known = result(times=BEFORE_TIMES | {"cold_time@peer:torch": 10e-6})
    apart = Measurement("cold_time", "peer:torch", ((20e-6,) * 3, (8e-6,) * 3))
    kept = [apart if one.subject == "peer:torch" else one for one in known.measurements]
    assert "library: torch~ 8.00 us, cold" in shown(toy_ledger(record(replace(known, measurements=tuple(kept)))))


def test_the_head_says_where_figures_come_from():
    assert "NVIDIA H200, 2026-11-20T22:14:05: one more launch costs 1.00 us at least" in shown(toy_ledger())
    cut = record(complete=False)
    assert "the run was cut short" in shown(toy_ledger(cut), sources=Sources(cut))
    assert "no times: no GPU" in shown(toy_ledger(None), sources=Sources(missing="no GPU"))


def test_every_gap_points_at_its_reason_once():
    text = shown(toy_ledger(record(result(times=BEFORE_TIMES))))
    assert 1 == text.count("the record does not hold this case")


def test_published_and_ours_stand_under_each_other():
    text = shown(toy_ledger())
    assert ["Transfer", "entropy,", "published", "1.80", "ms", "900", "us", "250", "us", "<", "400", "us"] == line(
        text, "Transfer entropy, published"
    )
    assert "met" == line(text, "ours, transfer_entropy S0")[-1]
    assert "no problem size given" in text


def test_notes_are_told():
    assert "note: toy_chain:large[n=7]: separate launches are not timed" in shown(toy_ledger(chain=APART))


def test_json_is_plain_and_holds_all_of_it():
    ledgers = [toy_ledger(), toy_ledger(None, label="S1")]
    plain = json.loads(json.dumps(fusion_json(ledgers, compared(ledgers), Sources(MEASURED)), allow_nan=False))
    assert {"source", "prices", "chains", "published", "rule"} == set(plain)
    full = plain["chains"][0]["rows"][1]
    assert ("full", True, 1) == (full["stage"], full["passed"], full["plan"]["launches"])
    assert 3 == pytest.approx(full["speedups"]["cold_time"]["ratio"])
    assert 1e-6 == plain["prices"]["launch"]
    assert 2.0 == plain["rule"]["speedup_at_least"]
    assert plain["published"]["rows"][0]["published"]["name"] == "Transfer entropy"


def size(png):
    assert b"\x89PNG" == png[:4]
    return struct.unpack(">II", png[16:24])


def test_the_picture_shows_what_is_launched():
    """An item that is served has no bar, and no place for one."""
    served, plain = (fusion_picture([toy_ledger(chain=chain)]) for chain in (SERVED, TOY))
    assert size(served) == size(plain)


def test_the_picture_grows_with_the_panels_and_is_the_same_twice():
    one, three = fusion_picture([toy_ledger()]), fusion_picture([toy_ledger()] * 3)
    assert size(one)[0] == size(three)[0]
    assert size(one)[1] < size(three)[1]
    assert one == fusion_picture([toy_ledger()])


def test_a_stage_without_a_time_changes_nothing_but_its_own_bar():
    slower = record(result(times=BEFORE_TIMES), result("full", times={"cold_time": 9e-6}))
    assert fusion_picture([toy_ledger()]) != fusion_picture([toy_ledger(slower)])


def test_without_times_bars_are_of_bytes():
    bare = fusion_picture([toy_ledger(None)])
    assert bare == fusion_picture([toy_ledger(record(result(times=BEFORE_TIMES)))])
    assert bare != fusion_picture([toy_ledger()])
    panel = Moved().panel(toy_ledger(None))
    assert "kB per evaluation, by the plans" == panel.axis
    before, after = panel.bars
    assert ("16.0 kB\n1 temporary, 4.00 kB", "8.00 kB, -50 %\nno temporaries") == (before.words, after.words)
    assert (((16.0, "before"),), ((8.0, "after"),)) == (before.lengths, after.lengths)


def test_bars_of_times_have_the_hosts_behind_them():
    panel = Times().panel(toy_ledger())
    before, after = panel.bars
    assert "µs per evaluation" == panel.axis
    assert panel.under_title.endswith("published (no size): 1800, 900, 250 µs")
    assert [("pale", 20), ("before", 12)] == [(colour, pytest.approx(length)) for length, colour in before.lengths]
    assert "12 µs\n20 µs issued, 16.0 kB" == before.words
    assert ["after"] == [colour for _, colour in after.lengths]


def test_bytes_are_those_that_all_stages_know():
    counted = {"tool": "ncu", "values": {f"dram_{way}_bytes": {"value": 5e5} for way in ("read", "write")}}
    both = [result(profile=counted), result("full", profile=counted)]
    assert "MB per evaluation, counted in memory" == Moved().panel(toy_ledger(record(*both))).axis
    assert "kB per evaluation, by the plans" == Moved().panel(toy_ledger(record(both[0], result("full")))).axis


def test_a_chain_of_which_nothing_is_fused_is_not_drawn():
    ledger = toy_ledger()
    with pytest.raises(ResultsError, match="no chain has a baseline and a fused stage: there is nothing to draw"):
        fusion_picture([replace(ledger, rows=ledger.rows[:1])])


def test_words():
    assert ["2.82x (2.79 to 2.85)", "2.82x", "-"] == [
        ratio_words(one) for one in (Speedup(2.82, 2.79, 2.85), Speedup(2.82), Speedup())
    ]
    assert ["1.50 us", "-1.50 us", "-"] == [signed(one) for one in (1.5e-6, -1.5e-6, None)]
    assert ["50 %", "<0.1 %"] == [percent(one) for one in (0.5, 1e-5)]
    assert ["passed", "failed", "unmeasured"] == [verdict(one, "failed") for one in (True, False, None)]
    assert ["met", "missed"] == [verdict(one, "missed") for one in (True, False)]


def test_footnotes_are_numbered_as_they_are_met():
    notes = Footnotes()
    assert ["[1]", "[2]", "[1]", "-"] == [notes.mark(one) for one in ("a", "b", "a", None)]
    assert [(1, "a"), (2, "b")] == list(notes.numbered())
