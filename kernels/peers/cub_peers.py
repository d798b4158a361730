"""Peers by CUB through cuda.compute: algorithms are built once, workspace and results are allocated beforehand.

What is built is kept on disk, since a build takes seconds: later processes load it.

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

from prism_bench.backends import kept_build
from prism_bench.compilation import nvrtc_version
from prism_bench.spec import LIBRARIES, AnyArray


def workspace_bound(algorithm: Callable[..., Any], **arguments: Any) -> Callable[[], None]:
    """Return a call of the built algorithm on the current stream, with as much temporary storage as it asks for."""
    cupy = import_module("cupy")
    stream = cupy.cuda.get_current_stream()
    storage = cupy.empty(max(1, algorithm(temp_storage=None, stream=stream, **arguments)), "uint8")
    return lambda: algorithm(temp_storage=storage, stream=stream, **arguments)


def built(cub: ModuleType, factory: str, what: str, **given: Any) -> Callable[..., Any]:
    """Return the algorithm of that factory for the arguments; `what` names all of them that its code depends on.

    Where the library cannot write the algorithm down, or read it again, each process builds it.
    """
    make, new = getattr(cub, factory), list[Callable[..., Any]]()
    if not hasattr(cub, "serialize"):
        return make(**given)

    def build() -> bytes:
        new.append(make(**given))
        return cub.serialize(new[0])

    try:
        code = kept_build((factory, what, *_circumstances()), build)
        return new[0] if new else cub.deserialize(code)
    except Exception:  # of the cache; what is wrong with the algorithm is raised again
        return new[0] if new else make(**given)


@cache
def _circumstances() -> tuple[object, ...]:
    """Return what else compiled code depends on: the library, the compiler and the device."""
    major, minor = import_module("cuda.core").Device().compute_capability
    return LIBRARIES["cub"].installed_version(), nvrtc_version(), f"sm_{major}{minor}"


@cache
def device_code(source: str) -> bytes:
    """Compile C++ device code for the current device, to be linked into an algorithm of CUB."""

    def build() -> bytes:
        core = import_module("cuda.core")
        options = core.ProgramOptions(
            arch=str(_circumstances()[-1]), std="c++17", relocatable_device_code=True, link_time_optimization=True
        )
        return core.Program(source, "c++", options=options).compile("ltoir").code

    return kept_build((source, *_circumstances()), build)


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


def described(arrays: Sequence[AnyArray], expression: str | None) -> str:
    """Return what code that reads such elements depends on."""
    return f"{expression or 'v[0]'} of {', '.join(str(array.dtype) for array in arrays)}"


def sums(cub: ModuleType, arrays: Sequence[AnyArray], expression: str | None = None) -> Callable[[], AnyArray]:
    """Sum the elements by DeviceReduce, in float32."""
    values = elements(cub, arrays, expression)
    return reduced(cub, values, f"sum of {described(arrays, expression)}", arrays[0].size)


def largest(cub: ModuleType, x: AnyArray) -> Callable[[], AnyArray]:
    """Find the largest element by DeviceReduce."""
    return reduced(cub, x, f"largest of {described((x,), None)}", x.size, largest=True)


def reduced(cub: ModuleType, values: Any, what: str, count: int, largest: bool = False) -> Callable[[], AnyArray]:
    """Reduce `count` float32 values to their sum, or to the largest; the result is an array of one element."""
    op, first = (cub.OpKind.MAXIMUM, -np.inf) if largest else (cub.OpKind.PLUS, 0.0)
    result, first_value = import_module("cupy").empty(1, "float32"), np.full(1, first, "float32")
    algorithm = built(cub, "make_reduce_into", what, d_in=values, d_out=result, op=op, h_init=first_value)
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
    what = f"sums of {described(arrays, expression)}"
    algorithm = built(cub, "make_segmented_reduce", what, d_in=values, d_out=result, op=op, h_init=zero, **ends)
    given = {"d_in": values, "d_out": result, "num_segments": rows, "op": op, "h_init": zero, **ends}
    return returning(result, workspace_bound(algorithm, **given))


def running_sums(cub: ModuleType, x: AnyArray, expression: str | None = None) -> Callable[[], AnyArray]:
    """Scan one row by DeviceScan; a ValueError for several, which cuda.compute has no scan for."""
    if len(x) != 1:
        raise ValueError("cuda.compute scans one row, and has no scan by segments")
    result, values, op = import_module("cupy").empty_like(x), elements(cub, (x,), expression), cub.OpKind.PLUS
    flat, zero = result.reshape(-1), np.zeros(1, "float32")
    what = f"sums of {described((x,), expression)}"
    algorithm = built(cub, "make_inclusive_scan", what, d_in=values, d_out=flat, op=op, init_value=zero)
    run = workspace_bound(algorithm, d_in=values, d_out=flat, num_items=x.size, op=op, init_value=zero)
    return returning(result, run)


def combined(cub: ModuleType, a: AnyArray, b: AnyArray, op: Any) -> Callable[[], AnyArray]:
    """Combine two arrays element by element by DeviceTransform."""
    result = import_module("cupy").empty_like(a)
    flat, left, right = result.reshape(-1), a.reshape(-1), b.reshape(-1)
    what = f"{op} of {described((a, b), None)}"
    algorithm = built(cub, "make_binary_transform", what, d_in1=left, d_in2=right, d_out=flat, op=op)
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
    what = f"{bins} bins of {arrays[0].size} elements, {described(arrays, bin_of)}"
    return returning(result, workspace_bound(built(cub, "make_histogram_even", what, **given), **given))


def returning(result: AnyArray, run: Callable[[], object]) -> Callable[[], AnyArray]:
    """Return a call of `run` that gives the array which it fills."""

    def call() -> AnyArray:
        run()
        return result

    return call


def number(value: float) -> str:
    """Return a number as a float of C++."""
    return f"{float(value)!r}f"
