"""Noise floors of a machine on disk.

Kept in `reports/noise/<machine>.json`, case by case, so that measuring a few cases again leaves the others alone:

    schema, machine, device, backend     where the noise was measured
    protocol                             version of the measuring protocol
    cases   {name: {metric: values}}     with the fields of `noise.Floor`
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from prism_bench.analysis.compare.noise import Floor, Noise
from prism_bench.documents import as_kind
from prism_bench.errors import ResultsError
from prism_bench.files import Schema, four_digits, path_part

SCHEMA = Schema("a noise floor", 1, "prism-bench noise")
DEFAULT_NOISE = Path("reports/noise")
_WHOSE = {"machine": str, "device": str, "backend": str, "protocol": int, "cases": dict}


def merged_noise(old: Noise | None, new: Noise) -> Noise:
    """Return the old noise floors with the new ones; those of another device, backend or protocol are dropped."""
    same = old and (old.device, old.backend, old.protocol) == (new.device, new.backend, new.protocol)
    return replace(new, floors={**(old.floors if old and same else {}), **new.floors})


def path_for(machine: str, root: Path = DEFAULT_NOISE) -> Path:
    """Return the path of the noise of the machine of that id."""
    return root / f"{path_part(machine)}.json"


def write_noise(noise: Noise, path: Path) -> Path:
    """Keep the noise floors at `path`, whole or not at all; return the path."""
    cases: dict[str, dict[str, object]] = {}
    for (case, metric), floor in sorted(noise.floors.items()):
        cases.setdefault(case, {})[metric] = dict(sorted(four_digits(asdict(floor)).items()))
    return SCHEMA.write(path, {**{key: getattr(noise, key) for key in _WHOSE if key != "cases"}, "cases": cases})


def read_noise(path: Path) -> Noise | None:
    """Return the noise floors kept at `path`, None without such a file; a ResultsError names what is damaged."""
    data = SCHEMA.read(path)
    return None if data is None else _decode(data, path)


def _decode(data: Mapping[str, Any], path: Path) -> Noise:
    for key, kind in _WHOSE.items():
        if not isinstance(data.get(key), kind):
            raise ResultsError(f"{path}: '{key}' is {data.get(key)!r:.40}, not a {kind.__name__}")
    floors: dict[tuple[str, str], Floor] = {}
    for case, metrics in data["cases"].items():
        if not isinstance(metrics, dict):
            raise ResultsError(f"{path}: {case}: not a table of metrics")
        for metric, plain in cast("dict[str, object]", metrics).items():
            floors[case, metric] = _decoded_floor(plain, f"{path}: {case} {metric}")
    return Noise(data["machine"], data["device"], data["backend"], data["protocol"], floors)


def _decoded_floor(plain: object, where: str) -> Floor:
    try:
        floor: Floor = as_kind(plain, Floor)
        unknown = set(cast("dict[str, object]", plain)) - set(Floor.__dataclass_fields__)
    except ValueError as error:
        raise ResultsError(f"{where}: damaged ({error})") from error
    if unknown:
        raise ResultsError(f"{where}: damaged (unknown fields: {', '.join(sorted(unknown))})")
    if min(floor.seconds, floor.between, floor.within, floor.freedom, floor.processes) < 0:
        raise ResultsError(f"{where}: a negative spread or count")
    return floor


def stored_noise(machine: str, root: Path = DEFAULT_NOISE) -> Noise | None:
    """Return the noise kept for the machine of that id, or None."""
    return read_noise(path_for(machine, root))


def keep_noise(noise: Noise, root: Path = DEFAULT_NOISE) -> Path:
    """Put the noise floors among those kept for their machine; return the path."""
    path = path_for(noise.machine, root)
    return write_noise(merged_noise(read_noise(path), noise), path)
