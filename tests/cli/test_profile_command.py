"""`prism-bench profile`, with an ncu that is played by tests/profilers/fakes."""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.profilers.tools import FAILURES
from prism_bench.record import store
from prism_bench.workflows import profiling

FAKES = Path(__file__).parent.parent / "profilers" / "fakes"
ON_NULL = ("--backend", "null", "--label", "S0")
QUICK = (*ON_NULL, "--no-verify")
WORDS = {
    "permission": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission",
    "library_not_loaded": "==ERROR== Failed to initialize the profiler: LibraryNotLoaded",
    "driver_mismatch": "==ERROR== Cuda driver is not compatible with Nsight Compute",
    "counters_busy": "==ERROR== Profiling failed because a driver resource was unavailable",
    "unknown_metric": "==ERROR== Failed to find metric sm__occupancy.avg.pct",
    "kernel_not_prepared": "==ERROR== Failed to prepare kernel for profiling",
    "application_failed": "==ERROR== The application returned an error code (1)",
    "no_kernels": "==WARNING== No kernels were profiled.",
    "device_not_supported": "Error: Device not supported",
    "qdstrm": "FATAL ERROR: ConvertGpuTicksToSyncNs",
}


@pytest.fixture
def fake(monkeypatch):
    """A function that scripts the tools on the PATH; the null backend plays a GPU of compute capability 9.0."""
    facts = NullBackend.facts
    hopper = {"compute_capability": 90, "l2_bytes": 50 << 20}
    monkeypatch.setattr(NullBackend, "facts", lambda self: facts(self) | hopper)
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")

    def script(**behaviour):
        monkeypatch.setenv("PRISM_BENCH_FAKE", json.dumps(behaviour))

    script()
    return script


def test_the_table_the_record_and_the_command_are_kept(shell, toys, fake):
    found = shell("profile", *QUICK, *toys)
    assert 0 == found.code
    assert "--clock-control none" in found.out and "--config-file off" in found.out
    assert "double:by_adding" in found.out
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    record = store.read(path)
    assert all(case.measurements == () for case in record.cases), "a profiler's durations are no benchmark times"
    profile = record.case("double[n=1000]").profile
    assert ("ncu", "2025.3.1.0", "core", "none", 3) == tuple(
        profile[name] for name in ("tool", "version", "set", "clock_control", "passes")
    )
    assert {"value": 4000.0, "unit": "B", "source": "dram__bytes_read.sum"} == profile["values"]["dram_read_bytes"]
    assert "ncu runs one launch at a time" in profile["values"]["gaps"]["reason"]
    with next(path.parent.glob("metrics.csv")).open() as file:
        assert {"double[n=1000]", "nothing[blocks=1]"} <= {row["case"] for row in csv.DictReader(file)}
    captures = {path.name for path in Path("reports/profiles/captures").iterdir()}
    assert {"part1.ncu-rep", "part1.csv", "part1.log"} == captures


def test_what_was_counted_is_kept_after_every_part(shell, toys, fake, monkeypatch):
    whole, parts = profiling._Profiling._capture, []

    def lost(self, names, part, seconds):
        parts.append(names)
        if part == 2:
            raise KeyboardInterrupt
        return whole(self, names, part, seconds)

    monkeypatch.setattr(profiling, "PART", 2)
    monkeypatch.setattr(profiling._Profiling, "_capture", lost)
    shell("profile", *QUICK, *toys)
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    record = store.read(path)
    assert [2, 2] == [len(names) for names in parts]
    assert not record.complete
    assert set(parts[0]) == {case.name for case in record.cases if case.profile}
    assert path.with_name("metrics.csv").is_file()


def test_json_and_nothing_else(shell, toys, fake):
    found = shell("profile", "triple", *QUICK, *toys, "--json")
    assert 0 == found.code
    (row,) = found.json["cases"]
    assert ("triple[n=1000]", 8000.0) == (row["case"], row["dram_bytes"])


