"""What bounds a case by its counters; DRAM bytes against the compulsory ones; peaks that must agree."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.analysis.bounds.bottleneck import bound_of, check_bytes, dram_bytes, empty_duration, peak_rates
from prism_bench.analysis.bounds.profiles import csv_text, newest_counted, newest_rows, profile_findings, rows
from prism_bench.analysis.summary import summary
from prism_bench.record.run_record import CaseResult, RunRecord, decode, encode

MIB = 1 << 20


def case(name="k[n=1]", *, size=1000 * MIB, status="ok", ceiling=None, reason=None, **values):
    """A case with those logical metrics."""
    counted = {key: {"value": one, "unit": "1"} for key, one in values.items()}
    facts = {"ceiling": ceiling, "reason": reason, "profile": {"tool": "ncu", "values": counted}}
    return CaseResult(name, "k", "f", "S1", {"n": 1}, size, None, status, **facts)


def record(*cases):
    return RunRecord("2026-01-01T00:00:00", "cuda", {"id": "gpu", "l2_bytes": 50 * MIB}, {}, {}, cases)


@pytest.mark.parametrize("part", ["dram", "l2", "l1", "fp32", "tensor", "sfu", "issue"])
def test_the_busiest_part_binds(part):
    found = bound_of(case(profiler_duration=1e-3, **{"dram_share": 0.5, "fp32_share": 0.4, f"{part}_share": 0.8}))
    assert part == found.by
    assert "80 %" in found.evidence


def test_where_nothing_is_busy_latency_binds_and_occupancy_tells():
    counted = {"dram_share": 0.3, "issue_share": 0.59, "occupancy": 0.21, "occupancy_limit": 0.5, "waves": 0.4}
    found = bound_of(case(profiler_duration=1e-3, **counted))
    assert "latency" == found.by
    assert "nothing is busy: issue slots 59 %, DRAM 30 %; occupancy 21 % of 50 %; 0.4 waves" == found.evidence


def test_as_short_as_an_empty_kernel_is_bound_by_launching():
    short = case(profiler_duration=4e-6, dram_share=0.9, launches=2)
    assert "launch" == bound_of(short, empty=1.5e-6).by
    assert "dram" == bound_of(short, empty=1e-6).by
    assert "dram" == bound_of(short).by


def test_nothing_counted_has_no_bound_but_a_reason():
    found = bound_of(case(status="crashed", reason="it crashed"))
    assert (None, "it crashed") == (found.by, found.evidence)


def test_the_empty_kernel_is_found_by_its_ceiling():
    cases = [case(profiler_duration=9e-6), case(ceiling="launch", profiler_duration=2e-6)]
    assert (2e-6, None) == (empty_duration(cases), empty_duration(cases[:1]))


@pytest.mark.parametrize(
    ("read", "write", "back", "verdict"),
    [
        (600, 400, None, "agrees"),
        (600, 360, None, "agrees"),
        (600, 310, None, "less"),
        (600, 440, None, "more"),
        (600, 360, 38, "agrees"),
        (600, 360, 0, "less"),
    ],
)
def test_what_stays_in_l2_may_be_missing_unless_it_was_followed(read, write, back, verdict):
    counted = {"dram_read_bytes": read * MIB, "dram_write_bytes": write * MIB}
    counted |= {} if back is None else {"write_back_bytes": back * MIB}
    assert verdict == check_bytes(case(**counted), 50 * MIB).verdict


def test_what_fits_in_l2_tells_nothing_unless_it_was_followed():
    counted = {"dram_read_bytes": 40 * MIB, "dram_write_bytes": 0.0}
    assert "unknown" == check_bytes(case(size=80 * MIB, **counted), 50 * MIB).verdict
    assert "agrees" == check_bytes(case(size=80 * MIB, write_back_bytes=40 * MIB, **counted), 50 * MIB).verdict


def test_one_missing_counter_makes_no_sum():
    assert dram_bytes(case(dram_read_bytes=1.0)) is None
    assert "unknown" == check_bytes(case(dram_read_bytes=1.0), MIB).verdict


def test_rates_over_shares_give_the_peak():
    busy = case(dram_share=0.5, profiler_duration=1.0, dram_read_bytes=1e12, dram_write_bytes=1e12)
    idle = case(dram_share=0.1, profiler_duration=1.0, dram_read_bytes=1e12, dram_write_bytes=1e12)
    assert [4e12] == peak_rates([busy, idle])


def test_findings_name_failures_bytes_and_peaks():
    one = case("a", dram_share=0.5, profiler_duration=1.0, dram_read_bytes=2e12, dram_write_bytes=0.0, size=10**12)
    other = case("b", dram_share=0.5, profiler_duration=1.0, dram_read_bytes=1e12, dram_write_bytes=0.0, size=10**12)
    found = profile_findings(record(one, other, case("c", status="wrong", reason="y[0] is 1, not 2")))
    assert [("a", "bytes"), ("c", "wrong"), (None, "peaks")] == [(finding.case, finding.kind) for finding in found]
    assert "DRAM moved 2.00 TB of 1.00 TB that must move (200 %)" == found[0].message


def test_the_table_has_every_case_with_its_bound_and_empty_cells():
    found = record(case(dram_share=0.9, profiler_duration=1e-3), case("failed", status="crashed"))
    table = list(csv.DictReader(io.StringIO(csv_text(rows(found)))))
    assert ["dram", ""] == [row["bound"] for row in table]
    assert ["0.9", ""] == [row["dram_share"] for row in table]
    assert len(rows(found)) == 2


def test_of_every_case_the_newest_counters_are_told_with_their_record():
    old = replace(record(case("a", dram_share=0.5), case("b", dram_share=0.6)), created="2026-01-01T00:00:00")
    late = replace(record(case("a", dram_share=0.7), case("b", status="skipped")), created="2026-01-02T00:00:00")
    one = case("a", dram_read_bytes=9.0)
    traffic = replace(one, profile={**one.profile, "set": "traffic"})
    last = replace(record(traffic, case("c", status="crashed")), created="2026-01-03T00:00:00")
    found = newest_rows(newest_counted([(Path("old"), old), (Path("late"), late), (Path("last"), last)]))
    assert [("a", "late"), ("b", "old"), ("c", "last")] == [(row["case"], row["record"]) for row in found]
    assert [0.7, 0.6, None] == [row.get("dram_share") for row in found]
    assert "crashed" == found[2]["status"]


def test_counters_stand_in_the_summary_for_budgets():
    counted = case(dram_read_bytes=3.0, dram_write_bytes=4.0, tensor_share=0.7)
    row = summary(record(counted)).iloc[0]
    assert (7.0, 0.7) == (row["dram_bytes"], row["tensor_share"])


def test_a_profile_survives_the_record_and_is_no_time():
    kept = record(case(profiler_duration=1e-3, dram_share=0.9))
    read = decode(encode(kept), "here")
    assert kept.cases[0].profile == read.cases[0].profile
    assert () == read.cases[0].measurements
    assert summary(read).iloc[0][["cold_time", "hot_time"]].isna().all()
