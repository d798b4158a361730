"""Results as other tools write them, small."""

import json
import struct


def nvbench(folder, **changes):
    """nvbench's JSON with a skipped state, one with samples beside it and one without."""
    beside = folder / "out.json-bin"
    beside.mkdir(parents=True)
    (beside / "0.bin").write_bytes(struct.pack("<3f", 1e-5, 2e-5, 4e-5))
    (beside / "1.bin").write_bytes(struct.pack("<3f", 1.98e9, 1.98e9, 1.95e9))
    files = [summary("nv/json/bin:nv/cold/sample_times", filename="out.json-bin/0.bin", size="3"),
             summary("nv/json/freqs-bin:nv/cold/sample_freqs", filename="out.json-bin/1.bin", size="3")]  # fmt: skip
    mean = summary("nv/cold/time/gpu/mean", value="2.5e-05")
    batch = summary("nv/batch/time/gpu/mean", value="1.5e-05")
    states = [
        {"device": 0, "axis_values": axes(n="1024", T="F32"), "summaries": [*files, mean, batch], "is_skipped": False},
        {"device": 0, "axis_values": axes(n="2048", T="F32"), "summaries": [mean], "is_skipped": False},
        {"device": 0, "axis_values": axes(n="4096", T="F32"), "summaries": None, "is_skipped": True,
         "skip_reason": "too large"},
    ]  # fmt: skip
    data = {
        "meta": {"version": {"json": {"string": "1.0.0"}, "nvbench": {"string": "0.1.0"}}},
        "devices": [{"id": 0, "name": "NVIDIA H200", "number_of_sms": 132, "l2_cache_size": 62914560}],
        "benchmarks": [{"name": "copy", "axes": [], "states": states}],
    }
    return written(folder / "out.json", {**data, **changes})


def summary(tag, **data):
    return {"tag": tag, "name": tag, "data": [{"name": name, "value": value} for name, value in data.items()]}


def axes(**values):
    return [{"name": name, "type": "string", "value": value} for name, value in values.items()]


def google_benchmark(folder, *rows, **context):
    """Google Benchmark's JSON of these rows."""
    facts = {"date": "2026-11-20T10:00:00+01:00", "host_name": "bench-1", "num_cpus": 16, "mhz_per_cpu": 3000,
             "library_build_type": "release", "json_schema_version": 1}  # fmt: skip
    return written(folder / "gbench.json", {"context": {**facts, **context}, "benchmarks": list(rows)})


def repetition(name, real_time, index=0, **changes):
    row = {"name": name, "run_name": name, "run_type": "iteration", "repetition_index": index, "iterations": 100,
           "real_time": real_time, "cpu_time": real_time, "time_unit": "us"}  # fmt: skip
    return {**row, **changes}


def pytest_benchmark(folder, *rows, **changes):
    """pytest-benchmark's JSON of these rows."""
    data = {
        "machine_info": {"node": "bench-1", "system": "Linux", "release": "6.1", "python_version": "3.12.1",
                         "cpu": {"brand_raw": "AMD EPYC", "count": 16}},
        "commit_info": {"id": "0123456789abcdef", "time": "2026-11-20T09:00:00+01:00", "dirty": True},
        "datetime": "2026-11-20T10:00:00+01:00", "version": "5.2.3", "benchmarks": list(rows),
    }  # fmt: skip
    return written(folder / "pytest.json", {**data, **changes})


def timed_test(name="test_k.py::test_sort[10-a]", samples=(1e-3, 3e-3, 2e-3), param="10-a", **changes):
    """A row of pytest-benchmark: a test with its rounds and their statistics."""
    stats = {"mean": 2e-3, "median": 2e-3, "rounds": 3, "iterations": 1, "data": list(samples)}
    row = {"name": name.rpartition("::")[2], "fullname": name, "params": {"n": 10, "kind": "a"}, "param": param,
           "options": {"timer": "perf_counter"}, "stats": stats}  # fmt: skip
    return {**row, **changes}


def hyperfine(folder, *rows):
    """hyperfine's JSON of these rows."""
    return written(folder / "hyperfine.json", {"results": list(rows)})


def command(name="sort --by n", times=(0.5, 0.7, 0.6), **changes):
    """A row of hyperfine: a command with its runs and their statistics."""
    statistics = {"mean": 0.6, "stddev": 0.1, "median": 0.6, "user": 0.5, "system": 0.1, "min": 0.5, "max": 0.7}
    return {"command": name, **statistics, "times": list(times), "exit_codes": [0] * len(times), **changes}


def trace(folder, *events, **changes):
    """A trace of PyTorch's profiler with these events and one of the CPU."""
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 90.0, "dur": 500.0, "args": {}}
    data = {
        "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],
        "cuda_runtime_version": 12040, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_763_632_800_000_000_000,
        "traceEvents": [operator, *events],
    }  # fmt: skip
    return written(folder / "trace.json", {**data, **changes})


def launch(name="gemm", microseconds=12.5, device=0, **changes):
    """An event of a trace: one launch of a kernel."""
    facts = {"device": device, "stream": 7, "grid": [64, 2, 1], "block": [128, 1, 1]}
    event = {"ph": "X", "cat": "kernel", "name": name, "ts": 100.0, "dur": microseconds, "args": facts}
    return {**event, **changes}


BENCHMARKS = {
    "version": 2,
    "times.Cold.track_cold_time": {"unit": "seconds", "param_names": ["case"], "version": "1 cold_time"},
    "sorting.time_sort": {"unit": "seconds", "param_names": ["n", "kind"], "version": "aa"},
    "sorting.peakmem_sort": {"unit": "bytes", "param_names": [], "version": "bb"},
}
ROWS = {
    "times.Cold.track_cold_time": [
        [1e-3, float("nan"), None], [["'k[n=1]'", "'k:fast[n=1]'", "'gone[n=2]'"]], "1 cold_time", 1763700000000, 3.0,
        None, None, None, None, None, None, [[1e-3, 1.1e-3, 9e-4], None, None],
    ],
    "sorting.time_sort": [[0.5, 0.7], [["100"], ["'quick'", "'heap'"]], "aa", 1763700060000],
    "sorting.peakmem_sort": [1e6, [], "bb"],
}  # fmt: skip
COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
           "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]  # fmt: skip


def asv(folder, commit="0123456789abcdef", rows=None, **changes):
    """A result file of asv's with its list of benchmarks."""
    written(folder / "benchmarks.json", BENCHMARKS)
    data = {
        "version": 2, "commit_hash": commit, "env_name": "existing-py", "date": 1763600000000, "python": "3.12",
        "params": {"machine": "bench-1", "python": "3.12", "cpu": "AMD EPYC", "os": "Linux", "numpy": "2.4"},
        "requirements": {}, "env_vars": {}, "result_columns": COLUMNS, "results": rows or ROWS, "durations": {},
    }  # fmt: skip
    return written(folder / "bench-1" / f"{commit[:8]}-existing-py.json", {**data, **changes})


def written(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path
