"""Figures that scripts/measure_* measured on machines, as the part of reports/judgement/README.md that shows them.

What was not measured yet is not shown.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prism_bench.units import count_text

PAGE = Path("reports/judgement/README.md")
NOTHING = "Nothing of these is measured yet."
_BISECT = "| machine | slowdown | searches | right | another commit named | nothing named | measured | seconds, mean |"
_WAYS = "| machine | language | `compare` | `check` | seconds from `init` to the verdict |"
_REQUESTS = "| machine | kernel | labels | cases | measured | caches | slower | compiling | seconds of the command |"


def measured_part(folder: Path) -> str:
    """Return the tables of all machines below the folder as Markdown."""
    machines = sorted(one for one in folder.iterdir() if one.is_dir())
    tables = [
        _table(_BISECT, [row for one in machines for row in _bisect_rows(one)]),
        _table(_WAYS, [row for one in machines for row in _way_rows(one)]),
        _table(_REQUESTS, [row for one in machines for row in _request_rows(one)]),
    ]
    return "\n\n".join(filter(None, tables)) or NOTHING


def _table(header: str, rows: Sequence[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([header, "|---" * (header.count("|") - 1) + "|", *lines]) if rows else ""


def _bisect_rows(folder: Path) -> Iterator[Sequence[object]]:
    path = folder / "bisect.csv"
    if not path.is_file():
        return
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for slowdown in sorted({float(one["slowdown"]) for one in rows}, reverse=True):
        own = [one for one in rows if float(one["slowdown"]) == slowdown]
        found = [sum(one["found"] == word for one in own) for word in ("right", "wrong", "nothing")]
        shares = [float(one["measured_slowdown"]) for one in own if one["measured_slowdown"]]
        measured = f"{min(shares):.1%} to {max(shares):.1%}".replace("%", " %") if shares else "-"
        seconds = sum(float(one["seconds"]) for one in own) / len(own)
        yield folder.name, f"{slowdown:.0%}".replace("%", " %"), len(own), *found, measured, f"{seconds:.0f}"


def _way_rows(folder: Path) -> Iterator[Sequence[object]]:
    path = folder / "own_repository.json"
    languages: Mapping[str, Any] = json.loads(path.read_text())["languages"] if path.is_file() else {}
    for language, way in languages.items():
        compared = next(one for one in way["commands"] if one["command"].startswith("prism-bench compare"))
        checked = next(one for one in way["commands"] if one["command"].startswith("prism-bench check"))
        slower = count_text(sum(word == "slower" for word in compared["verdict"].values()), "case") + " slower"
        codes = f"{slower}, exit code {compared['exit_code']}", f"exit code {checked['exit_code']}"
        yield folder.name, language, *codes, f"{way['seconds_to_verdict']:.0f}"


def _request_rows(folder: Path) -> Iterator[Sequence[object]]:
    for path in sorted((folder / "pull_request").glob("*.json")):
        plain = json.loads(path.read_text())
        comparison = plain["comparison"]
        compiling = (comparison.get("selection") or {}).get("seconds", {}).get("compiling")
        yield (
            folder.name,
            f"`{plain['kernel']}`",
            ", ".join(plain["labels"]),
            plain["all_cases"],
            len(comparison["cases"]),
            plain["cache"],
            comparison["counts"]["slower"],
            "-" if compiling is None else f"{compiling:.0f}",
            f"{plain['command_seconds']:.0f}",
        )
