"""Site page of device memory: allocators compared, and pipelines under them."""

from collections.abc import Sequence
from pathlib import Path

from prism_bench.documents import json_of
from prism_bench.errors import ResultsError
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.run_record import JsonTable

_FILES = {"contest": "memory.json", "pipelines": "pipelines.json"}
_PARTS = {"contest": ("traces", "programs", "verdicts"), "pipelines": ("pipelines", "lstm_phases")}


def page(context: SiteContext) -> Page:
    """Return the page of memory: allocators compared, and pipelines."""
    problems: list[str] = []
    found = {name: _read(context.places.memory / file, _PARTS[name], problems) for name, file in _FILES.items()}
    return Page("memory", "Memory", {"night": context.record.created, **found, "problems": problems})


def _read(path: Path, parts: Sequence[str], problems: list[str]) -> JsonTable | None:
    """Return what a command printed as JSON; None where there is none, or it is something else (a problem)."""
    try:
        plain = json_of(path, "readable")
    except FileNotFoundError:
        return None
    except ResultsError as error:
        problems.append(str(error).replace(str(path), path.name))
        return None
    table: JsonTable = plain if isinstance(plain, dict) else {}
    missing = [name for name in parts if name not in table]
    if missing:
        problems.append(f"{path.name}: it has no {', '.join(missing)}")
    return None if missing else table
