"""How device memory is handed out, and what the ways of doing so cost; pipelines that live on it."""

from prism_bench.documents import json_of
from prism_bench.errors import ResultsError
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page

_FILES = {"contest": "memory.json", "pipelines": "pipelines.json"}
_PARTS = {"contest": ("traces", "programs", "verdicts"), "pipelines": ("pipelines", "lstm_phases")}


def page(context: SiteContext) -> Page:
    problems = []
    found = {name: _read(context.places.memory / file, _PARTS[name], problems) for name, file in _FILES.items()}
    return Page("memory", "Memory", {"night": context.record.created, **found, "problems": problems})


def _read(path, parts, problems):
    """What a command printed as JSON; None where it is not kept, or is something else, which is told."""
    try:
        plain = json_of(path, "readable")
    except FileNotFoundError:
        return None
    except ResultsError as error:
        problems.append(str(error).replace(str(path), path.name))
        return None
    missing = [name for name in parts if name not in plain] if isinstance(plain, dict) else list(parts)
    if missing:
        problems.append(f"{path.name}: it has no {', '.join(missing)}")
    return None if missing else plain
