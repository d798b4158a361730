"""hyperfine's JSON (`--export-json`) as a record: a case for each command, in wall times.

As sharkdp/hyperfine writes it (`src/export/json.rs`, `src/benchmark/benchmark_result.rs`): `{results: [{command, times,
mean, median, ..., exit_codes, parameters}]}` in seconds, with a time for each run; a file may lack `times`, and then
the median is the only number. A command that was given a name has it as `command`. hyperfine writes neither time,
machine nor commit: the file's last change is the guess.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from prism_bench.record.formats.foreign import Imported, ImportedRows, case, field, json_object, record, runs_of
from prism_bench.record.run_record import CaseResult
from prism_bench.units import count_text

BACKEND = "hyperfine"


def recognised(data: object) -> bool:
    """Return whether the JSON is hyperfine's."""
    results = data.get("results") if isinstance(data, dict) else None
    return isinstance(results, list) and any(isinstance(row, dict) and "command" in row for row in results)


def read(path: Path) -> Imported:
    """Return the record of the file: one case for each command and its parameters."""
    rows = ImportedRows(path)
    for index, row in enumerate(field(json_object(path), "results", list, str(path))):
        place = f"{path}: results[{index}]"
        with rows.row(place):
            rows.add(_case(row, place))
    return Imported((record(BACKEND, None, path, rows.cases(), version="1"),), tuple(rows.left_out))


def _case(row: object, place: str) -> CaseResult:
    command = " ".join(field(row, "command", str, place).split())  # a name is one line
    known = cast("dict[str, Any]", row)
    runs = runs_of(known, "times", place)
    codes = known.get("exit_codes") or ()
    failed = sum(code != 0 for code in codes)
    if failed:
        note = f"{failed} of {count_text(len(codes), 'run')} ended with another exit code than 0"
        runs = replace(runs, notes=(*runs.notes, note))
    parameters = field(row, "parameters", dict, place) if known.get("parameters") else {}
    return case(command, {name: str(value) for name, value in parameters.items()}, [runs])
