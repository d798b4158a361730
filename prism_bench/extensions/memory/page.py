"""Site page of device memory: allocators compared, and pipelines under them."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of
from prism_bench.record.run_record import JsonTable
from prism_bench.report.cells import times_text
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.units import bytes_text, count_text, time_text

_FILES = {"contest": "memory.json", "pipelines": "pipelines.json"}
_PARTS = {"contest": ("traces", "programs", "verdicts"), "pipelines": ("pipelines", "lstm_phases")}

_PICTURES = (
    ("allocation", "Median time of an allocation", "allocation_seconds", "s", time_text),
    ("held", "Memory held at the peak", "peak_held", "B", bytes_text),
)
_NAMES = {"none": "no pool at all"}  # an allocator's name that reads as a count


def page(context: SiteContext) -> Page:
    """Return the page of memory: allocators compared, and pipelines."""
    problems: list[str] = []
    found = {name: _read(context.places.memory / file, _PARTS[name], problems) for name, file in _FILES.items()}
    pictures = _pictures(found["contest"]["traces"], found["contest"].get("base")) if found["contest"] else []
    contest = found["contest"]
    answer = _answer(contest["traces"], contest["programs"], str(contest.get("base"))) if contest else None
    view = {"night": context.record.created, "answer": answer, **found, "problems": problems}
    return Page("memory", "Memory", view, {"pictures": pictures}, scripts=("plot.js", "pictures.js"))


def _answer(traces: Sequence[JsonTable], programs: Sequence[JsonTable], base: str) -> str:
    """Return in a sentence or two how long an allocation takes against the `base`, and what whole programs gain."""
    others = list(dict.fromkeys(one["allocator"] for one in traces if one["allocator"] != base))
    own = {name: _verdicts([one for one in traces if one["allocator"] == name]) for name in others}
    named = [f"{_NAMES.get(name, name)} {verdicts}" for name, verdicts in own.items()]
    times = f"An allocation against {base}: {'; '.join(named)}." if named else f"Only {base} replayed the traces."
    counts = Counter(one["verdict"] for one in programs)
    whole = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return times + (f" Whole programs against it: {whole}." if whole else "")


def _verdicts(own: Sequence[JsonTable]) -> str:
    """Return the verdicts on one allocator by their number of traces, each with its range of ratios."""
    judged = [one["against_base"] for one in own if one.get("against_base")]
    words = []
    for verdict, count in Counter(one["verdict"] for one in judged).most_common():
        ratios = [one["ratio"] for one in judged if one["verdict"] == verdict and one.get("ratio")]
        ends = dict.fromkeys(times_text(end(ratios)) for end in (min, max)) if ratios else {}
        reach = f" ({' to '.join(ends)})" if ends else ""
        words.append(f"{verdict} on {count} of {count_text(len(own), 'trace')}{reach}")
    return ", ".join(words) or "not compared"


def _pictures(traces: Sequence[JsonTable], base: str | None) -> list[dict[str, object]]:
    """Return the pictures of the allocators: what an allocation takes, and what is held at the peak of each trace."""
    return [
        {"name": name, "title": title, "bars": {"unit": unit, "bars": _bars(traces, key, words, base)}}
        for name, title, key, unit, words in _PICTURES
        if any(one.get(key) for one in traces)
    ]


def _bars(
    traces: Sequence[JsonTable], key: str, words: Callable[[float | None], str], base: str | None
) -> list[dict[str, object]]:
    """Return a bar for each allocator on each trace; those of the `base` in another ink."""
    return [
        {"name": f"{one['trace']}, {one['allocator']}", "start": 0.0, "end": one[key], "words": words(one[key]),
         "ink": "second" if one["allocator"] == base else "accent"}
        for one in traces if one.get(key)
    ]  # fmt: skip


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
