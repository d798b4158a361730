"""What was measured for the policies of one machine, on disk: `reports/tuning/<machine>-policies.json`.

    schema, machine, device, backend, toolchain, created
    matmul      rows of `crossover.Row`
    windows     rows of `guide.Window`
    batches     rows of `guide.Batch`

Each part is measured on its own and leaves the others alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from prism_bench.files import Schema, four_digits, path_part
from prism_bench.tuning.crossover import CrossoverRow
from prism_bench.tuning.guide import Batch, Window

SCHEMA = Schema("measured policies", 1, "prism-bench select --measure")
_PARTS = {"matmul": CrossoverRow, "windows": Window, "batches": Batch}


@dataclass(frozen=True)
class Measured:
    """Whose times these are, and the rows of each part; a part that was not measured is empty."""

    machine: str
    device: str
    backend: str
    toolchain: Mapping[str, str]
    created: str
    matmul: tuple[CrossoverRow, ...] = ()
    windows: tuple[Window, ...] = ()
    batches: tuple[Batch, ...] = field(default=())


def path_for(machine: str, folder: Path) -> Path:
    """Where the measured policies of the machine of that id are kept."""
    return folder / f"{path_part(machine)}-policies.json"


def read_measured(path: Path) -> Measured | None:
    """What is kept at `path`, None where there is no such file; a ResultsError names what is damaged."""
    data = SCHEMA.read(path)
    if data is None:
        return None
    return SCHEMA.kind_of(data, Measured, path)


def write_measured(measured: Measured, path: Path) -> Path:
    """Keep it at `path`, whole or not at all; parts of the same device that it has none of stay. Returns the path."""
    old = read_measured(path)
    same = old and (old.device, old.backend) == (measured.device, measured.backend)
    rows = {name: getattr(measured, name) or (getattr(old, name) if same else ()) for name in _PARTS}
    plain = {key: value for key, value in vars(measured).items() if key not in _PARTS}
    return SCHEMA.write(path, plain | {name: [four_digits(asdict(one)) for one in some] for name, some in rows.items()})
