"""The noise floors of a machine on disk.

Kept in `reports/noise/<machine>.json`, case by case, so that measuring a few cases again leaves the others alone:

    schema, machine, device, backend     whose noise this is
    protocol                             version of the measuring protocol
    cases   {name: {metric: floor}}      with the fields of `noise.Floor`
"""

import json
from dataclasses import asdict
from pathlib import Path

from prism_bench.analysis.noise import Floor, Noise
from prism_bench.errors import ResultsError
from prism_bench.files import write_atomically

SCHEMA = 1
DEFAULT_NOISE = Path("reports/noise")
_WHOSE = {"machine": str, "device": str, "backend": str, "protocol": int, "cases": dict}


def merged_noise(old: Noise | None, new: Noise) -> Noise:
    """The new floors over the old ones; the old ones of another device, backend or protocol are left behind."""
    same = old and (old.device, old.backend, old.protocol) == (new.device, new.backend, new.protocol)
    return Noise(**{**vars(new), "floors": {**(old.floors if same else {}), **new.floors}})


def path_for(machine: str, root: Path = DEFAULT_NOISE) -> Path:
    """Where the noise of the machine of that id is kept."""
    return root / f"{machine}.json"


def write_noise(noise: Noise, path: Path) -> Path:
    """Keep the floors at `path`, whole or not at all; returns the path."""
    cases: dict = {}
    for (case, metric), floor in noise.floors.items():
        cases.setdefault(case, {})[metric] = {key: _short(value) for key, value in asdict(floor).items()}
    plain = {"schema": SCHEMA, **{key: value for key, value in vars(noise).items() if key != "floors"}, "cases": cases}
    try:
        write_atomically(path, (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def _short(value):
    """Four digits of a float: more would be noise about noise."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def read_noise(path: Path) -> Noise | None:
    """The floors kept at `path`, None where there is no such file; a ResultsError names what is damaged."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: not a readable noise floor ({error})") from error
    return _decode(data, path)


def _decode(data, path):
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise ResultsError(f"{path}: schema is {found!r}, not {SCHEMA}; 'prism-bench noise' measures it anew")
    for key, kind in _WHOSE.items():
        if not isinstance(data.get(key), kind):
            raise ResultsError(f"{path}: '{key}' is {data.get(key)!r:.40}, not a {kind.__name__}")
    floors = {}
    for case, metrics in data["cases"].items():
        if not isinstance(metrics, dict):
            raise ResultsError(f"{path}: {case}: not a table of metrics")
        floors |= {
            (case, metric): _decoded_floor(plain, f"{path}: {case} {metric}") for metric, plain in metrics.items()
        }
    return Noise(**{key: data[key] for key in _WHOSE if key != "cases"}, floors=floors)


def _decoded_floor(plain, where):
    try:
        floor = Floor(**plain)
        sizes = (floor.seconds, floor.between, floor.within, floor.freedom, floor.processes)
        fine = all(size >= 0 for size in sizes)
    except TypeError as error:
        raise ResultsError(f"{where}: damaged ({error})") from error
    if not fine:
        raise ResultsError(f"{where}: a negative spread or count")
    return floor


def stored_noise(machine: str, root: Path = DEFAULT_NOISE) -> Noise | None:
    """The noise kept for the machine of that id, or None."""
    return read_noise(path_for(machine, root))


def keep_noise(noise: Noise, root: Path = DEFAULT_NOISE) -> Path:
    """Put the floors among those kept for their machine; returns the path."""
    path = path_for(noise.machine, root)
    return write_noise(merged_noise(read_noise(path), noise), path)
