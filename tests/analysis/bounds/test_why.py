"""Why a case takes its time, from planted counters, times and machine code."""

from dataclasses import replace

import pytest

from prism_bench.analysis.bounds.profiles import Counted
from prism_bench.analysis.bounds.why import Fix, code_against, why, why_in
from prism_bench.io.documents import json_line
from prism_bench.measure.plausibility import Limits
from prism_bench.record.run_record import RunRecord
from prism_bench.report.plain import why_json
from tests.report.synthetic import case_result

LIMITS = Limits(floors={"cold_time": 4e-6, "hot_time": 1e-6}, ceilings={"bandwidth": 4e12, "fp32": 60e12})
GB = 1 << 30


def timed(seconds=1e-3, peer=None, **facts):
    """A case that moves 2 GB in `seconds`, half a millisecond at least."""
    times = {"cold_time": seconds, **({"cold_time@peer:lib": peer} if peer else {})}
    return case_result("k", "S1", times=times, bytes=2_000_000_000, **facts)


def counted(case, **values):
    """The case as a profile of a device with a small L2 has it."""
    profile = {"tool": "ncu", "values": {name: {"value": one, "unit": "1"} for name, one in values.items()}}
    found = replace(case, profile=profile)
    record = RunRecord("2026-01-01T00:00:00", "cuda", {"id": "gpu", "l2_bytes": 1 << 20}, {}, {}, (found,))
    return Counted(found, record, "profile.json.gz")


def test_three_counters_show_the_bottleneck_and_the_record_they_are_from():
    seen = {"profiler_duration": 1e-3, "dram_share": 0.9, "l2_hit_rate": 0.02, "occupancy": 0.5, "issue_share": 0.3}
    found = why(timed(), LIMITS, counted(timed(), **seen))
    assert ("dram", "counters", "profile.json.gz") == (found.bottleneck, found.basis, found.counted_in)
    assert found.verdict.startswith("bound by DRAM: DRAM 90 %")
    assert [("dram_share", "90 %"), ("l2_hit_rate", "2.0 %"), ("occupancy", "50 %")] == [
        (one.name, one.text) for one in found.counters
    ]


def test_a_counter_that_is_missing_or_impossible_is_replaced_by_another():
    seen = {"profiler_duration": 1e-3, "dram_share": 0.9, "l2_hit_rate": 2.5, "issue_share": 0.3, "l2_share": 0.4}
    found = why(timed(), LIMITS, counted(timed(), **seen))
    assert ["dram_share", "l2_share", "issue_share"] == [one.name for one in found.counters]


def test_distance_to_the_roof_and_what_reaching_it_would_bring():
    found = why(timed(), LIMITS)
    assert ("memory", 5e-4, 0.5) == (found.roof.limit, pytest.approx(found.roof.least), pytest.approx(found.roof.share))
    assert [("reach the memory limit that this run measured", pytest.approx(5e-4))] == [
        (fix.words, fix.seconds) for fix in found.fixes
    ]
    assert not why(timed(5.05e-4), LIMITS).fixes, "nothing is left to win"


def test_without_counters_the_time_shows_a_bottleneck_only_near_a_limit():
    near, far = why(timed(6e-4), LIMITS), why(timed(5e-3), LIMITS)
    assert ("memory", "memory-bound: it reaches 83 % of the memory limit") == (near.bottleneck, near.verdict)
    assert far.bottleneck is None and "no limit is near" in far.verdict
    assert "prism-bench profile 'k[n=100]'" in far.notes[0]


def test_moving_fewer_bytes_is_a_fix_where_dram_is_busy_and_moved_more():
    seen = {"profiler_duration": 1e-3, "dram_share": 0.9, "dram_read_bytes": 3e9, "dram_write_bytes": 1e9}
    found = why(timed(1.2e-3), LIMITS, counted(timed(), **seen))
    fix = next(one for one in found.fixes if "compulsory" in one.words)
    assert fix.seconds == pytest.approx(6e-4)
    idle = why(timed(1.2e-3), LIMITS, counted(timed(), **{**seen, "dram_share": 0.2}))
    assert not any("compulsory" in one.words for one in idle.fixes)


