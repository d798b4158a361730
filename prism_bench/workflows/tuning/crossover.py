"""Measured policies: the form of a matrix product to launch, by a table of times per device."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path

from prism_bench.errors import UsageError, unknown
from prism_bench.io.documents import Schema, four_digits
from prism_bench.io.files import path_part
from prism_bench.workflows.tuning.choice import REACH, distance

# Sizes are those of C [m, n] = A [m, k] B [k, n].

# The kernel of each form; `f16` and `wmma` take half operands, the others float32.
FORMS = {"fp32": "matmul", "tf32": "matmul:tf32", "f16": "tensor_core_matmul", "wmma": "tensor_core_matmul_wmma"}
CASTS = "tensor_core_matmul:casts"  # the same as f16, from float32
HALVES = ("f16", "wmma")
_OPERANDS = ("float32", "float16")
SHAPES = (
    *({"m": s, "k": s, "n": s} for s in (64, 128, 256, 512, 1024, 2048, 4096)),
    {"m": 16, "k": 4096, "n": 4096},
    {"m": 4096, "k": 4096, "n": 16},
    {"m": 4096, "k": 64, "n": 4096},
    {"m": 64, "k": 16_384, "n": 64},
)


@dataclass(frozen=True)
class CrossoverRow:
    """Measurements of one shape.

    `seconds` are of each form on operands as it takes them, `narrow` and `widen` those of converting operands to halves
    or floats. `errors` are of each form from float32 operands, relative to the largest element.
    """

    shape: Mapping[str, int]
    seconds: Mapping[str, float]
    narrow: float
    widen: float
    errors: Mapping[str, float]

    def total(self, form: str, operands: str) -> float:
        """Return the seconds with the conversion that the operands need."""
        if operands == "float32":
            return self.seconds[form] + (self.narrow if form in HALVES else 0.0)
        return self.seconds[form] + (0.0 if form in HALVES else self.widen)


@dataclass(frozen=True)
class Picked:
    """A form, what it is expected to take where that was measured, and why it was picked."""

    form: str
    seconds: float | None
    reason: str


def pick(
    rows: Sequence[CrossoverRow], shape: Mapping[str, int], *, operands: str = "float32", tolerance: float = 1e-3
) -> Picked:
    """Return the fastest form whose error is within `tolerance`, by the nearest measured shape; fp32 if none is near.

    UsageError for operands that no form takes and for a tolerance that no form keeps.
    """
    if operands not in _OPERANDS:
        raise unknown("dtype of operands", operands, _OPERANDS)
    near = min(rows, key=lambda row: distance(row.shape, shape), default=None)
    if near is None or distance(near.shape, shape) > REACH:
        return Picked("fp32", None, "no shape within four times of it was measured")
    able = [form for form, error in near.errors.items() if error <= tolerance and form in near.seconds]
    if not able:
        least = min(near.errors.values(), default=float("nan"))
        raise UsageError(f"no form keeps a tolerance of {tolerance:g}; the best one's error is {least:.2g}")
    best = min(able, key=lambda form: near.total(form, operands))
    return Picked(best, near.total(best, operands), f"measured at {shape_text(near.shape)}")


def shape_text(shape: Mapping[str, int]) -> str:
    """Return a shape as `4096 x 64 x 4096`, in the order m, k, n."""
    return " x ".join(str(shape[axis]) for axis in ("m", "k", "n"))


Rule = Callable[[int, int, int], str]  # a form for the sizes m, k and n


@dataclass(frozen=True)
class CrossoverCost:
    """Cost of a policy over all shapes.

    It is the policy's time over the fastest form's, as geometric mean and at worst, with the shape; `forms` are its
    picks in the order of the rows.
    """

    policy: str
    mean: float
    worst: float
    worst_at: Mapping[str, int]
    forms: tuple[str, ...]


def always(form: str) -> Rule:
    """Return the rule that takes the same form for every size."""
    return lambda m, k, n: form


ALWAYS: Mapping[str, Rule] = {f"always {form}": always(form) for form in FORMS}


def costs(
    rows: Sequence[CrossoverRow], rules: Mapping[str, Rule], operands: str = "float32", tolerance: float = 1e-3
) -> list[CrossoverCost]:
    """Return the cost of each rule, by the measured rows."""
    table: list[CrossoverCost] = []
    for policy, rule in rules.items():
        forms: list[str] = []
        ratios: list[float] = []
        for row in rows:
            form = rule(row.shape["m"], row.shape["k"], row.shape["n"])
            best = pick([row], row.shape, operands=operands, tolerance=tolerance)
            forms.append(form)
            ratios.append(row.total(form, operands) / row.total(best.form, operands))
        worst = max(range(len(rows)), key=ratios.__getitem__)
        mean = prod(ratios) ** (1 / len(ratios))
        table.append(CrossoverCost(policy, mean, ratios[worst], rows[worst].shape, tuple(forms)))
    return table


# The store of a machine, `reports/tuning/<machine>-policies.json`:
#
#     schema, machine, device, backend, toolchain, created
#     matmul      rows of `CrossoverRow`
#     windows     rows of `Window`
#     batches     rows of `Batch`
#
# Each part is measured separately and keeps the others.

_SCHEMA = Schema("measured policies", 1, "prism-bench tune --policy")
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


MEASURED_PARTS = ("matmul", "windows", "batches")


def largest_within(seconds: Mapping[int, float], latency: float) -> int | None:
    """Return the largest batch whose time is below `latency`; None without such a batch."""
    return max((batch for batch, took in seconds.items() if took < latency), default=None)


@dataclass(frozen=True)
class Measured:
    """Policies of a machine: its identity, and the rows of each part; a part that was not measured is empty."""

    machine: str
    device: str
    backend: str
    toolchain: Mapping[str, str]
    created: str
    matmul: tuple[CrossoverRow, ...] = ()
    windows: tuple[Window, ...] = ()
    batches: tuple[Batch, ...] = field(default=())


def path_for(machine: str, folder: Path) -> Path:
    """Return the path of the measured policies of the machine with that id."""
    return folder / f"{path_part(machine)}-policies.json"


def read_measured(path: Path) -> Measured | None:
    """Return the policies kept at `path`, None if the file is missing; ResultsError if it is damaged."""
    data = _SCHEMA.read(path)
    if data is None:
        return None
    return _SCHEMA.kind_of(data, Measured, path)


def write_measured(measured: Measured, path: Path) -> Path:
    """Write the policies to `path` atomically; keep the other parts of the same device. Return the path."""
    old = read_measured(path)
    same = old and (old.device, old.backend) == (measured.device, measured.backend)
    plain = {key: value for key, value in vars(measured).items() if key not in MEASURED_PARTS}
    for name in MEASURED_PARTS:
        rows = getattr(measured, name) or (getattr(old, name) if same else ())
        plain[name] = [four_digits(asdict(row)) for row in rows]
    return _SCHEMA.write(path, plain)
