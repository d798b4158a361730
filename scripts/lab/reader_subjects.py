"""What every reader is tried on: an intact file, ways to bend it, and the numbers that it may give afterwards.

`facts` are the numbers that a reader took from a file, by name. `allowed` reads the bent file again, by other means and
without trust: the exact facts that it must give (a dict), or the numbers that are in it (a set), from which each fact
must be made.
"""

import gzip
import re
import shutil
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lab.bending import Bent, bend_bytes, bend_database, bend_json, bend_table
from prism_bench.analysis.bounds.profiles import ledger
from prism_bench.profilers import ncu, nsys, tools
from prism_bench.profilers import timeline as timeline_file
from prism_bench.profilers.metrics import chips_in
from prism_bench.profilers.timeline import Timeline
from prism_bench.record import store
from prism_bench.record.formats import read_foreign
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.report.asv import results

Facts = dict[str, float]
Bender = Callable[[Path, Random], Bent]
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_SCALES = (1.0, 1e-9, 1e-6, 1e-3, 1e-2, 1e3, 1e6, 1e9)
_WORK = {"CUPTI_ACTIVITY_KIND_KERNEL": 0, "CUPTI_ACTIVITY_KIND_MEMCPY": 1, "CUPTI_ACTIVITY_KIND_MEMSET": 2,
         "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": 3}  # fmt: skip
_CAPTURES = Path(__file__).with_name("captures")  # small intact files, hand-made: nobody's captures are shipped


@dataclass(frozen=True)
class Subject:
    """One reader with a file that it takes: `make` writes the file into a folder, `read` gives its facts."""

    name: str
    make: Callable[[Path], Path]
    benders: tuple[Bender, ...]
    read: Callable[[Path], Facts]
    allowed: Callable[[Path], Facts | set[float] | None]


def _ncu(path: Path) -> Facts:
    launches = ncu.read(path)
    return {
        f"{one.process} {one.id} {name}": quantity.value
        for one in launches
        for name, quantity in one.metrics.items()
        if quantity.value is not None
    }


def _nsys_table(path: Path) -> Facts:
    table = nsys.read(path)
    rows = enumerate(table.rows)
    return {f"{i} {name}": value for i, row in rows for name, value in row.items() if isinstance(value, float)}


def _nsys_trace(path: Path) -> Facts:
    facts = _nsys_table(path)
    ledger(nsys.timeline(nsys.read(path), str(path)))
    return facts


def _timeline(timeline: Timeline) -> Facts:
    """How often each piece of work, call and range is there; what `ledger` adds up must fit to it."""
    work, calls, ranges = timeline.work, timeline.calls, timeline.ranges
    name = [*timeline.names, None]
    sizes = dict(zip(work.transfers.tolist(), work.bytes.tolist(), strict=True))
    found = Counter(
        f"work {work.start[i]} {work.length[i]} {work.device[i]} {work.kind[i]} {name[work.name[i]]} {sizes.get(i, 0)}"
        for i in range(len(work))
    )
    found.update(f"call {calls.start[i]} {calls.length[i]} {name[calls.name[i]]}" for i in range(len(calls)))
    found.update(f"range {ranges.start[i]} {ranges.end[i]} {name[ranges.name[i]]}" for i in range(len(ranges)))
    kernels = sum(int(length) for length, kind in zip(work.length, work.kind, strict=True) if kind == 0)
    found["kernel nanoseconds"] = round(ledger(timeline).total.kernel_seconds * 1e9) - kernels  # 0 where all is well
    return dict(found)


def _rows_of_export(path: Path) -> Facts | None:
    """Return the same by plain queries, one row at a time; None where a row cannot be read."""
    found: Counter[str] = Counter()
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            names = dict(database.execute("SELECT id, value FROM StringIds")) if "StringIds" in tables else {}
            for table, columns in _columns(database, tables).items():
                for values in database.execute(f'SELECT {", ".join(columns)} FROM "{table}"'):
                    found.update(_row(table, dict(zip(columns.values(), values, strict=True)), names))
    except (sqlite3.Error, TypeError, KeyError):
        return None
    return {**found, "kernel nanoseconds": 0}


