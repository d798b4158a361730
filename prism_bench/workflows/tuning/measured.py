"""What was measured for the policies of one machine, on disk: `reports/tuning/<machine>-policies.json`.

    schema, machine, device, backend, toolchain, created
    matmul      rows of `crossover.CrossoverRow`
    windows     rows of `Window`
    batches     rows of `Batch`

Each part is measured on its own and leaves the others alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from prism_bench.io.files import Schema, four_digits, path_part
from prism_bench.workflows.tuning.crossover import CrossoverRow

SCHEMA = Schema("measured policies", 1, "prism-bench select --measure")
TARGETS = (5e-3, 10e-3)  # seconds that an LSTM's answer may take


@dataclass(frozen=True)
class Window:
    """One image at one window.

    It has seconds, the mean entropy in bits, the mean absolute difference of entropies from those of window 16 (bits),
    and the share of pixels (`moved`) that fall into another segment.
    """

    rows: int
    cols: int
    window: int
    seconds: float
    entropy: float
    difference: float
    moved: float


@dataclass(frozen=True)
class Batch:
    """An LSTM's sequence at one batch: seconds of all steps, and the largest relative error of its output."""

    batch: int
    steps: int
    seconds: float
    error: float

    @property
    def rate(self) -> float:
        """Samples a second, each with all of its steps."""
        return self.batch / self.seconds


_PARTS = {"matmul": CrossoverRow, "windows": Window, "batches": Batch}


def largest_within(seconds: Mapping[int, float], latency: float) -> int | None:
    """Return the largest batch whose time is below `latency`; None where none is."""
    return max((batch for batch, took in seconds.items() if took < latency), default=None)


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
    """Return what is kept at `path`, None where there is no such file; a ResultsError names what is damaged."""
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
