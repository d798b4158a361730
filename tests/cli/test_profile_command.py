"""`prism-bench profile`, with an ncu that is played by tests/profilers/fakes."""

import csv
import json
import os
from pathlib import Path

import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.profilers.tools import FAILURES
from prism_bench.record import store
from prism_bench.workflows import profiling

FAKES = Path(__file__).parent.parent / "profilers" / "fakes"
ON_NULL = ("--backend", "null", "--label", "S0")
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
    found = shell("profile", *ON_NULL, *toys)
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
    shell("profile", *ON_NULL, *toys)
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    record = store.read(path)
    assert [2, 2] == [len(names) for names in parts]
    assert not record.complete
    assert set(parts[0]) == {case.name for case in record.cases if case.profile}
    assert path.with_name("metrics.csv").is_file()


def test_json_and_nothing_else(shell, toys, fake):
    found = shell("profile", "triple", *ON_NULL, *toys, "--json")
    assert 0 == found.code
    (row,) = found.json["cases"]
    assert ("triple[n=1000]", 8000.0) == (row["case"], row["dram_bytes"])


def test_launches_are_told_apart_by_order_where_there_are_no_ranges(shell, toys, fake):
    fake(ranges=False)
    found = shell("profile", *ON_NULL, *toys, "--json")
    assert [1] * 4 == [row["launches"] for row in found.json["cases"]]


def test_launches_that_no_plan_explains_are_refused(shell, toys, fake):
    fake(ranges=False, launches=3)
    found = shell("profile", *ON_NULL, *toys, "--tool", "ncu")
    assert 2 == found.code
    assert "12 launches without ranges; the cases have 4" in found.err


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_each_failure_is_explained_with_its_code(shell, toys, fake, failure):
    fake(fails=WORDS[failure.name])
    found = shell("profile", *ON_NULL, *toys, "--tool", "ncu")
    assert failure.exit_code == found.code
    assert f"ncu: {failure.cause} {failure.cure}" in found.err.replace("\n", " ")
    assert "Traceback" not in found.err


def test_a_metric_of_ncus_own_is_counted_besides(shell, toys, fake):
    name = "dram__cycles_active.avg"
    fake(values={name: ["cycle", "17.25"]})
    shell("profile", "triple", *ON_NULL, *toys, "--counters", name)
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
    assert 0 == shell("profile", "double", *ON_NULL, *toys, "--counters", "lines").code
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    profile = store.read(path).case("double[n=1000]").profile
    line = {"file": "double.cu", "line": 4, "samples": 80, "text": "y[i] = 2 * x[i];", "stall": "long scoreboard"}
    assert [line] == profile["lines"]
    assert "--section SourceCounters --import-source yes" in profile["command"]


def test_a_page_without_source_lines_is_a_reason_and_no_failure(shell, toys, fake):
    assert 0 == shell("profile", "double", *ON_NULL, *toys, "--counters", "lines").code
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    profile = store.read(path).case("double[n=1000]").profile
    assert [] == profile["lines"] and "no page of source lines" in profile["no_lines"]
    assert 4000.0 == profile["values"]["dram_read_bytes"]["value"]


def test_source_lines_are_ncus_alone(shell, toys, fake):
    found = shell("profile", *ON_NULL, *toys, "--tool", "cupti", "--counters", "lines")
    assert (2, True) == (found.code, "--counters is for ncu" in found.err)


def test_a_metric_of_the_past_is_refused_with_its_successor(shell, toys, fake):
    found = shell("profile", *ON_NULL, *toys, "--counters", "sm__occupancy.avg.pct")
    assert 2 == found.code
    assert "ask for sm__warps_active.avg.pct_of_peak_sustained_active" in found.err


def test_a_misspelt_metric_is_answered_with_the_nearest(shell, toys, fake):
    fake(fails="==ERROR== Failed to find metric dram__byts_read.sum")
    found = shell("profile", *ON_NULL, *toys, "--tool", "ncu", "--counters", "dram__byts_read.sum")
    assert 2 == found.code
    assert "no metric is called 'dram__byts_read'; near it are dram__bytes_read" in found.err


