"""Time and memory of commands on a store of years: thousands of runs as monthly shards, the newest with raw samples.

Every run is the committed H200 record's timed cases, repeated to the number asked for, with each measurement moved by
random normal noise; from time to time a kernel's machine code changes and its times with it, and the driver. Each
command runs in its own process, and is a row: seconds, processor seconds, and the most memory that
it held. Modules are compiled by the first command that imports them, as in an installation, whatever the caller's
environment asks for. `--table` writes the rows as CSV.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy

from lab import trend_at_scale
from prism_bench.io.workers import environment
from prism_bench.record.schema import checked
from prism_bench.record.store import parquet, points
from prism_bench.record.store.history import add_record
from prism_bench.record.store.points import PointBlock, block, points_in

FIRST, RAW = datetime(1999, 1, 1, 3), 3
STEP_EVERY, DRIVER_EVERY, STEP = 97, 365, 1.06  # runs, and by what the case becomes slower
COLUMNS: tuple[str, ...] = ("what", "seconds", "processor_seconds", "memory_mb", "kb")


@dataclass(frozen=True)
class Scale:
    """How many runs of how many cases, and the folder of their records."""

    runs: int
    cases: int
    folder: Path


def made(scale: Scale) -> None:
    """Make the store: a shard for each month, and of the newest RAW runs their records."""
    plain = trend_at_scale.model(scale.cases)
    record = checked(plain, "the model")
    first = replace(block("", "", *points_in(record, "")), details=points.details_in(record))
    months: dict[str, list[PointBlock]] = {}
    levels = numpy.ones(first.rows)
    for day in range(scale.runs - RAW):
        if day % STEP_EVERY == STEP_EVERY - 1:
            moved = numpy.random.default_rng(day).integers(first.rows)
            levels[first.columns["case"] == first.columns["case"][moved]] *= STEP if day % 2 else 1 / STEP
        one = _run(first, day, levels)
        month = _created(day)[:7]
        if month not in months and months:
            _written(scale.folder, *months.popitem())
        months.setdefault(month, []).append(one)
    for month, blocks in months.items():
        _written(scale.folder, month, blocks)
    for day in range(scale.runs - RAW, scale.runs):
        one_more(scale, day)


def one_more(scale: Scale, day: int) -> None:
    """Add a run: its record, and the small shard that `prism-bench run` makes of it."""
    folder = scale.folder / trend_at_scale.MACHINE
    add_record(trend_at_scale.record(day, folder, scale.cases, FIRST), scale.folder)


def _created(day: int) -> str:
    return (FIRST + timedelta(days=day)).isoformat()


def _run(first: PointBlock, day: int, levels: Any) -> PointBlock:
    """Return the points of a day's run; its numbers have four digits, as those of samples have."""
    rng = numpy.random.default_rng(day)
    by = levels * (1 + rng.normal(0, trend_at_scale.NOISE, first.rows))
    columns = {
        **first.columns,
        "value": _short(first.columns["value"] * by),
        "clock": (first.columns["clock"] * (1 + rng.normal(0, 1e-3, first.rows))).astype("f4"),
    }
    medians = first.details[points.PROCESSES]
    near = {name: first.details[name] * by for name in points.QUARTILES}
    near |= {"power": _short(first.details["power"] * by).astype("f4")}
    near[points.PROCESSES] = [
        own * factor * (1 + rng.normal(0, 1e-3, len(own))) for own, factor in zip(medians, by.tolist(), strict=True)
    ]
    if first.facts is None:
        raise ValueError("the model has no facts")
    name = f"{trend_at_scale.MACHINE}/{FIRST + timedelta(days=day):%Y%m%dT%H%M%S}Z-{day:08x}.json.gz"
    software = first.facts.software | {"driver": f"{500 + day // DRIVER_EVERY}.1"}
    facts = replace(first.facts, file=name, created=_created(day), software=software, machine=trend_at_scale.MACHINE)
    return replace(
        first, file=name, seal=f"{day} generated", facts=facts, columns=columns, details={**first.details, **near}
    )


