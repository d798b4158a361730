"""Table of what changes the bits of each kernel and peer of a catalogue, by the checks of `verify --bitwise`.

Batches are compared along the axis that the spec names, else along the first axis of all outputs where an input has it,
too. That axis is no promise, and no batch either where values of its other indices enter, as in a sum over it: then it
is called mixed. A worker takes one case after the other; where a case ends it, another worker goes on. A
table that exists is continued.

    scripts/bits --backend cuda --label S1 --output reports/bits/h200.csv
"""

import argparse
import csv
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

from prism_bench.backends import open_backend
from prism_bench.catalogue import default_folder, discover
from prism_bench.errors import described
from prism_bench.io.workers import environment
from prism_bench.run.bitwise import OTHER_VALUES, BitChecks, Entry, peer_checks
from prism_bench.run.verification import complaint, passed, verify_prepared
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec

CHECKS = ("repeated", "order", "configurations", "batch", "contention")
COLUMNS = ("case", "subject", "class", *CHECKS, "axis", "ulps", "cause")
_ENDED = "ended its process"
_STARTED = "not done"
_SECONDS = 300.0  # of a case


def batch_axes(spec: KernelSpec) -> tuple[str, ...]:
    """Return the axes that the spec names, else the first axis of all outputs where it is an axis of an input, too."""
    firsts = {output.shape.split()[0] if output.shape.split() else "" for output in spec.outputs}
    axis = firsts.pop() if len(firsts) == 1 else ""
    is_batch = all(axis in workload for workload in spec.workloads.values())
    is_batch = is_batch and any(axis in array.shape.split() for array in spec.inputs)
    return spec.batch_invariant or ((axis,) if is_batch else ())


def row(case: str, subject: str, entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the row of a kernel or peer; `class` names the checks that differ, `same`, or `-` without a comparison."""
    by_check = {entry["check"]: entry for entry in entries}
    differing = [check for check in CHECKS if _cell(by_check.get(check)) == "differs"]
    cells = {check: _cell(by_check.get(check)) for check in CHECKS}
    is_compared = any(entry["same"] is not None for entry in by_check.values())
    first = by_check[differing[0]] if differing else {}
    left_out = next((entry["left_out"] for entry in by_check.values() if entry["same"] is None), "")
    return {
        "case": case,
        "subject": subject,
        "class": " ".join(differing) or ("same" if is_compared else "-"),
        **cells,
        "axis": by_check.get("batch", {}).get("axis", ""),
        "ulps": "" if first.get("ulps") is None else first["ulps"],
        "cause": first.get("cause", "") if is_compared else left_out,
    }


def _cell(entry: Mapping[str, Any] | None) -> str:
    if entry is None or entry["same"] is None:
        return "-"
    is_mixed = entry["passed"] and entry["check"] == "batch" and entry["against"].startswith(OTHER_VALUES)
    return f"{entry['launches']} same" if entry["same"] else "mixed" if is_mixed else "differs"


def rows_of(backend_name: str, case: Case) -> list[dict[str, Any]]:
    """Return the rows of a case and of its peers."""
    backend = open_backend(backend_name)
    try:
        axes = batch_axes(case.spec)
        with backend.prepare(case, case.inputs(0)) as runnable:
            entries = verify_prepared(backend, runnable, (0,))
            if not passed(entries):
                return [row(case.name, "kernel", ()) | {"cause": complaint(case, backend_name, entries)}]
            rows = [row(case.name, "kernel", BitChecks(backend, runnable, axes=axes).every())]
            by_peer: dict[str, list[Entry]] = {}
            for entry in peer_checks(backend, runnable, 0, lambda _: None, {}, axes):
                by_peer.setdefault(entry["subject"], []).append(entry)
            return rows + [row(case.name, peer, entries) for peer, entries in by_peer.items()]
    except Exception as error:
        if not backend.answers():
            raise
        return [row(case.name, "kernel", ()) | {"cause": described(error).partition("\n")[0]}]


def written(table: Path) -> list[dict[str, str]]:
    """Return the rows of a table; an empty list without one."""
    return list(csv.DictReader(table.read_text().splitlines())) if table.is_file() else []


def _append(table: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    is_new = not table.is_file() or not table.stat().st_size
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, list[str](COLUMNS), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def work(backend: str, cases: Sequence[Case], table: Path) -> None:
    """Write the rows of the cases that the table lacks; each case begins with a row that has its name only."""
    known = {line["case"] for line in written(table)}
    for case in cases:
        if case.name in known:
            continue
        _append(table, [{"case": case.name, "subject": _STARTED, "cause": _ENDED}])
        timer = Timer(_SECONDS, os._exit, (1,))
        timer.daemon = True
        timer.start()
        rows = rows_of(backend, case)
        timer.cancel()
        _append(table, rows)


def finished(table: Path) -> None:
    """Remove the rows of cases that were begun and have others; those of cases that ended their process stay."""
    lines = written(table)
    done = {line["case"] for line in lines if line["subject"] != _STARTED}
    kept = [line for line in lines if line["subject"] != _STARTED or line["case"] not in done]
    table.unlink(missing_ok=True)
    _append(table, kept)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table, and print how many kernels and peers are in each class."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", default="emulator")
    parser.add_argument("--label", default="S0")
    parser.add_argument("--catalogue", type=Path, default=default_folder())
    parser.add_argument("--output", type=Path, required=True, help="the table, a CSV file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("patterns", nargs="*", help="kernels, families or cases; default: all")
    chosen = parser.parse_args(arguments)
    cases = discover(chosen.catalogue).cases(tuple(chosen.patterns), (chosen.label,))
    if chosen.worker:
        work(chosen.backend, cases, chosen.output)
        return
    command = [sys.executable, "-m", "lab.bits", "--worker", "--backend", chosen.backend, "--label", chosen.label]
    command += ["--catalogue", str(chosen.catalogue), "--output", str(chosen.output), *chosen.patterns]
    while {case.name for case in cases} - (before := {line["case"] for line in written(chosen.output)}):
        status = subprocess.run(command, env=environment()).returncode
        if before == {line["case"] for line in written(chosen.output)}:
            sys.exit(f"bits: the worker ended with {status} before a case")
    finished(chosen.output)
    counts: dict[str, int] = {}
    for line in written(chosen.output):
        counts[line["class"] or _ENDED] = counts.get(line["class"] or _ENDED, 0) + 1
    print("\n".join(f"{count:5} {name}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
