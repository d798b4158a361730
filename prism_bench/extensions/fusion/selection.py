"""Which precision a program's stages should have: the cheapest whose measured error its tolerance allows.

Each precision that the program declares is tried on the same sample data: operands are rounded to it, its kernel runs
on the backend (its reference, on NumPy), and its output is compared with the float64 reference of the data before they
were rounded. No architecture decides: a device that lacks the instructions is slower, and times are measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.base import Runnable
from prism_bench.errors import BackendUnavailable, CompilationFailed, MeasurementInvalid, UsageError, unknown
from prism_bench.extensions.fusion.program import FusionProgram, Product
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.spec.case import Case
from prism_bench.spec.dtypes import PRECISIONS
from prism_bench.spec.inputs import InputArray, input_of
from prism_bench.spec.kernel import KernelSpec

_CLOCK = "cold_time"
_SEEDS = (0, 1)
HostArray = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Tried:
    """One precision of a `stage`, and the kernel that has it.

    `error` is its largest normwise error over outputs and seeds, `seconds` its time where the backend has a device's
    clock, `bytes` what it must move, and `reason` why it could not be tried.
    """

    precision: str
    stage: str
    kernel: str
    bytes: int
    error: float | None = None
    seconds: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PrecisionChoice:
    """What was tried for a program at a workload, on which `sample` of data; `basis` is what makes one the cheapest."""

    program: str
    workload: str
    within: float
    sample: str
    basis: str
    tried: tuple[Tried, ...]

    def allowed(self, trial: Tried) -> bool:
        """Return whether its error is measured and within the tolerance."""
        return trial.error is not None and trial.error <= self.within

    @property
    def chosen(self) -> Tried | None:
        """The cheapest that is allowed, and of equals the most exact.

        That is the fastest where times are known, else the one that moves the fewest bytes.
        """
        timed = any(trial.seconds is not None for trial in self.tried)

        def cost(trial: Tried) -> tuple[float, float]:
            price = (trial.seconds or float("inf")) if timed else float(trial.bytes)
            return price, float("inf") if trial.error is None else trial.error

        return min(filter(self.allowed, self.tried), key=cost, default=None)


@dataclass(frozen=True)
class Question:
    """For which data to choose: the program's workload of a `label`, or a user's `data` by input's name there."""

    label: str = "S0"
    within: float | None = None
    data: Mapping[str, HostArray] | None = None


@dataclass(frozen=True)
class Declared:
    """A precision that a program declares: of which `stage`, in which `variant`; its `operands` are rounded to it."""

    precision: str
    stage: str
    variant: str | None
    operands: tuple[str, ...] = ()


def declared(program: FusionProgram) -> Iterator[Declared]:
    """Yield the precisions to choose among: those of all stages' numbers, then those of a product's operands."""
    product = next((stage for stage in program.stages if isinstance(stage, Product)), None)
    for number in program.numbers:
        yield Declared(number, "all stages", "f64" if number == "float64" else None)
    if product:
        for precision in product.precisions[1:]:
            yield Declared(precision, product.name, precision, (product.left, product.right))


def select(program: FusionProgram, spec: KernelSpec, backend: Backend, question: Question) -> PrecisionChoice:
    """Try all precisions of the program, whose kernel is `spec`; UsageError if there is nothing to choose by."""
    within = question.within or program.within
    if within is None:
        raise UsageError(f"{spec.name}: its program declares no 'within'; give the largest allowed error with --within")
    if question.label not in spec.workloads:
        raise unknown("label", question.label, spec.workloads)
    whole = Case(spec, spec.workloads[question.label], question.label)
    samples = [_given(whole, question.data)] if question.data else [whole.inputs(seed) for seed in _SEEDS]
    tried = tuple(_tried(option, whole, samples, backend) for option in declared(program))
    timed = any(trial.seconds is not None for trial in tried)
    basis = f"{_CLOCK.replace('_', ' ')} on {backend.facts()['device']}" if timed else "bytes that must move"
    drawn = f"drawn with the program's fills, seeds {', '.join(map(str, _SEEDS))}"
    source = "data of the user" if question.data else drawn
    return PrecisionChoice(spec.name, str(whole.workload), within, source, basis, tried)


def read_sample(path: Path) -> dict[str, HostArray]:
    """Return the arrays of an .npz file by name; UsageError if it cannot be read."""
    try:
        with np.load(path) as archive:
            return dict(archive)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path}: no arrays can be read ({error}); numpy.savez writes such a file") from error


def _given(case: Case, data: Mapping[str, HostArray]) -> dict[str, InputArray]:
    """Return the user's arrays as inputs of the case."""
    inputs: dict[str, InputArray] = {}
    for array in case.spec.inputs:
        if array.name not in data:
            raise UsageError(
                f"the sample gives no '{array.name}'; {case.spec.name} reads "
                f"{', '.join(wanted.name for wanted in case.spec.inputs)}"
            )
        values, shape = np.asarray(data[array.name]), case.sizes.shape(array.name)
        if values.shape != shape:
            raise UsageError(f"the sample's '{array.name}' has shape {values.shape}; {case.name} reads {shape}")
        try:
            inputs[array.name] = input_of(values, "float64")
        except ValueError as error:
            raise UsageError(f"the sample's '{array.name}': {error}") from error
    return inputs


def _tried(option: Declared, whole: Case, samples: Sequence[Mapping[str, InputArray]], backend: Backend) -> Tried:
    spec = whole.spec.with_variant(option.variant) if option.variant else whole.spec
    case = Case(spec, whole.workload, whole.label, option.variant)
    empty = Tried(option.precision, option.stage, case.kernel, case.sizes.bytes_moved)
    rounded = [_rounded(inputs, case, option) for inputs in samples]
    try:
        with backend.prepare(case, rounded[0]) as runnable:
            errors = [_error(runnable, whole, *pair, backend) for pair in zip(rounded, samples, strict=True)]
            return replace(empty, error=max(errors), seconds=_seconds(runnable))
    except (BackendUnavailable, CompilationFailed, MeasurementInvalid, MemoryError) as error:
        return replace(empty, reason=str(error).splitlines()[0])


def _rounded(inputs: Mapping[str, InputArray], case: Case, option: Declared) -> dict[str, InputArray]:
    """Return the inputs as the case takes them: operands rounded to the precision, others to their arrays' types."""
    to = {array.name: option.precision if array.name in option.operands else array.dtype for array in case.spec.inputs}
    return {name: replace(inputs[name], block=PRECISIONS[to[name]].narrowed(inputs[name].block)) for name in to}


def _error(
    runnable: Runnable,
    whole: Case,
    rounded: Mapping[str, InputArray],
    inputs: Mapping[str, InputArray],
    backend: Backend,
) -> float:
    """Return ||out - expected|| / ||expected||, the largest over the outputs."""
    xp = backend.xp
    runnable.reset(rounded)
    runnable()
    expected = whole.correctness.expected({name: array.on(xp) for name, array in inputs.items()}, xp, backend.special)
    outputs = runnable.arrays(expected)
    return max(
        _norm(outputs[name].astype("float64") - want, xp) / max(_norm(want, xp), 1e-300)
        for name, want in expected.items()
    )


def _norm(array: Any, xp: ModuleType) -> float:
    return float(xp.sqrt((array * array).sum()))


def _seconds(runnable: Runnable) -> float | None:
    timers = runnable.timers()
    if _CLOCK not in timers:
        return None
    once = timers[_CLOCK]()
    for _ in range(3):
        once()
    return float(np.median([timing.seconds for timing in sample(once, Criterion(), ClockGate()).samples]))
