"""A timeline in one file (NumPy's .npz), so that one process may record it and another read it."""

import json
from pathlib import Path

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.profilers.timeline import Calls, Ranges, Timeline, Work
from prism_bench.strict_json import json_text

_PARTS = {"work": Work, "calls": Calls, "ranges": Ranges}


def save(timeline: Timeline, path: Path) -> None:
    """Write the timeline to `path`."""
    arrays = {f"{part}.{name}": column for part in _PARTS for name, column in vars(getattr(timeline, part)).items()}
    facts = {name: value for name, value in vars(timeline).items() if name not in _PARTS}
    with path.open("wb") as file:
        np.savez_compressed(file, facts=json_text(facts), **arrays)


def load(path: Path) -> Timeline:
    """The timeline in `path`; a ResultsError where it is none."""
    try:
        with np.load(path, allow_pickle=False) as found:
            parts = {part: kind(**_columns(found, part)) for part, kind in _PARTS.items()}
            facts = json.loads(str(found["facts"]))
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise ResultsError(f"{path}: not a recorded timeline ({error})") from error
    return Timeline(**parts, **{**facts, "names": tuple(facts["names"]), "notes": tuple(facts["notes"])})


def _columns(found, part):
    return {key.removeprefix(f"{part}."): found[key] for key in found.files if key.startswith(f"{part}.")}