def test_an_empty_report_is_not_trusted(shell, toys, fake):
    fake(empty=True)
    found = shell("profile", *ON_NULL, *toys, "--tool", "ncu")
    assert 3 == found.code
    assert "the profiler ended well and left no result" in found.err


def test_without_ncu_it_says_what_works(shell, toys, fake, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("prism_bench.profilers.tools._FOLDERS", ())
    found = shell("profile", *ON_NULL, *toys, "--tool", "ncu")
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
    found = shell("profile", *ON_NULL, *toys, "--json")
    assert 1 == found.code
    status = {row["case"].split("[")[0]: row["status"] for row in found.json["cases"]}
    assert {"double": "failed", "double:by_adding": "crashed", "triple": "ok", "nothing": "ok"} == status
    ended = "ended the program that profiled it, during a first launch"
    assert any(ended in (row["reason"] or "") for row in found.json["cases"])


def test_a_case_that_takes_too_long_is_ended(shell, toys, fake, script):
    script({"double[*": {"hang": True}})
    found = shell("profile", "double", "triple", *ON_NULL, *toys, "--timeout", 2, "--json")
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
    shell("profile", "double", *ON_NULL, *toys)
    shell("profile", "triple", *ON_NULL, *toys, "--counters", "traffic")
    assert 0 == shell("profile", "double", "triple", *ON_NULL, *toys).code
    assert ["triple[n=1000]", "double[n=1000]", "double:by_adding[n=1000]"] == orders[-1]


def test_traffic_asks_for_one_pass_without_the_tools_own_flush(shell, toys, fake):
    found = shell("profile", "triple", *ON_NULL, *toys, "--counters", "traffic")
    assert 0 == found.code
    assert "--cache-control none" in found.out and "--section" not in found.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--tool", "nvprof"), "--tool is 'nvprof'"),
        (
            ("--counters", "everything"),
            "--counters everything: it is one of core, all, traffic, lines, or a metric of ncu",
        ),
        (("--counters", "core", "--counters", "all"), "--counters all: core is chosen already"),
    ],
)
def test_unknown_words_end_with_2(shell, toys, fake, words, complaint):
    found = shell("profile", *ON_NULL, *toys, *words)
    assert 2 == found.code
    assert complaint in found.err


def test_the_answers_come_first_and_every_share_with_all(shell, toys, fake):
    shell("profile", "double", "triple", *ON_NULL, *toys)
    (path,) = Path("reports/profiles").glob("*/*.json.gz")
    answers = shell("profile", path, "--limit", 2)
    assert 0 == answers.code
    first, *_ = answers.out.splitlines()
    assert "-bound: " in first
    assert "1 more case: --limit 3" in answers.out
    assert {"of", "model", "registers"} <= set(shell("profile", path, "--all").out.splitlines()[1].split())
    assert 3 == len(shell("profile", path, "--json").json["cases"])


def test_a_record_without_profiles_says_what_adds_them(shell, toys):
    shell("run", *ON_NULL, *toys, "--processes", 1, "--output", "run.json", "--filter", "triple")
    found = shell("profile", "run.json", *toys)
    assert 2 == found.code
    assert "no case of it was profiled" in found.err


def _capture(path, *rows):
    """Write a CSV of ncu with rows of (id, process, device, kernel, metric, unit, value)."""
    header = ("ID", "Process ID", "Device", "Kernel Name", "CC", "Metric Name", "Metric Unit", "Metric Value")
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *((*row[:4], "9.0", *row[4:]) for row in rows)])
    return path


