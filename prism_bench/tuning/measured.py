"""What was measured for the policies of one machine, on disk: `reports/tuning/<machine>-policies.json`.

    schema, machine, device, backend, toolchain, created
    matmul      rows of `crossover.Row`
    windows     rows of `guide.Window`
    batches     rows of `guide.Batch`

Each part is measured on its own and leaves the others alone.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.files import write_atomically
from prism_bench.tuning.crossover import Row
from prism_bench.tuning.guide import Batch, Window

SCHEMA = 1
_PARTS = {"matmul": Row, "windows": Window, "batches": Batch}


@dataclass(frozen=True)
class Measured:
    """Whose times these are, and the rows of each part; a part that was not measured is empty."""

    machine: str
    device: str
    backend: str
    toolchain: Mapping[str, str]
    created: str
    matmul: tuple[Row, ...] = ()
    windows: tuple[Window, ...] = ()
    batches: tuple[Batch, ...] = field(default=())


def path_for(machine: str, folder: Path) -> Path:
    """Where the measured policies of the machine of that id are kept."""
    return folder / f"{machine}-policies.json"


def read_measured(path: Path) -> Measured | None:
    """What is kept at `path`, None where there is no such file; a ResultsError names what is damaged."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: not readable ({error}); 'prism-bench select --measure' makes it") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise ResultsError(f"{path}: schema is {found!r}, not {SCHEMA}; 'prism-bench select --measure' makes it anew")
    try:
        whose = {key: data[key] for key in ("machine", "device", "backend", "toolchain", "created")}
        parts = {name: tuple(kind(**plain) for plain in data.get(name, ())) for name, kind in _PARTS.items()}
    except (KeyError, TypeError) as error:
        raise ResultsError(f"{path}: damaged ({type(error).__name__}: {error})") from error
    return Measured(**whose, **parts)


def write_measured(measured: Measured, path: Path) -> Path:
    """Keep it at `path`, whole or not at all; parts of the same device that it has none of stay. Returns the path."""
    old = read_measured(path)
    same = old and (old.device, old.backend) == (measured.device, measured.backend)
    parts = {name: getattr(measured, name) or (getattr(old, name) if same else ()) for name in _PARTS}
    plain = {"schema": SCHEMA, **{key: value for key, value in vars(measured).items() if key not in _PARTS}}
    plain |= {name: [_short(asdict(row)) for row in rows] for name, rows in parts.items()}
    try:
        write_atomically(path, (json.dumps(plain, indent=1) + "\n").encode())
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def _short(value):
    """Four digits of every float."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value
