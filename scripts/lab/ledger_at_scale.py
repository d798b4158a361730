"""Seconds and memory of the ledger of a large nsys export: repeats a small export until it is large, then reads it.

Run `scripts/ledger_at_scale SMALL.sqlite [--megabytes 1000] [--keep LARGE.sqlite]`.
"""

import argparse
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from prism_bench.analysis.bounds.profiles import ledger
from prism_bench.io.documents import json_line
from prism_bench.io.workers import environment
from prism_bench.profilers import nsys

GROWING = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
           "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")  # fmt: skip


def grow(small: Path, large: Path, megabytes: int) -> None:
    """Copy the export, then append its rows again and again: each time later, with new correlation ids."""
    large.write_bytes(small.read_bytes())
    with sqlite3.connect(large) as database:
        database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        growing = [table for table in GROWING if table in tables]
        first, last = spans(database, growing)
        most = max(maximum(database, table, "correlationId") for table in growing if table != "NVTX_EVENTS")
        for table in growing:
            database.execute(f"CREATE TEMP TABLE small_{table} AS SELECT * FROM {table}")
        turn = 0
        while large.stat().st_size < megabytes << 20:
            turn += 1
            for table in growing:
                append(database, table, turn * (last - first + 1000), turn * (most + 1))
            database.commit()


def spans(database: sqlite3.Connection, tables: Sequence[str]) -> tuple[int, int]:
    """Return the first start and the last end in the tables."""
    found = [database.execute(f'SELECT MIN(start), MAX("end") FROM {table}').fetchone() for table in tables]
    return min(a for a, _ in found if a is not None), max(b for _, b in found if b is not None)


def maximum(database: sqlite3.Connection, table: str, column: str) -> int:
    """Return the largest value of the column, 0 for an empty table."""
    return database.execute(f"SELECT COALESCE(MAX({column}), 0) FROM {table}").fetchone()[0]


def append(database: sqlite3.Connection, table: str, later: int, further: int) -> None:
    """Append the rows of the small export, `later` in time and with correlation ids increased by `further`."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    moved = {"start": f"start + {later}", "end": f'"end" + {later}', "correlationId": f"correlationId + {further}"}
    terms = ", ".join(moved.get(column, f'"{column}"') for column in columns)
    database.execute(f"INSERT INTO {table} SELECT {terms} FROM small_{table}")


def read(path: Path) -> None:
    """Print the seconds, the peak of memory and the ledger's totals; run it in a process that does nothing else."""
    import resource  # POSIX alone

    before = time.perf_counter()
    timeline = nsys.read_export(path)
    taken = time.perf_counter() - before
    total = ledger(timeline).total
    seconds, peak = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json_line(
            {
                "read_seconds": round(taken, 1),
                "seconds": round(seconds, 1),
                "peak_megabytes": peak // 1024,
                "file_megabytes": path.stat().st_size >> 20,
                "kernels": total.kernels,
                "launch_calls": total.launch_calls,
                "gaps": total.gap_count,
            }
        )
    )


def main() -> None:
    """Make the large export and read it in a child process, or, in that process, read it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("small", type=Path, help="an SQLite export of nsys")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="where to keep the large export")
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        read(chosen.small)
        return
    with tempfile.TemporaryDirectory() as folder:
        large = chosen.keep or Path(folder) / "large.sqlite"
        grow(chosen.small, large, chosen.megabytes)
        command = [sys.executable, "-m", "lab.ledger_at_scale", str(large), "--read"]
        subprocess.run(command, check=True, env=environment())


if __name__ == "__main__":
    main()
