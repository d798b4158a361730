"""Peers by CUB through cuda.compute: algorithms are built once, workspace and results are allocated beforehand.

The set-up compiles device code for the case's arrays; the function that it returns enqueues the algorithm alone. An
element of the input is made by a C++ expression of `v`, the values at its place in the arrays, so that no array of
elements is written.
"""

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.array_types import AnyArray


def workspace_bound(algorithm: Callable[..., Any], **arguments: Any) -> Callable[[], None]:
    """Return a call of the built algorithm on the current stream, with as much temporary storage as it asks for."""
    cupy = import_module("cupy")
    stream = cupy.cuda.get_current_stream()
    storage = cupy.empty(max(1, algorithm(temp_storage=None, stream=stream, **arguments)), "uint8")
    return lambda: algorithm(temp_storage=storage, stream=stream, **arguments)


@cache
def device_code(source: str) -> bytes:
    """Compile C++ device code for the current device, to be linked into an algorithm of CUB."""
    core = import_module("cuda.core")
    major, minor = core.Device().compute_capability
    options = core.ProgramOptions(
        arch=f"sm_{major}{minor}", std="c++17", relocatable_device_code=True, link_time_optimization=True
    )
    return core.Program(source, "c++", options=options).compile("ltoir").code


def operator_of(cub: ModuleType, expression: str, dtype: str, result: str) -> Any:
    """Return the operator that makes a `result` by a C++ expression of `v[0]`, `v[1]`, ..., all of type `dtype`."""
    name = f"element_{sha256(f'{expression} {dtype} {result}'.encode()).hexdigest()[:16]}"
    source = (
        f'extern "C" __device__ void {name}(void* values, void* result) {{\n'
        f"    const {dtype}* v = static_cast<const {dtype}*>(values);\n"
        f"    *static_cast<{result}*>(result) = {expression};\n}}\n"
    )
    return import_module("cuda.compute.op").RawOp(ltoir=device_code(source), name=name)


def elements(cub: ModuleType, arrays: Sequence[AnyArray], expression: str | None, result: str = "float") -> Any:
    """Return what CUB reads: the only array, or an iterator over what the expression makes of all arrays."""
    flat = [array.reshape(-1) for array in arrays]
    if expression is None:
        return flat[0]
    source = flat[0] if len(flat) == 1 else cub.ZipIterator(*flat)
    types = import_module("cuda.compute.types")
    value = {"float": types.float32, "int": types.int32}[result]
    return cub.TransformIterator(source, operator_of(cub, expression, "float", result), value)


def sums(cub: ModuleType, arrays: Sequence[AnyArray], expression: str | None = None) -> Callable[[], AnyArray]:
    """Sum the elements by DeviceReduce, in float32."""
    return reduced(cub, elements(cub, arrays, expression), arrays[0].size, cub.OpKind.PLUS, 0.0)


def largest(cub: ModuleType, x: AnyArray) -> Callable[[], AnyArray]:
    """Find the largest element by DeviceReduce."""
    return reduced(cub, x, x.size, cub.OpKind.MAXIMUM, -np.inf)


def reduced(cub: ModuleType, values: Any, count: int, op: Any, first: float) -> Callable[[], AnyArray]:
    """Reduce `count` float32 values from `first` on; the result is an array of one element."""
    result, first_value = import_module("cupy").empty(1, "float32"), np.full(1, first, "float32")
    algorithm = cub.make_reduce_into(d_in=values, d_out=result, op=op, h_init=first_value)
    run = workspace_bound(algorithm, d_in=values, d_out=result, num_items=count, op=op, h_init=first_value)
    return returning(result, run)


def row_sums(cub: ModuleType, arrays: Sequence[AnyArray], expression: str | None = None) -> Callable[[], AnyArray]:
    """Sum the elements of each row: by DeviceSegmentedReduce, or by DeviceReduce where there is one row."""
    rows, cols = arrays[0].shape
    if rows == 1:
        return sums(cub, arrays, expression)
    cupy, values, op = import_module("cupy"), elements(cub, arrays, expression), cub.OpKind.PLUS
    result, starts, zero = cupy.empty(rows, "float32"), cupy.arange(rows + 1) * cols, np.zeros(1, "float32")
    ends = {"start_offsets_in": starts[:-1], "end_offsets_in": starts[1:]}
    algorithm = cub.make_segmented_reduce(d_in=values, d_out=result, op=op, h_init=zero, **ends)
    given = {"d_in": values, "d_out": result, "num_segments": rows, "op": op, "h_init": zero, **ends}
    return returning(result, workspace_bound(algorithm, **given))


def running_sums(cub: ModuleType, x: AnyArray, expression: str | None = None) -> Callable[[], AnyArray]:
    """Scan one row by DeviceScan; a ValueError for several, which cuda.compute has no scan for."""
    if len(x) != 1:
        raise ValueError("cuda.compute scans one row, and has no scan by segments")
    result, values, op = import_module("cupy").empty_like(x), elements(cub, (x,), expression), cub.OpKind.PLUS
    flat, zero = result.reshape(-1), np.zeros(1, "float32")
    algorithm = cub.make_inclusive_scan(d_in=values, d_out=flat, op=op, init_value=zero)
    run = workspace_bound(algorithm, d_in=values, d_out=flat, num_items=x.size, op=op, init_value=zero)
    return returning(result, run)


def combined(cub: ModuleType, a: AnyArray, b: AnyArray, op: Any) -> Callable[[], AnyArray]:
    """Combine two arrays element by element by DeviceTransform."""
    result = import_module("cupy").empty_like(a)
    flat, left, right = result.reshape(-1), a.reshape(-1), b.reshape(-1)
    algorithm = cub.make_binary_transform(d_in1=left, d_in2=right, d_out=flat, op=op)
    stream = import_module("cupy").cuda.get_current_stream()
    arguments = {"d_in1": left, "d_in2": right, "d_out": flat, "num_items": a.size, "op": op, "stream": stream}
    return returning(result, lambda: algorithm(**arguments))


def bin_counts(cub: ModuleType, arrays: Sequence[AnyArray], bin_of: str, bins: int) -> Callable[[], AnyArray]:
    """Count elements by DeviceHistogram: the bin is an int that `bin_of` gives, -1 for none."""
    samples, result = elements(cub, arrays, bin_of, "int"), import_module("cupy").empty(bins, "int32")
    given: dict[str, Any] = {
        "d_samples": samples,
        "d_histogram": result,
        "h_num_output_levels": np.array([bins + 1], "int32"),
        "h_lower_level": np.zeros(1, "int32"),
        "h_upper_level": np.array([bins], "int32"),
        "num_samples": arrays[0].size,
    }
    return returning(result, workspace_bound(cub.make_histogram_even(**given), **given))


def returning(result: AnyArray, run: Callable[[], object]) -> Callable[[], AnyArray]:
    """Return a call of `run` that gives the array which it fills."""

    def call() -> AnyArray:
        run()
        return result

    return call


def number(value: float) -> str:
    """Return a number as a float of C++."""
    return f"{float(value)!r}f"
