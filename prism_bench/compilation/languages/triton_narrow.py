"""Numbers of bfloat16, e4m3 and e5m2 in Triton's interpreter: float32 values that every operation rounds to the type.

Triton's own interpreter keeps their bits in unsigned integers, adds and compares these as integers, and does not round
to the nearest where it converts.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from prism_bench.spec.dtypes import PRECISIONS, Precision

_PRECISIONS = {
    "bf16": PRECISIONS["bfloat16"],
    "fp8e4nv": PRECISIONS["float8_e4m3fn"],
    "fp8e5": PRECISIONS["float8_e5m2"],
}


def _precision(dtype: Any) -> Precision | None:
    """Return the format of a type of Triton, or of a block's elements; None where NumPy has it, and for pointers."""
    return _PRECISIONS.get(dtype.scalar.name)


@cache
def compute_narrow_types() -> None:
    """Let the interpreter of this process compute with these types."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    handle, builder = interpreter.TensorHandle, type(interpreter.interpreter_builder)
    numpy_type, fits, checked = interpreter._get_np_dtype, interpreter._validate_np_data_size, handle.__post_init__

    def rounded(self: Any) -> None:
        precision = _precision(self.dtype)
        if precision and self.data.dtype.kind == "f":  # a comparison has truth values, under the type that it compares
            self.data = precision.values(precision.narrowed(self.data)).astype(np.float32)
        checked(self)

    interpreter._get_np_dtype = lambda dtype: np.dtype(np.float32) if _precision(dtype) else numpy_type(dtype)
    interpreter._validate_np_data_size = lambda array, dtype: (
        array.itemsize <= 4 if _precision(dtype) else fits(array, dtype)
    )
    handle.__post_init__ = rounded
    for name, operation in _OPERATIONS.items():
        setattr(builder, name, _for_narrow(interpreter, operation, getattr(builder, name)))
    for name in {"create_atomic_rmw", "create_atomic_cas", "create_dot_scaled"} & set(dir(builder)):
        setattr(builder, name, _refused(name, getattr(builder, name)))


def _for_narrow(interpreter: Any, operation: Callable[..., Any], usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the builder that is `operation` where it has narrow types, else the `usual` method."""

    def method(self: Any, first: Any, *others: Any, **named: Any) -> Any:
        if any(map(_narrow_type, (first, *others))):
            return operation(interpreter, first, *others)
        return usual(self, first, *others, **named)

    return method


def _refused(name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    what = name.removeprefix("create_").replace("_", " ")

    def method(self: Any, *operands: Any, **named: Any) -> Any:
        narrow = next(filter(None, map(_narrow_type, operands)), None)
        if narrow:
            raise NotImplementedError(f"{what} with {narrow}")
        return usual(self, *operands, **named)

    return method


def _narrow_type(operand: Any) -> str | None:
    """Return the narrow type of an operand, a handle or a type, or that it points at; None for all others."""
    element = operand.get_element_ty() if hasattr(operand, "get_element_ty") else getattr(operand, "scalar", None)
    name = getattr(element, "name", None)
    return name if name in _PRECISIONS else None


def _converted(interpreter: Any, source: Any, target: Any, rounding: Any = None) -> Any:
    if rounding == interpreter._ir.ROUNDING_MODE.RTZ:
        raise NotImplementedError(f"rounding toward zero from {source.dtype.scalar.name} to {target.scalar.name}")
    values, precision = source.data, _precision(target)
    if precision and precision.eight:  # a GPU converts to the largest number, never to infinity
        values = np.clip(values.astype(np.float64), -precision.largest, precision.largest)
    return interpreter.TensorHandle(values.astype(interpreter._get_np_dtype(target)), target.scalar)


def _cast_bits(interpreter: Any, source: Any, target: Any) -> Any:
    precision, wanted = _precision(source.dtype), _precision(target)
    bits = precision.narrowed(source.data) if precision else source.data
    if wanted:
        values = wanted.values(bits.view(wanted.dtype)).astype(np.float32)
        return interpreter.TensorHandle(values, target.scalar)
    return interpreter.TensorHandle(bits.view(interpreter._get_np_dtype(target)), target.scalar)


def _load(interpreter: Any, pointers: Any, mask: Any, other: Any, *_: Any) -> Any:
    dtype = pointers.get_element_ty()
    precision = _PRECISIONS[dtype.name]
    values = np.zeros(pointers.data.shape, np.float32) if other is None else other.data
    bits = interpreter._interpreter.load(
        pointers.data, mask.data, precision.narrowed(values), np.dtype(precision.dtype)
    )
    return interpreter.TensorHandle(precision.values(bits).astype(np.float32), dtype)


def _store(interpreter: Any, pointers: Any, value: Any, mask: Any, *_: Any) -> Any:
    bits = _PRECISIONS[pointers.get_element_ty().name].narrowed(value.data)
    return interpreter._interpreter.store(pointers.data, bits, mask.data)


def _absolute(interpreter: Any, value: Any) -> Any:
    return interpreter.TensorHandle(np.abs(value.data), value.dtype.scalar)


def _dot(interpreter: Any, left: Any, right: Any, added: Any, *_: Any) -> Any:
    product = np.matmul(left.data, right.data, dtype=added.data.dtype)
    return interpreter.TensorHandle(product + added.data, added.dtype.scalar)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "cast_impl": _converted, "create_fp_to_fp": _converted, "create_bitcast": _cast_bits, "create_masked_load": _load,
    "create_masked_store": _store, "create_fabs": _absolute, "create_dot": _dot,
}  # fmt: skip