def test_a_capture_shows_devices_where_it_has_several(shell, tmp_path):
    duration = ("vadd", "gpu__time_duration.sum", "us")
    two = _capture(tmp_path / "two.csv", (0, 10, 0, *duration, "100.50"), (0, 11, 1, *duration, "400.50"))
    header, *lines = (line.split() for line in shell("profile", two).out.splitlines()[:3])
    assert ["kernel", "process", "device", "time", "share", "bottleneck"] == header
    assert [["vadd", "11", "1", "400"], ["vadd", "10", "0", "100"]] == [line[:4] for line in lines], "longest first"
    assert [(10, 0), (11, 1)] == [(row["process"], row["device"]) for row in shell("profile", two, "--json").json]
    single = _capture(tmp_path / "single.csv", (0, 10, 0, *duration, "100.50"))
    assert not {"process", "device"} & set(shell("profile", single).out.split())


def test_counters_without_a_value_are_counted_and_named_with_all(shell, tmp_path):
    names = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum", "x__y.sum")
    counters = zip(names, ("%", "Mbyte", ""), ("nan", "nan", "n/a"), strict=True)
    path = _capture(tmp_path / "nan.csv", (0, 1, 0, "f", "gpu__time_duration.sum", "us", "1.5"),
                    *((0, 1, 0, "f", *counter) for counter in counters))  # fmt: skip
    assert "3 counters without a value: --all names them and why" in shell("profile", path).out
    whole = shell("profile", path, "--all").out
    assert f"no value of {names[0]}, {names[1]}: the profiler answers 'nan'" in whole
    assert "no value of x__y.sum: the profiler answers 'n/a', GH100" in whole
    assert set(names) == set(shell("profile", path, "--json").json[0]["missing"])


def test_a_counter_in_another_unit_is_converted_or_refused(shell, tmp_path):
    rows = (("dram__bytes_read.sum", "Kibyte", "8,192.50"), ("gpu__time_duration.sum", "hour", "3"))
    path = _capture(tmp_path / "units.csv", *((0, 1, 0, "f", *row) for row in rows))
    whole = shell("profile", path, "--all").out
    assert "dram_read_bytes = 8.39 MB" in whole
    assert "no value of gpu__time_duration.sum: 3 is in 'hour', which is no unit of it" in whole


def test_many_launches_are_summed_up_by_kernel(shell, tmp_path):
    names, times = ("long", "void ns::short<4>(int)"), ("40.0", "1.0")
    rows = [(i, 1, 0, names[i % 3 > 0], "gpu__time_duration.sum", "us", times[i % 3 > 0]) for i in range(30)]
    path = _capture(tmp_path / "many.csv", *rows)
    header, *lines = (line.split() for line in shell("profile", path).out.splitlines()[:3])
    assert ["kernel", "launches", "time", "share", "bottleneck"] == header
    assert [["long", "10", "400", "us", "95", "%"], ["short", "20", "20.0", "us", "4.8", "%"]] == [
        line[:6] for line in lines
    ]
    assert "1 more rows, 20.0 us in all: --limit 2" in shell("profile", path, "--limit", 1).out


def test_the_busiest_part_from_60_percent_on_is_the_bottleneck(shell, tmp_path):
    memory, compute = "gpu__compute_memory_throughput", "sm__throughput"
    peak = "avg.pct_of_peak_sustained_elapsed"

    def verdict(name, **shares):
        counters = ((f"{metric}.{peak}", "%", str(share)) for metric, share in shares.items())
        return shell("profile", _capture(tmp_path / name, *((0, 1, 0, "f", *row) for row in counters))).out

    assert "memory-bound 62 %" in verdict("memory.csv", **{memory: 62.4, compute: 30.6})
    assert "compute-bound 74 %" in verdict("compute.csv", **{memory: 62.4, compute: 74.4})
    assert "latency-bound (memory 12 %, compute 31 %)" in verdict("latency.csv", **{memory: 12.4, compute: 30.6})
    assert "not busy: DRAM 12 %, compute 31 %" in verdict("open.csv", dram__throughput=12.4, **{compute: 30.6})


def test_a_capture_of_a_chip_without_a_table_shows_its_metrics(shell, tmp_path):
    path = _capture(tmp_path / "new.csv", (0, 1, 0, "f", "x__y.sum", "byte", "12"))
    path.write_text(path.read_text().replace("9.0", "99.9"))
    assert 0 == shell("profile", path).code
    assert "  x__y.sum = 12.0 B" in shell("profile", path, "--all").out


