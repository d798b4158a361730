"""Why a case takes its time, from stored records: which case a kernel's name chooses, and what it is compared with."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError
from prism_bench.record import store
from prism_bench.workflows.compile_table import CompileRow, write_table
from prism_bench.workflows.profiling import WhyTables, why_of
from tests.report.site.pages import nights
from tests.report.synthetic import case_result, record_of

TOYS = Path(__file__).parent.parent / "toys"
COUNTED = {"dram_share": 0.91, "l2_hit_rate": 0.02, "occupancy": 0.5, "profiler_duration": 1e-4}


def of_size(label, n, size, **facts):
    return case_result("k", label, times={"cold_time": 1e-5 * n}, workload={"n": n}, bytes=size, **facts)


def profiled(case, **more):
    values = {name: {"value": value, "unit": "1"} for name, value in COUNTED.items()}
    return replace(case, profile={"tool": "ncu", "values": values, **more})


@pytest.fixture
def explained(tmp_path):
    """Why a case of the last of the records takes its time."""

    def explain(name, *records):
        for record in records:
            store.save(record, store.path_for(record, tmp_path / "runs"))
        return why_of(records[-1], name, tmp_path / "runs", tmp_path / "profiles")

    return explain


def test_a_kernel_is_its_largest_case_whether_it_was_counted_or_not(explained):
    record = record_of(profiled(of_size("S1", 2, 100)), of_size("S2", 3, 900), of_size("S0", 1, 10))
    assert "k[n=3]" == explained("k", record).case


def test_a_variant_is_its_own_largest_case(explained):
    wide = [replace(of_size(label, n, n), name=f"k:wide[n={n}]", variant="wide") for label, n in (("S0", 1), ("S1", 2))]
    record = record_of(of_size("S2", 9, 900), *wide)
    assert ("k:wide[n=2]", "k[n=9]") == (explained("k:wide", record).case, explained("k", record).case)


def test_the_counters_of_another_workload_are_named(explained):
    small = profiled(of_size("S1", 2, 100), lines=[{"file": "k.cu", "line": 7, "samples": 5, "text": "y[i] = x[i];"}])
    near = explained("k", record_of(small, of_size("S2", 3, 900))).near
    assert ("k[n=2]", "S1") == (near.case, near.label)
    assert near.verdict.startswith("bound by DRAM: DRAM 91 %")
    assert ["dram_share", "l2_hit_rate", "occupancy"] == [one.name for one in near.counters]
    assert [7] == [one.line for one in near.lines]
    assert explained("k[n=2]", record_of(small, of_size("S2", 3, 900))).near is None


def test_the_code_is_compared_with_the_newest_earlier_run_that_timed_the_case(explained):
    """Neither a run that left it out nor one that only compiled it is the one before."""
    case, other = of_size("S1", 2, 100, code={"sass": "a"}), of_size("S0", 1, 10, code={"sass": "a"})
    first, second, third, last = nights(record_of(case, other), 4)
    second = replace(second, cases=(other,))
    third = replace(third, cases=(other, replace(case, measurements=(), code={"sass": "b"})))
    found = explained("k", first, second, third, last)
    assert "same" == found.code.state and found.code.before.startswith("20261001T")


def test_an_unknown_name_is_refused(explained):
    with pytest.raises(PrismBenchError, match="kernel or case 'kk'"):
        explained("kk", record_of(of_size("S1", 2, 100)))


def test_without_counters_the_tables_of_the_compiler_and_of_traffic_are_used(tmp_path):
    row = CompileRow("double", "twice", "90", 40, 0, 16, 1024, 1)
    write_table(tmp_path / "compile" / "resources.csv", [row, replace(row, architecture="80", registers=99)])
    tables = WhyTables(tmp_path / "compile" / "resources.csv", discover(TOYS))
    case = case_result("double", "S1", times={"cold_time": 1e-5}, workload={"n": 9}, bytes=100)
    record = record_of(case)
    record = replace(record, machine={**record.machine, "compute_capability": 90})
    lines = why_of(record, "double", tmp_path / "runs", tmp_path / "profiles", tables).tables
    assert "compiled: 40 registers, 16.0 B spilled, 1.02 kB shared (compile/resources.csv)" == lines[0]
    if shutil.which("g++"):
        assert lines[1].startswith("traffic at S0: touches 1.00x of its bytes, asks for 1.00x")
    counted = record_of(profiled(case))
    assert () == why_of(counted, "double", tmp_path / "runs", tmp_path / "profiles", tables).tables