def test_counters_join_a_record_of_the_same_machine_only(shell, toys, fake, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_MACHINE", "here")
    shell("run", *ON_NULL, *toys, "--processes", 1, "--output", "run.json", "--filter", "triple")
    assert 0 == shell("profile", "triple", *QUICK, *toys, "--into", "run.json").code
    case = store.read("run.json").case("triple[n=1000]")
    assert case.measurements and case.profile["values"]["dram_read_bytes"]["value"] == 4000.0
    monkeypatch.setenv("PRISM_BENCH_MACHINE", "elsewhere")
    found = shell("profile", "triple", *QUICK, *toys, "--into", "run.json")
    assert 2 == found.code
    assert "measured on here, profiled on elsewhere" in found.err


def test_launches_are_told_apart_by_order_where_there_are_no_ranges(shell, toys, fake):
    fake(ranges=False)
    found = shell("profile", *QUICK, *toys, "--json")
    assert [1] * 4 == [row["launches"] for row in found.json["cases"]]


def test_launches_that_no_plan_explains_are_refused(shell, toys, fake):
    fake(ranges=False, launches=3)
    found = shell("profile", *QUICK, *toys, "--tool", "ncu")
    assert 2 == found.code
    assert "12 launches without ranges; the cases have 4" in found.err


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_each_failure_is_explained_with_its_code(shell, toys, fake, failure):
    fake(fails=WORDS[failure.name])
    found = shell("profile", *QUICK, *toys, "--tool", "ncu")
    assert failure.exit_code == found.code
    assert f"ncu: {failure.cause} {failure.cure}" in found.err.replace("\n", " ")
    assert "Traceback" not in found.err


def test_a_metric_of_ncus_own_is_counted_besides(shell, toys, fake):
    name = "dram__cycles_active.avg"
    fake(values={name: ["cycle", "17.25"]})
    shell("profile", "triple", *QUICK, *toys, "--counter", name)
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    assert {name: [17.25]} == store.read(path).case("triple[n=1000]").profile["asked"]


SOURCE = """\
"File Path","/somewhere/double.cu"
"Function Name","twice"
"Line No","Source","Address","Source","# Samples","stall_long_sb"
"4","  y[i] = 2 * x[i];","-","-","40","30"
"","","0x10","LDG.E R2","30","30"
"","","0x20","STG.E R2","10","0"
"""


def test_source_lines_join_the_counters_and_explain_the_case(shell, toys, fake):
    fake(source=SOURCE, launches=2)
    assert 0 == shell("profile", "double", *QUICK, *toys, "--lines").code
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    profile = store.read(path).case("double[n=1000]").profile
    line = {"file": "double.cu", "line": 4, "samples": 80, "text": "y[i] = 2 * x[i];", "stall": "long scoreboard"}
    assert [line] == profile["lines"]
    assert "--section SourceCounters --import-source yes" in profile["command"]


def test_a_page_without_source_lines_is_a_reason_and_no_failure(shell, toys, fake):
    assert 0 == shell("profile", "double", *QUICK, *toys, "--lines").code
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    profile = store.read(path).case("double[n=1000]").profile
    assert [] == profile["lines"] and "no page of source lines" in profile["no_lines"]
    assert 4000.0 == profile["values"]["dram_read_bytes"]["value"]


def test_source_lines_are_ncus_alone(shell, toys, fake):
    found = shell("profile", *QUICK, *toys, "--tool", "cupti", "--lines")
    assert (2, True) == (found.code, "--lines takes ncu" in found.err)


def test_a_metric_of_the_past_is_refused_with_its_successor(shell, toys, fake):
    found = shell("profile", *QUICK, *toys, "--counter", "sm__occupancy.avg.pct")
    assert 2 == found.code
    assert "ask for sm__warps_active.avg.pct_of_peak_sustained_active" in found.err


def test_a_misspelt_metric_is_answered_with_the_nearest(shell, toys, fake):
    fake(fails="==ERROR== Failed to find metric dram__byts_read.sum")
    found = shell("profile", *QUICK, *toys, "--tool", "ncu", "--counter", "dram__byts_read.sum")
    assert 2 == found.code
    assert "no metric is called 'dram__byts_read'; near it are dram__bytes_read" in found.err


def test_an_empty_report_is_not_trusted(shell, toys, fake):
    fake(empty=True)
    found = shell("profile", *QUICK, *toys, "--tool", "ncu")
    assert 3 == found.code
    assert "the profiler ended well and left no result" in found.err


def test_without_ncu_it_says_what_works(shell, toys, fake, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("prism_bench.profilers.tools._FOLDERS", ())
    found = shell("profile", *QUICK, *toys, "--tool", "ncu")
    assert 2 == found.code
    assert "ncu: the tool is not on this machine." in found.err


def test_a_wrong_launch_is_told_and_the_others_are_counted(shell, toys, fake, script):
    script({"double[*": {"wrong": True}})
    found = shell("profile", *ON_NULL, *toys, "--json")
    assert 1 == found.code
    status = {row["case"]: (row["status"], row["dram_bytes"]) for row in found.json["cases"]}
    assert ("wrong", 8000.0) == status["double[n=1000]"]
    assert ("ok", 8000.0) == status["triple[n=1000]"]


def test_a_case_that_fails_or_ends_the_program_does_not_stop_the_rest(shell, toys, fake, script):
    script({"double[*": {"raises": "no such thing"}, "double:by_adding[*": {"crash": True}})
    found = shell("profile", *QUICK, *toys, "--json")
    assert 1 == found.code
    status = {row["case"].split("[")[0]: row["status"] for row in found.json["cases"]}
    assert {"double": "failed", "double:by_adding": "crashed", "triple": "ok", "nothing": "ok"} == status
    ended = "ended the program that profiled it, during a first launch"
    assert any(ended in (row["reason"] or "") for row in found.json["cases"])


def test_a_case_that_takes_too_long_is_ended(shell, toys, fake, script):
    script({"double[*": {"hang": True}})
    found = shell("profile", "double", "triple", *QUICK, *toys, "--timeout", 2, "--json")
    status = {row["case"].split("[")[0]: row["status"] for row in found.json["cases"]}
    assert {"double": "timed out", "double:by_adding": "ok", "triple": "ok"} == status
    during = "--timeout 2, was over during a first launch, which the profiler does not watch"
    assert any(during in (row["reason"] or "") for row in found.json["cases"])


def test_what_was_never_or_longest_ago_tried_goes_first(shell, toys, fake, monkeypatch):
    orders = []
    begin = profiling._Profiling._order
    monkeypatch.setattr(
        profiling._Profiling, "_order", lambda self, names, seconds: orders.append(names) or begin(self, names, seconds)
    )
    shell("profile", "double", *QUICK, *toys)
    shell("profile", "triple", *QUICK, *toys, "--set", "traffic")
    assert 0 == shell("profile", "double", "triple", *QUICK, *toys).code
    assert ["triple[n=1000]", "double[n=1000]", "double:by_adding[n=1000]"] == orders[-1]


def test_traffic_asks_for_one_pass_without_the_tools_own_flush(shell, toys, fake):
    found = shell("profile", "triple", *QUICK, *toys, "--set", "traffic")
    assert 0 == found.code
    assert "--cache-control none" in found.out and "--section" not in found.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--tool", "nvprof"), "--tool is 'nvprof'"),
        (("--set", "everything"), "no set of metrics is called 'everything'"),
    ],
)
def test_unknown_words_end_with_2(shell, toys, fake, words, complaint):
    found = shell("profile", *QUICK, *toys, *words)
    assert 2 == found.code
    assert complaint in found.err