def test_a_capture_of_somebody_else_is_answered_by_kernel(shell, samples):
    found = shell("profile", samples / "ncu_raw_wide_h200_2025.3.1.csv")
    assert 0 == found.code
    lines = {line.split()[0]: line for line in found.out.splitlines()}
    assert ["3", "178", "us", "26", "%", "memory-bound", "66", "%"] == lines["vector_add"].split()[1:]
    assert "its grid fills 2.0 % of the device" in lines["generate_seed_pseudo"]
    assert "181 us" in next(line for line in found.out.splitlines()[1:]), "the longest kernel first"


def test_advice_of_ncu_is_in_the_order_of_what_it_may_gain(shell, samples):
    path = samples / "ncu_details_t4_rules.csv"
    first, *others = shell("profile", path).out.splitlines()
    assert "memory-bound 62 %: uncoalesced accesses, 75 % of the sectors are excess (ncu: up to 3.9x)" in first
    assert ["21.1", "ms"] == first.split()[1:3]
    assert "also uncoalesced loads, 8 of 32 B used (ncu: up to 1.8x)" in others[0]
    assert "also uncoalesced stores, 8 of 32 B used (ncu: up to 1.8x)" in others[1]
    (launch,) = shell("profile", path, "--json").json
    gains = [rule["faster"] or 0 for rule in launch["rules"]]
    assert (11, gains) == (len(launch["rules"]), sorted(gains, reverse=True))
    assert "rule of ncu (OPT, up to 3.9x)" in shell("profile", path, "--all").out


@pytest.mark.parametrize("width", [80, 120, 200])
def test_answers_fit_the_terminal(shell, samples, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for path in samples.glob("ncu_*_*.csv"):
        found = shell("profile", path)
        assert found.code or max(map(len, found.out.splitlines())) <= width, path


@pytest.mark.parametrize(
    ("content", "name", "complaint"),
    [
        ('{"events": [], "facts": {}}', "t.json", "this is a trace of allocations: prism-bench memory t.json"),
        (
            '{"context": {}, "benchmarks": []}',
            "g.json",
            "this is a result of google-benchmark: prism-bench import g.json",
        ),
        ('{"traceEvents": []}', "torch.json", "this is a trace of PyTorch's profiler: prism-bench import torch.json"),
        ("hello\n", "notes.csv", "no file of ncu or nsys, no record with counters, and no Python script"),
    ],
)
def test_a_file_of_another_kind_names_the_command_that_reads_it(shell, content, name, complaint):
    Path(name).write_text(content)
    found = shell("profile", name)
    assert (2, True) == (found.code, complaint in found.err)


@pytest.mark.parametrize("command", ["show", "import", "claim"])
def test_other_commands_name_profile_for_a_profilers_file(shell, tmp_path, command):
    path = _capture(tmp_path / "capture.csv", (0, 1, 0, "f", "gpu__time_duration.sum", "us", "1.5"))
    found = shell(command, path)
    assert (2, True) == (found.code, f"{path}: this is ncu's CSV: prism-bench profile {path}" in found.err)


@pytest.mark.parametrize(
    "words",
    [("--tool", "ncu"), ("--counters", "all"), ("--chain",), ("--overlap",), ("--label", "S0"), ("-f", "softmax")],
)
def test_options_that_measure_are_refused_with_a_file(shell, tmp_path, words):
    path = _capture(tmp_path / "capture.csv", (0, 1, 0, "f", "gpu__time_duration.sum", "us", "1.5"))
    found = shell("profile", path, *words)
    assert (2, True) == (found.code, f"leave it out with {path}" in found.err)


@pytest.mark.parametrize("option", ["--from", "--set", "--counter", "--reports", "--into", "--clock-control"])
def test_an_option_of_the_past_names_what_replaces_it(shell, option):
    found = shell("profile", option, "x")
    assert (2, True) == (found.code, "command has no option" in found.err or "no option" in found.err)
