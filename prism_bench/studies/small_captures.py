"""Small intact files of every kind that a reader takes, made here, so that nobody's captures have to be shipped."""

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from prism_bench.profilers import nsys_sqlite, timeline_file
from prism_bench.strict_json import json_text

_IDENTITY = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
             "Grid Size", "Device", "CC")  # fmt: skip
_METRICS = (("dram__bytes.sum", "byte", "134,221,568"), ("gpu__time_duration.sum", "ns", "1,292,928"),
            ("sm__warps_active.avg.pct", "%", "61.84"), ("launch__registers_per_thread", "register/thread", "32"),
            ("launch__policy", "", "n/a"))  # fmt: skip
_ONE = 7 << 24
_TABLES = {
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "StringIds": "id INTEGER, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, correlationId, globalPid, shortName",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, correlationId, globalPid, bytes",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "NVTX_EVENTS": "start, end, eventType, text, textId, globalTid",
}


def ncu_long(folder: Path) -> Path:
    """Write a table of ncu with a row for each metric of two launches."""
    rows = [(*_launch(number), "", *metric) for number in range(2) for metric in _METRICS]
    return _csv(folder / "ncu.csv", (*_IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value"), rows)


def ncu_wide(folder: Path) -> Path:
    """Write a table of ncu with a row for each of three launches, below a row of units."""
    names, units, values = zip(*_METRICS, strict=True)
    rows = [("",) * len(_IDENTITY) + units, *((*_launch(number), *values) for number in range(3))]
    return _csv(folder / "ncu.csv", (*_IDENTITY, *names), rows)


def _launch(number: int) -> tuple[str, ...]:
    return (str(number), "7", "python", "127.0.0.1", f"void f<{number}, 2>(int)", "1", "7", "(64, 1, 1)", "(9, 32, 1)",
            "0", "9.0")  # fmt: skip


def _csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    lines = [",".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    path.write_text("==PROF== Connected to process 7\n" + "\n".join(lines) + "\n")
    return path


def nsys_kernels(folder: Path) -> Path:
    """Write the table of kernels of `nsys stats`."""
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    rows = ['62.5,5000,2,2500.5,2500,1000,4000,2121.3,"f<1, 2>(int)"', "37.5,3000,3,1000.0,1000,900,1100,100.0,g"]
    return _text(folder / "kernels.csv", "\n".join(["Processing [x]...", head, *rows]))


def nsys_trace(folder: Path) -> Path:
    """Write the trace of a device by `nsys stats`."""
    head = "Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Strm,Name"
    rows = ["1000,500.5,7,,NVIDIA H200 (0),7,f", "1700,100,8,1.5,NVIDIA H200 (0),7,[CUDA memcpy HtoD]",
            "2000,25.5,9,,NVIDIA H200 (1),7,g"]  # fmt: skip
    return _text(folder / "trace.csv", "\n".join([head, *rows]))


def _text(path: Path, text: str) -> Path:
    path.write_text(f"{text}\n")
    return path


def nsys_export(folder: Path) -> Path:
    """Write an SQLite export of nsys: five kernels, two copies, their calls and a range."""
    rows: Mapping[str, Sequence[tuple[Any, ...]]] = {
        "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.21.0")],
        "StringIds": [(1, "f"), (2, "cudaLaunchKernel_v7000"), (3, "cudaDeviceSynchronize"), (4, "named"), (5, "g")],
        "CUPTI_ACTIVITY_KIND_KERNEL": [(100 * i, 100 * i + 70, i % 2, i, _ONE, 1 + 4 * (i % 2)) for i in range(1, 6)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [(800, 900, 0, 6, _ONE, 4096), (900, 990, 1, 7, _ONE, 1 << 20)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [(60 * i, 60 * i + 30, _ONE + 1, i, 2) for i in range(1, 8)],
        "NVTX_EVENTS": [(0, 500, 59, "own", None, _ONE + 1), (500, 1000, 60, None, 4, _ONE + 1),
                        (1, None, 34, "mark", None, _ONE + 1)],
    }  # fmt: skip
    path = folder / "export.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        for table, columns in _TABLES.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" * len(columns.split(", ")))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
    return path


def timeline(folder: Path) -> Path:
    """Write a timeline as `ledger` keeps it."""
    path = folder / "timeline.npz"
    timeline_file.save(nsys_sqlite.read(nsys_export(folder)), path)
    return path


def sanitizer_words(folder: Path) -> Path:
    """Write what compute-sanitizer prints next to a program."""
    finding = "========= Invalid __global__ write of size 4 bytes\n=========     at k(int *)+0x10 in k.cu:12\n"
    return _text(folder / "words.txt", f"@@ begin k[n=1]\n{finding}@@ end k[n=1]\n========= ERROR SUMMARY: 1 error")


def nvbench(folder: Path) -> Path:
    """Write nvbench's JSON of three states, one with samples and clocks next to it."""
    (folder / "bin").mkdir()
    (folder / "bin" / "0.bin").write_bytes(struct.pack("<3f", 1e-5, 2e-5, 4e-5))
    (folder / "bin" / "1.bin").write_bytes(struct.pack("<3f", 1.98e9, 1.98e9, 1.95e9))
    files = [_summary("nv/json/bin:nv/cold/sample_times", filename="bin/0.bin", size="3"),
             _summary("nv/json/freqs-bin:nv/cold/sample_freqs", filename="bin/1.bin", size="3")]  # fmt: skip
    mean = _summary("nv/cold/time/gpu/mean", value="2.5e-05")
    batch = _summary("nv/batch/time/gpu/mean", value="1.5e-05")
    states = [_state("1024", [*files, mean, batch]), _state("2048", [mean]), _state("4096", [], "too large")]
    return _json(folder / "out.json", {
        "meta": {"version": {"json": {"string": "1.0.0"}, "nvbench": {"string": "0.1.0"}}},
        "devices": [{"id": 0, "name": "NVIDIA H200", "number_of_sms": 132, "l2_cache_size": 62914560}],
        "benchmarks": [{"name": "copy", "axes": [], "states": states}],
    })  # fmt: skip


def _summary(tag: str, **data: str) -> dict[str, Any]:
    return {"tag": tag, "name": tag, "data": [{"name": name, "value": value} for name, value in data.items()]}


def _state(n: str, summaries: list[Any], skipped: str = "") -> dict[str, Any]:
    axes = [{"name": "n", "type": "string", "value": n}]
    end = {"is_skipped": bool(skipped), "skip_reason": skipped}
    return {"device": 0, "axis_values": axes, "summaries": summaries, **end}


def google_benchmark(folder: Path) -> Path:
    """Write Google Benchmark's JSON of two benchmarks with repetitions."""
    context = {"date": "2026-11-20T10:00:00+01:00", "host_name": "bench-1", "num_cpus": 16, "mhz_per_cpu": 3000,
               "library_build_type": "release", "json_schema_version": 1}  # fmt: skip
    rows = [{"name": name, "run_name": name, "run_type": "iteration", "repetition_index": i, "iterations": 100,
             "real_time": 10.5 + i, "cpu_time": 10.25 + i, "time_unit": unit}
            for name, unit in (("BM_sort/n:1024/8", "us"), ("BM_copy", "ns")) for i in range(3)]  # fmt: skip
    return _json(folder / "gbench.json", {"context": context, "benchmarks": rows})


def asv(folder: Path) -> Path:
    """Write a result file of asv's, with its list of benchmarks."""
    listed = {
        "version": 2,
        "times.Cold.track_cold_time": {"unit": "seconds", "param_names": ["case"], "version": "1 cold_time",
                                       "params": [["'k[n=1]'", "'gone[n=2]'"]]},
        "sorting.time_sort": {"unit": "seconds", "param_names": ["n", "kind"], "version": "aa"},
    }  # fmt: skip
    rows = {
        "times.Cold.track_cold_time": [[1e-3, None], [["'k[n=1]'", "'gone[n=2]'"]], "1 cold_time", 1763700000000, 3.0,
                                       [[1e-3, 1.1e-3, 9e-4], None]],
        "sorting.time_sort": [[0.5, 0.75], [["100"], ["'quick'", "'heap'"]], "aa", 1763700060000],
    }  # fmt: skip
    _json(folder / "benchmarks.json", listed)
    return _json(folder / "bench-1" / "01234567-existing-py.json", {
        "version": 2, "commit_hash": "0123456789abcdef", "env_name": "existing-py", "date": 1763600000000,
        "params": {"machine": "bench-1", "python": "3.12", "cpu": "AMD EPYC", "os": "Linux", "numpy": "2.4"},
        "python": "3.12", "requirements": {}, "env_vars": {}, "durations": {}, "results": rows,
        "result_columns": ["result", "params", "version", "started_at", "duration", "samples"],
    })  # fmt: skip


def _json(path: Path, plain: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(plain))
    return path


def counters(folder: Path) -> Path:
    """Write a table of which chip has which counter."""
    rows = ["dram__bytes,counter,counter", "sm__cycles,,counter", "lts__hits,ratio,"]
    return _text(folder / "support.csv", "\n".join(["metric,GA100_8.0,GH100_9.0", *rows]))