def test_a_record_is_shown_again_beside_what_the_source_touches(shell, toys, fake):
    shell("profile", "double", *QUICK, *toys)
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    assert "double:by_adding" in shell("profile", "--from", path, *toys).out
    if shutil.which("g++"):
        ratios = {row["case"]: row["emulated_ratio"] for row in
                  shell("profile", "--from", path, "--emulate", *toys, "--json").json["cases"]}  # fmt: skip
        assert {"double[n=1000]": 1.0, "double:by_adding[n=1000]": 1.0} == ratios


def test_a_record_without_profiles_says_what_adds_them(shell, toys):
    shell("run", *ON_NULL, *toys, "--processes", 1, "--output", "run.json", "--filter", "triple")
    found = shell("profile", "--from", "run.json", *toys)
    assert 2 == found.code
    assert "no case of it was profiled" in found.err


def _capture(path, *rows):
    """Write a CSV of ncu with rows of (id, process, device, kernel, metric, unit, value)."""
    header = ("ID", "Process ID", "Device", "Kernel Name", "CC", "Metric Name", "Metric Unit", "Metric Value")
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *((*row[:4], "9.0", *row[4:]) for row in rows)])
    return path


def test_a_capture_shows_processes_and_devices_where_it_has_several(shell, tmp_path):
    duration = ("vadd", "gpu__time_duration.sum", "us")
    two = _capture(tmp_path / "two.csv", (0, 10, 0, *duration, "100.50"), (0, 11, 1, *duration, "400.50"))
    lines = shell("profile", "--from", two).out.splitlines()
    assert [line.split("  ")[-2:] for line in lines[::2]] == [["process 10", "device 0"], ["process 11", "device 1"]]
    assert [(10, 0), (11, 1)] == [
        (row["process"], row["device"]) for row in shell("profile", "--from", two, "--json").json
    ]
    single = _capture(tmp_path / "single.csv", (0, 10, 0, *duration, "100.50"))
    assert not {"process", "device"} & set(shell("profile", "--from", single).out.split())