def test_several_launches_cost_their_measured_overhead():
    found = why(timed(code={"launches": 101}), LIMITS)
    assert Fix("one launch instead of 101", pytest.approx(9e-4)) in found.fixes
    for few in (1, 3):
        fixes = why(timed(code={"launches": few}), LIMITS).fixes
        assert not any("launch instead" in one.words for one in fixes), "it would bring less than 2 %"


def test_a_faster_peer_shows_what_can_be_reached():
    assert Fix("do as the peer lib does", pytest.approx(7e-4)) in why(timed(peer=7e-4), LIMITS).fixes
    assert not any("peer" in one.words for one in why(timed(peer=9.9e-4), LIMITS).fixes)


def test_a_limit_that_was_not_measured_is_named():
    found = why(timed(flops=10, arithmetic="fp64"), LIMITS)
    assert found.roof is None
    assert any(note.endswith("the run measured no fp64 ceiling") for note in found.notes)


def test_counters_of_other_code_and_spills_are_noted():
    case = timed(code={"sass": "new", "spill_bytes": 16})
    profiled = counted(timed(code={"sass": "old"}), profiler_duration=1e-3, dram_share=0.9)
    notes = why(case, LIMITS, profiled).notes
    assert "the counters are of other machine code than this run's" in notes
    assert "registers are spilled: 16 bytes a thread" in notes


def test_the_hottest_lines_come_first_with_their_share_of_all_samples():
    seen = counted(timed(), profiler_duration=1e-3, dram_share=0.9)
    lines = [{"file": "k.cu", "line": n, "samples": samples, "text": f"x{n}", "stall": "long scoreboard"}
             for n, samples in ((4, 10), (9, 60), (12, 20), (13, 10))]  # fmt: skip
    seen = replace(seen, case=replace(seen.case, profile={**seen.case.profile, "lines": lines}))
    found = why(timed(), LIMITS, seen).lines
    assert [(9, 0.6), (12, 0.2), (4, 0.1)] == [(one.line, pytest.approx(one.share)) for one in found]


def test_lines_that_ncu_did_not_print_are_a_note():
    seen = counted(timed(), profiler_duration=1e-3, dram_share=0.9)
    profile = {**seen.case.profile, "lines": [], "no_lines": "p.csv: no page of source lines"}
    seen = replace(seen, case=replace(seen.case, profile=profile))
    found = why(timed(), LIMITS, seen)
    assert (() == found.lines) and "no page of source lines" in " ".join(found.notes)


def test_code_against_an_earlier_run():
    same = {"sass": "a", "registers": 32}
    assert "same" == code_against(timed(code=same), timed(code=same), "before").state
    found = code_against(timed(code=same), timed(code={"sass": "b", "registers": 40}), "before", lambda _: {})
    assert ("changed", {"registers": (32, 40)}) == (found.state, found.facts)
    assert "does not hold the machine code of the earlier run and of this run" in found.note
    unknown = code_against(timed(), timed(code=same), "before")
    assert ("unknown", "the record of the earlier run knows no machine code") == (unknown.state, unknown.note)


def test_a_record_explains_its_case_and_the_account_is_plain():
    case = timed(peer=7e-4, code={"sass": "a"})
    record = RunRecord("2026-01-01T00:00:00", "cuda", {"id": "gpu"}, {}, {}, (case,))
    plain = why_json(why_in(record, case, {}, ("2025-12-31 0123abcd", timed(code={"sass": "a"}))))
    assert ("same", "2025-12-31 0123abcd") == (plain["code"]["state"], plain["code"]["before"])
    assert json_line(plain)


def test_a_profile_that_names_no_machine_code_may_be_of_another():
    case = timed(code={"sass": "a"})
    unnamed = counted(replace(case, code={}), dram_share=0.9, profiler_duration=1e-3)
    assert any("does not name its machine code" in note for note in why(case, LIMITS, unnamed).notes)
    named = counted(case, dram_share=0.9, profiler_duration=1e-3)
    assert not any("machine code" in note for note in why(case, LIMITS, named).notes)