def _short(values: Any) -> Any:
    """Return the values with four digits; zeros, and what is not finite, as they are."""
    with numpy.errstate(all="ignore"):
        scale = 10.0 ** (3 - numpy.floor(numpy.log10(numpy.abs(values))))
        return numpy.where(numpy.isfinite(scale), numpy.round(values * scale) / scale, values)


def _written(folder: Path, month: str, blocks: list[PointBlock]) -> None:
    place = folder / trend_at_scale.MACHINE / "points" / f"{month}.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_shard(place, [parquet.part_of(one) for one in blocks])


def measured(scale: Scale, caches: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each command: first without what caches hold, then with it, then with one run more."""
    runs, noise = ("--runs", str(scale.folder)), ("--noise", str(scale.folder.parent / "noise"))
    yield _timed("trend, first", caches, "trend", *runs, *noise)
    yield _timed("trend, again", caches, "trend", *runs, *noise)
    yield _timed("check", caches, "check", *runs, *noise)
    yield _timed("digest", caches, "comment", "--since", "7d", *runs)
    records = scale.folder / trend_at_scale.MACHINE
    one_more(scale, next(day for day in count(scale.runs) if not any(records.glob(f"*-{day:08x}.json.gz"))))
    yield _timed("trend, one run more", caches, "trend", *runs, *noise)
    yield _timed("check after it", caches, "check", *runs, *noise)
    yield _timed("digest after it", caches, "comment", "--since", "7d", *runs)
    yield _timed("report", caches, "report", *runs, "--output", str(caches / "site"))
    yield _timed("export", caches, "export", *runs, "--all", "--output", str(caches / "all.parquet"))


def _timed(what: str, caches: Path, *words: str) -> dict[str, object]:
    """Run a command; return its row. Its own exit code is a finding, and no matter here, unless it is 2."""
    inherited = {**environment(), "PRISM_BENCH_CACHE": str(caches), "PYTHONPYCACHEPREFIX": str(caches / "bytecode")}
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    command = subprocess.Popen(
        [sys.executable, "-m", "prism_bench", *words, "--json"], env=inherited, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(command.pid, 0)
    command.returncode = os.waitstatus_to_exitcode(status)
    if command.returncode not in (0, 1, 3):
        raise RuntimeError(f"prism-bench {' '.join(words)} ended with {command.returncode}")
    row = {
        "what": what,
        "seconds": f"{time.perf_counter() - began:.1f}",
        "processor_seconds": f"{used.ru_utime + used.ru_stime:.1f}",
        "memory_mb": f"{used.ru_maxrss / 1000 * 1024 / 1000:.0f}",
    }
    print(", ".join(row.values()), flush=True)
    return dict(row)


def size_row(scale: Scale) -> dict[str, object]:
    """Return the row with the bytes of a run in the shards of months."""
    paths = list((scale.folder / trend_at_scale.MACHINE / "points").glob("*.parquet"))
    size = sum(path.stat().st_size for path in paths)
    kb = f"{size / (scale.runs - RAW) / 1000:.1f}"
    print(f"{kb} kB a run", flush=True)
    return {"what": "kB a run, without raw samples", "seconds": "", "processor_seconds": "", "memory_mb": "", "kb": kb}


def main() -> None:
    """Make the store where it is missing, measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="a folder for the store, which is made where it has none")
    parser.add_argument("--table", type=Path, help="a CSV file for the rows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scale = Scale(options.runs, options.cases, options.keep or Path(name) / "runs")
        if not scale.folder.is_dir():
            made(scale)
        rows = [size_row(scale), *measured(scale, Path(name) / "cache")]
        if options.table:
            with options.table.open("w", newline="") as file:
                table = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
                table.writeheader()
                table.writerows(rows)