def _columns(database: sqlite3.Connection, tables: set[str]) -> dict[str, dict[str, str]]:
    """By table, its columns quoted and bare."""
    wanted = [table for table in (*_WORK, "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS") if table in tables]
    listed = {table: [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')] for table in wanted}
    return {table: {f'"{name}"': name for name in names} for table, names in listed.items()}


def _row(table: str, row: dict, names: dict) -> list[str]:
    """Return the fact of one row; a TypeError or KeyError where it lacks what a reader needs."""
    if table == "NVTX_EVENTS":
        if row["eventType"] + 0 not in (59, 60) or row["end"] is None:
            return []
        return [f"range {row['start'] + 0} {row['end'] + 0} {row.get('text') or names.get(row.get('textId'))}"]
    if row["end"] - row["start"] < 0:
        raise TypeError("it ends before it starts")
    if table == "CUPTI_ACTIVITY_KIND_RUNTIME":
        return [f"call {row['start']} {row['end'] - row['start']} {names.get(row['nameId'])}"]
    name = next((row[column] for column in ("shortName", "demangledName") if row.get(column) is not None), None)
    size = 0 if table.endswith(("KERNEL", "GRAPH_TRACE")) else row["bytes"] + 0
    where = f"{row['start']} {row['end'] - row['start']} {row['deviceId'] + 0}"
    return [f"work {where} {_WORK[table]} {names[name] if name is not None else None} {size}"]


def _imported(path: Path) -> Facts:
    """Every sample of what was imported; each record must be one that can be kept and read again."""
    facts: Facts = {}
    for record in read_foreign(path).records:
        store.read(store.save(record, path.parent / "kept.json.gz"))
        for case in record.cases:
            for one in case.measurements:
                facts |= {f"{case.name} {one.metric} {i}": value for i, value in enumerate(one.samples)}
    return facts


def _listed(path: Path) -> Facts:
    """Write a record into a folder of asv whose list of benchmarks is bent."""
    one = Measurement("cold_time", "kernel", ((1e-3, 1e-3),))
    case = CaseResult("k[n=1]", "k", "basic", "S0", {"n": 1}, 4, None, "ok", measurements=(one,))
    facts = {"machine": {"id": "bench-1"}, "software": {}, "protocol": {"version": "1"}, "commit": "0" * 40}
    record = RunRecord(created="2026-01-01T00:00:00", backend="null", cases=(case,), **facts)
    return _imported(results.write(record, path.parent))


def _counters(path: Path) -> Facts:
    return {f"{chip.capability} {counter}": 1.0 for chip in chips_in(path).values() for counter in chip.counters}


def _sanitizer(path: Path) -> Facts:
    found = tools.parse(path.read_text("utf-8", "replace"), "memcheck", {"k[n=1]": ("k",)})
    return {} if found.counted is None else {"counted": float(found.counted)}


def numbers_in(path: Path) -> set[float]:
    """Every number in the text of the file and in the binary files in its folder, in any unit and locale."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    found = {0.0, 1.0}
    for word in _NUMBER.findall(text.decode("utf-8", "replace")):
        for plain in {word.replace(",", ""), word.replace(".", "").replace(",", "."), *word.split(",")}:
            try:
                found.add(float(plain))
            except ValueError:
                continue
    for beside in path.parent.glob("bin/*.bin"):
        found |= {value for (value,) in struct.iter_unpack("<f", beside.read_bytes()[: beside.stat().st_size // 4 * 4])}
    return {value * scale for value in found for scale in _SCALES}


def _bend_samples(path: Path, draw: Random) -> Bent:
    """Bend one of the binary files next to nvbench's JSON."""
    return bend_bytes(draw.choice(sorted(path.parent.glob("bin/*.bin"))), draw)


def _bend_list(path: Path, draw: Random) -> Bent:
    """Bend the list of benchmarks above a result of asv's."""
    return draw.choice((bend_json, bend_bytes))(path.parent.parent / "benchmarks.json", draw)


def captured(name: str, file: str) -> Callable[[Path], Path]:
    """Return what copies the small captures of that name into a folder, and gives the path of `file` in it."""

    def make(folder: Path) -> Path:
        shutil.copytree(_CAPTURES / name, folder, dirs_exist_ok=True)
        return folder / file

    return make


def nsys_export(folder: Path) -> Path:
    """Write an SQLite export of nsys: five kernels, two copies, a graph, their calls and a range."""
    path = folder / "export.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((_CAPTURES / "nsys_export.sql").read_text())
    return path


def _timeline_file(folder: Path) -> Path:
    """Write a timeline as `ledger` keeps it."""
    path = folder / "timeline.npz"
    timeline_file.save(nsys.read_export(nsys_export(folder)), path)
    return path


_TABLE, _JSON = (bend_table, bend_table, bend_bytes), (bend_json, bend_json, bend_json, bend_bytes)
_EXPORT = (bend_database, bend_database, bend_database, bend_bytes)


def _exact(read: Callable[[Path], Facts], intact: Callable[[Path], Path]) -> Callable[[Path], Facts]:
    """For files with a checksum: whatever is accepted gives what the intact file gives."""

    def facts(path: Path) -> Facts:
        folder = path.parent / "intact"
        folder.mkdir(exist_ok=True)
        return read(intact(folder))

    return facts


SUBJECTS = (
    Subject("ncu, long CSV", captured("ncu_long", "ncu.csv"), _TABLE, _ncu, numbers_in),
    Subject("ncu, wide CSV", captured("ncu_wide", "ncu.csv"), _TABLE, _ncu, numbers_in),
    Subject("nsys stats, kernels", captured("nsys_kernels", "kernels.csv"), _TABLE, _nsys_table, numbers_in),
    Subject("nsys stats, trace", captured("nsys_trace", "trace.csv"), _TABLE, _nsys_trace, numbers_in),
    Subject("nsys SQLite", nsys_export, _EXPORT, lambda path: _timeline(nsys.read_export(path)),
            _rows_of_export),
    Subject("timeline", _timeline_file, (bend_bytes,), lambda path: _timeline(timeline_file.load(path)),
            _exact(lambda path: _timeline(timeline_file.load(path)), _timeline_file)),
    Subject("compute-sanitizer", captured("sanitizer_words", "words.txt"), (bend_bytes,), _sanitizer, numbers_in),
    Subject("table of counters", captured("counters", "support.csv"), _TABLE, _counters, lambda _: None),
    Subject("asv, results", captured("asv", "bench-1/01234567-existing-py.json"), (*_JSON, _bend_list), _imported,
            numbers_in),
    Subject("asv, list to write into", captured("asv", "benchmarks.json"), _JSON, _listed, lambda _: None),
    Subject("nvbench", captured("nvbench", "out.json"), (*_JSON, _bend_samples), _imported, numbers_in),
    Subject("Google Benchmark", captured("google_benchmark", "gbench.json"), _JSON, _imported, numbers_in),
    Subject("pytest-benchmark", captured("pytest_benchmark", "pytest.json"), _JSON, _imported, numbers_in),
    Subject("hyperfine", captured("hyperfine", "hyperfine.json"), _JSON, _imported, numbers_in),
    Subject("trace of PyTorch", captured("torch_profiler", "trace.json"), _JSON, _imported, numbers_in),
)  # fmt: skip


def subjects() -> tuple[Subject, ...]:
    """Return the readers of the core and of extensions."""
    from lab import memory_reader

    return (*SUBJECTS, *memory_reader.subjects())


def sample_subjects(folder: Path) -> tuple[Subject, ...]:
    """Return the subjects of other people's captures in the folder: CSV of ncu and SQLite exports of nsys."""
    tables = [
        Subject(f"ncu, {path.name}", _copied(path), _TABLE, _ncu, numbers_in)
        for path in sorted(folder.glob("ncu_*.csv"))
        if "support" not in path.name
    ]
    exports = [
        Subject(
            f"nsys, {path.name}", _copied(path), _EXPORT, lambda one: _timeline(nsys.read_export(one)), _rows_of_export
        )
        for path in sorted(folder.glob("nsys_*.sqlite"))
    ]
    return (*tables, *exports)


def _copied(path: Path) -> Callable[[Path], Path]:
    return lambda folder: Path(shutil.copyfile(path, folder / path.name))
