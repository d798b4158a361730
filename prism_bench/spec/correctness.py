"""Correctness of a case: its inputs, its expected outputs and how far an output may be from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.errors import SpecError
from prism_bench.spec import arguments
from prism_bench.spec.arguments import Array, FilledArray
from prism_bench.spec.dtypes import precision_of, values_of, values_shape
from prism_bench.spec.inputs import AnyArray, ArrayModule, Fill, InputArray, draw, input_of
from prism_bench.spec.kernel import Golden, KernelSpec
from prism_bench.spec.tolerance import Tolerance, underflow
from prism_bench.units import count_text

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Allowance:
    """A tolerance with its `terms`, `magnitude` and `depth` evaluated for one output."""

    tolerance: Tolerance
    terms: Any
    magnitude: Any
    depth: float = 0.0


@dataclass(frozen=True)
class Correctness:
    """Inputs and expected outputs of one case.

    `axes` has the case's values by name, `fills` what an edge fills its inputs with; `case` is its name for errors.
    Arrays are NumPy's or CuPy's: `xp` is the module that owns them, `special` scipy.special or CuPy's.
    """

    spec: KernelSpec
    axes: Mapping[str, object]
    case: str
    golden: Golden | None = None
    fills: Mapping[str, Fill] = field(default_factory=dict[str, Fill])

    def inputs(self, seed: int = 0) -> dict[str, InputArray]:
        """Return seeded inputs by name, the same on every backend; a golden case's own data whatever the seed."""
        if self.golden:
            self.check_golden()
            return {array.name: self._given(self.golden, array) for array in self.spec.inputs}
        drawn: dict[str, InputArray] = {}
        for position, array in enumerate(self.spec.inputs):
            rng = np.random.default_rng((seed, position))
            drawn[array.name] = draw(self.fill_of(array), array.extents(self.axes), array.dtype, rng, self.axes)
        return drawn

    def fill_of(self, array: FilledArray) -> Fill:
        """Return what fills an input: the edge's fill where it has one, else the argument's."""
        return self.fills.get(array.name, array.fill)

    def check_golden(self) -> None:
        """Raise a SpecError unless the golden data, if any, give every input, and no output but the kernel's."""
        if self.golden is None:
            return
        missing = [array.name for array in self.spec.inputs if array.name not in self.golden.inputs]
        if missing:
            raise SpecError(f"{self.case}: golden data give no '{missing[0]}'")
        for name in self.golden.expected:
            self.spec.argument(name)

    def expected(self, arrays: Mapping[str, Any], xp: ModuleType, special: ModuleType | None) -> dict[str, Any]:
        """Return the reference's outputs by name, from float64 copies of `arrays` (or the golden values)."""
        if self.golden and self.golden.expected:
            outputs = [self.spec.array(name) for name in self.golden.expected]
            return {array.name: xp.asarray(self._golden_values(self.golden.expected, array)) for array in outputs}
        return self.reference_outputs(self.offered(arrays, xp, special))

    @np.errstate(all="ignore")  # edges and golden data hold infinities and NaN on purpose
    def reference_outputs(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reference's outputs by name, shaped as the kernel's; `offered` is what `offered()` returned."""
        reference = self.spec.reference
        if isinstance(reference, str):
            raise SpecError(f"{self.spec.name}: reference '{reference}' is a text: load it from a catalogue")
        result = arguments.call(reference, offered, f"{self.spec.name}: reference")
        results: list[Any] = [*result] if isinstance(result, tuple) else [result]
        if len(results) != len(self.spec.outputs):
            raise SpecError(
                f"{self.spec.name}: reference gives {count_text(len(results), 'output')}, not {len(self.spec.outputs)}"
            )
        pairs = zip(self.spec.outputs, results, strict=True)
        return {output.name: self._shaped(output, value, offered["xp"]) for output, value in pairs}

    @np.errstate(all="ignore")
    def allowance(
        self, output: str, arrays: Mapping[str, Any], xp: ModuleType, special: ModuleType | None
    ) -> Allowance:
        """Return the tolerance of `output` with its `terms`, `magnitude` and `depth` evaluated."""
        tolerance = self.tolerance_of(output)
        if not callable(tolerance.terms) and not tolerance.magnitude:  # float64 copies of everything are not free
            return Allowance(tolerance, tolerance.terms, None)
        offered = self.offered(arrays, xp, special)
        where = f"{self.spec.name}: tolerance of {output}"
        terms = arguments.call(tolerance.terms, offered, where) if callable(tolerance.terms) else tolerance.terms
        magnitude = arguments.call(tolerance.magnitude, offered, where) if tolerance.magnitude else None
        lost = tolerance.underflows
        lost = arguments.call(lost, offered, where) if callable(lost) else lost
        if lost:  # in units of `terms`, as the magnitude is
            smallest = underflow(precision_of(self.spec.array(output).dtype))
            magnitude = (0.0 if magnitude is None else magnitude) + lost * smallest / terms
        depth = arguments.call(tolerance.depth, offered, where) if tolerance.depth else 0.0
        if depth and (self.fills or self.golden):  # their terms are not independent: what they lose adds up
            depth = 1.0
        return Allowance(tolerance, terms, magnitude, depth)

    def tolerance_of(self, output: str) -> Tolerance:
        """Return the tolerance of `output`: the golden data's where these have one."""
        golden_tolerance = self.golden.tolerance if self.golden else None
        if isinstance(golden_tolerance, Mapping):
            return golden_tolerance[output]
        return golden_tolerance or self.spec.tolerance_of(output)

    @np.errstate(all="ignore")
    def selected(
        self, output: str, arrays: Mapping[str, Any], actual: Any, expected: Any, xp: ModuleType
    ) -> tuple[Any, Any]:
        """Return the elements that the indices of `output` select, and those that they should select."""
        among = self.tolerance_of(output).among
        assert among is not None, f"{output} has no indices"
        values = arguments.call(among, self.offered(arrays, xp, None), f"{self.spec.name}: tolerance of {output}")
        return selected(actual, expected, values, xp)

    @np.errstate(all="ignore")
    def offered(self, arrays: Mapping[str, Any], xp: ModuleType, special: ModuleType | None) -> dict[str, Any]:
        """Return what references and tolerances may ask for: values of the arrays, axes, `xp`, `special`.

        Floats of any type are float64. Scalars of a narrow type, and structures, are as the kernel gets them.
        """
        dtypes: dict[str, str] = {array.name: array.dtype for array in self.spec.arrays}
        wide = {
            name: values_of(array, dtypes[name] if name in dtypes else array.dtype.name, xp)
            for name, array in arrays.items()
        }
        rounded = {scalar.name: scalar.seen(self.axes) for scalar in self.spec.scalars if scalar.is_rounded}
        return {**self.axes, **rounded, **wide, "xp": xp, "special": special}

    def _given(self, golden: Golden, array: Array) -> InputArray:
        try:
            return input_of(self._golden_values(golden.inputs, array), array.dtype)
        except ValueError as error:
            raise SpecError(f"{self.case}: golden {array.name}: {error}") from error

    @np.errstate(all="ignore")
    def _golden_values(self, data: Mapping[str, Any], array: Array) -> "NDArray[Any]":
        """Return the golden values of `array`, in its shape."""
        value: Any
        value, shape = data[array.name], values_shape(array.extents(self.axes), array.dtype)
        value = arguments.call(value, self.axes, f"{self.case}: golden {array.name}") if callable(value) else value
        try:
            return np.broadcast_to(np.asarray(value), shape)
        except ValueError:
            raise SpecError(f"{self.case}: golden {array.name} has shape {np.shape(value)}, not {shape}") from None

    def _shaped(self, output: Array, value: Any, xp: ModuleType) -> Any:
        """Return the reference's output in its shape; raise a SpecError if it is no array of numbers, such as None."""
        try:
            array = xp.asarray(value)
            if array.dtype.kind == "V":  # a float type of another package, such as ml_dtypes
                array = array.astype("float64")
        except (TypeError, ValueError, NotImplementedError):
            array = None
        if array is None or array.dtype.kind not in "biufc":
            raise SpecError(
                f"{self.case}: reference returned {type(value).__name__} for {output.name}, not numbers "
                f"({arguments.defined_at(self.spec.reference)})"
            )
        shape = values_shape(output.extents(self.axes), output.dtype)
        if array.size != int(np.prod(shape, dtype=np.int64)):
            raise SpecError(f"{self.case}: reference gives {output.name} of shape {array.shape}, not {shape}")
        return array.reshape(shape)


def selected(actual: AnyArray, expected: AnyArray, values: AnyArray, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Return the elements that indices select from the rows of `values`, and those that they should select.

    An index outside of its row is right only where the expected index is the same. A row with an index twice is wrong.
    NaN counts as -inf.
    """
    chosen, wanted = (indices.reshape(len(values), -1).astype("int64") for indices in (actual, expected))
    inside, last = (chosen >= 0) & (chosen < values.shape[1]), values.shape[1] - 1
    ordered = xp.sort(chosen, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1, keepdims=True)
    known = xp.where(xp.isnan(values), -xp.inf, values)
    got, want = (xp.take_along_axis(known, xp.clip(indices, 0, last), axis=1) for indices in (chosen, wanted))
    meant = (wanted >= 0) & (wanted <= last)
    got = xp.where(inside & meant & ~twice, got, xp.where((chosen == wanted) & ~twice, want, xp.nan))
    return got, want
