"""The noise floors of a machine on disk.

Kept in `reports/noise/<machine>.json`, case by case, so that measuring a few cases again leaves the others alone:

    schema, machine, device, backend     whose noise this is
    protocol                             version of the measuring protocol
    cases   {name: {metric: floor}}      with the fields of `noise.Floor`
"""

from dataclasses import asdict
from pathlib import Path

from prism_bench.analysis.noise import Floor, Noise
from prism_bench.documents import as_kind
from prism_bench.errors import ResultsError
from prism_bench.files import Schema, four_digits, path_part

SCHEMA = Schema("a noise floor", 1, "prism-bench noise")
DEFAULT_NOISE = Path("reports/noise")
_WHOSE = {"machine": str, "device": str, "backend": str, "protocol": int, "cases": dict}


def merged_noise(old: Noise | None, new: Noise) -> Noise:
    """The new floors over the old ones; the old ones of another device, backend or protocol are left behind."""
    same = old and (old.device, old.backend, old.protocol) == (new.device, new.backend, new.protocol)
    return Noise(**{**vars(new), "floors": {**(old.floors if same else {}), **new.floors}})


def path_for(machine: str, root: Path = DEFAULT_NOISE) -> Path:
    """Where the noise of the machine of that id is kept."""
    return root / f"{path_part(machine)}.json"


def write_noise(noise: Noise, path: Path) -> Path:
    """Keep the floors at `path`, whole or not at all; returns the path."""
    cases: dict = {}
    for (case, metric), floor in sorted(noise.floors.items()):
        cases.setdefault(case, {})[metric] = dict(sorted(four_digits(asdict(floor)).items()))
    return SCHEMA.write(path, {key: value for key, value in vars(noise).items() if key != "floors"} | {"cases": cases})


def read_noise(path: Path) -> Noise | None:
    """The floors kept at `path`, None where there is no such file; a ResultsError names what is damaged."""
    data = SCHEMA.read(path)
    return None if data is None else _decode(data, path)


def _decode(data, path):
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
        floor = as_kind(plain, Floor)
        unknown = set(plain) - set(Floor.__dataclass_fields__)
    except ValueError as error:
        raise ResultsError(f"{where}: damaged ({error})") from error
    if unknown:
        raise ResultsError(f"{where}: damaged (unknown fields: {', '.join(sorted(unknown))})")
    if min(floor.seconds, floor.between, floor.within, floor.freedom, floor.processes) < 0:
        raise ResultsError(f"{where}: a negative spread or count")
    return floor


def stored_noise(machine: str, root: Path = DEFAULT_NOISE) -> Noise | None:
    """The noise kept for the machine of that id, or None."""
    return read_noise(path_for(machine, root))


def keep_noise(noise: Noise, root: Path = DEFAULT_NOISE) -> Path:
    """Put the floors among those kept for their machine; returns the path."""
    path = path_for(noise.machine, root)
    return write_noise(merged_noise(read_noise(path), noise), path)
