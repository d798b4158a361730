"""What was tried and won when launches were tuned, and which form of a product is quickest."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeVar

from prism_bench.errors import ResultsError
from prism_bench.io.documents import as_kind, json_of
from prism_bench.report.plain import measured_json
from prism_bench.report.site.answers import tuning_answer
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.workflows.tuning.choice import path_for as kept_path
from prism_bench.workflows.tuning.choice import read_kept
from prism_bench.workflows.tuning.crossover import FORMS, read_measured
from prism_bench.workflows.tuning.crossover import path_for as measured_path

_Kept = TypeVar("_Kept")


def page(context: SiteContext) -> Page:
    """Return the page of what tuning found."""
    folder, problems = context.places.tuning, list[str]()
    kept = _asked(read_kept, kept_path(context.machine, folder), problems)
    measured = _asked(read_measured, measured_path(context.machine, folder), problems)
    choices = [{**asdict(choice), "adopted": choice.adopted} for choice in kept.choices] if kept else []
    adopted = [choice["speedup"] for choice in choices if choice["adopted"] and choice["least"] == "time"]
    gain = geometric_mean(adopted) if adopted else None
    view = {
        "night": context.record.created,
        "answer": tuning_answer(choices, gain),
        "choices": sorted(choices, key=lambda choice: -choice["speedup"]),
        "adopted": sum(choice["adopted"] for choice in choices),
        "gain": gain,
        "tried": _sessions(folder, problems),
        "policies": measured_json(measured) if measured else None,
        "problems": problems,
    }
    empty = not (choices or view["tried"] or measured or problems)
    return Page("tuning", "Tuning", view, {"forms": list(FORMS)}, empty=empty)


def _asked(read: Callable[[Path], _Kept | None], path: Path, problems: list[str]) -> _Kept | None:
    """Return what is kept at the path; a file that cannot be read is named and harms no page."""
    try:
        return read(path)
    except ResultsError as error:
        problems.append(str(error))
        return None


def _sessions(folder: Path, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Return by case every configuration that a session tried with its seconds, as `prism-bench tune` printed them."""
    sessions: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("tune-*.json")):
        try:
            sessions |= {
                case["case"]: {"searched": case["searched"], "refused": case["refused"]}
                for case in as_kind(json_of(path, "readable"), dict)["cases"]
            }
        except (OSError, ResultsError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path.name}: not what 'prism-bench tune --output' writes ({error})")
    return sessions