def test_a_capture_names_each_counter_without_a_value(shell, tmp_path):
    names = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum", "x__y.sum")
    counters = zip(names, ("%", "Mbyte", ""), ("nan", "nan", "n/a"), strict=True)
    path = _capture(tmp_path / "nan.csv", (0, 1, 0, "f", "gpu__time_duration.sum", "us", "1.5"),
                    *((0, 1, 0, "f", *counter) for counter in counters))  # fmt: skip
    found = shell("profile", "--from", path)
    assert f"no value of {names[0]}, {names[1]}: the profiler answers 'nan'" in found.out
    assert "no value of x__y.sum: the profiler answers 'n/a', GH100" in found.out
    assert set(names) == set(shell("profile", "--from", path, "--json").json[0]["missing"])


def test_a_counter_in_another_unit_is_converted_or_refused(shell, tmp_path):
    rows = (("dram__bytes_read.sum", "Kibyte", "8,192.50"), ("gpu__time_duration.sum", "hour", "3"))
    found = shell("profile", "--from", _capture(tmp_path / "units.csv", *((0, 1, 0, "f", *row) for row in rows)))
    assert "dram_read_bytes = 8.38912e+06 B" in found.out
    assert "no value of gpu__time_duration.sum: 3 is in 'hour', which is no unit of it" in found.out


def test_many_launches_are_summed_up_by_kernel(shell, tmp_path):
    rows = [(i, 1, i % 2, "short" if i % 3 else "long", "gpu__time_duration.sum", "us", "1.0" if i % 3 else "40.0")
            for i in range(30)]  # fmt: skip
    out = shell("profile", "--from", _capture(tmp_path / "many.csv", *rows)).out
    title, header, *lines = (" ".join(line.split()) for line in out.splitlines())
    assert "30 launches by kernel; --json has each launch" == title
    assert "kernel device launches in sum median longest" == header
    assert ["long 0 5 200 us 40.0 us 40.0 us", "long 1 5 200 us 40.0 us 40.0 us"] == sorted(lines[:2])
    assert ["short 0 10 10.0 us 1.00 us 1.00 us", "short 1 10 10.0 us 1.00 us 1.00 us"] == sorted(lines[2:])


def test_a_capture_of_a_chip_without_a_table_shows_its_metrics(shell, tmp_path):
    path = _capture(tmp_path / "new.csv", (0, 1, 0, "f", "x__y.sum", "byte", "12"))
    path.write_text(path.read_text().replace("9.0", "99.9"))
    found = shell("profile", "--from", path)
    assert (0, "  x__y.sum = 12 B") == (found.code, found.out.splitlines()[1])


def test_a_capture_of_somebody_else_is_shown(shell, samples):
    found = shell("profile", "--from", samples / "ncu_raw_wide_h200_2025.3.1.csv")
    assert 0 == found.code
    assert "vector_add  grid (65536, 1, 1)" in found.out
    assert "dram_read_bytes = 1.34229e+08 B" in found.out


def test_an_opinion_of_ncu_is_shown_as_its_own(shell, samples):
    found = shell("profile", "--from", samples / "ncu_details_t4_rules.csv", "--json")
    assert 11 == len(found.json[0]["rules"])
    assert "rule of ncu (OPT)" in shell("profile", "--from", samples / "ncu_details_t4_rules.csv").out
