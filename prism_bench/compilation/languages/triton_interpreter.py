"""Triton's interpreter on NumPy arrays: functions below wrappers, libdevice, and a check of every access to memory.

Everything here runs in the child process that interprets; it changes Triton's modules for good.
"""

import inspect
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from prism_bench.compilation.languages.interpreting import HostTensor
from prism_bench.compilation.languages.language import InterpretedLaunch
from prism_bench.compilation.languages.triton_narrow import compute_narrow_types
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, SpecError, VerificationFailed
from prism_bench.spec.dtypes import CARRIED, storage_of, values_of
from prism_bench.spec.launch import Constant, Passed

# Functions below decorators such as `autotune` and `heuristics`, which choose constants at a launch.


def jit_function(decorated: Any, name: str) -> Any:
    """Return Triton's function below its decorators; raise a SpecError if there is none."""
    function = decorated
    while not (inspect.isfunction(getattr(function, "fn", None)) and hasattr(function, "arg_names")):
        if not hasattr(function, "fn"):
            raise SpecError(f"'{name}' is no function with @triton.jit")
        function = function.fn
    return function


def wrappers(decorated: Any) -> Iterator[Any]:
    """Yield the decorators' objects above Triton's function, the outermost first."""
    while not inspect.isfunction(getattr(decorated, "fn", None)):
        yield decorated
        decorated = decorated.fn


def with_heuristics(
    decorated: Any, constants: Mapping[str, Constant], arguments: Mapping[str, Any]
) -> dict[str, Constant]:
    """Return the constants of a launch, and those that `@triton.heuristics` decides where the launch gives none.

    A text such as `tl.float16` is the type of that name. `arguments` are the values that are known. Raise a SpecError
    for a heuristic that needs others.
    """
    known = {name: _typed(value) for name, value in constants.items()}
    for wrapper in wrappers(decorated):
        heuristics = getattr(wrapper, "values", None)
        for name, decide in heuristics.items() if isinstance(heuristics, Mapping) else ():
            if name in known:
                continue
            try:
                known[name] = _plain(decide({**arguments, **known}))
            except Exception as error:  # whatever a heuristic raises without what it asks for
                raise SpecError(
                    f"{_place(decide)}: the launch gives no constant {name}, and its heuristic cannot decide without a "
                    f"launch ({type(error).__name__}: {error}); write constants={{..., '{name}': ...}} in the spec"
                ) from error
    return known


def _typed(value: Constant) -> Any:
    """Return the type of Triton that a constant names, any other constant as it is."""
    if not isinstance(value, str) or not value.startswith("tl."):
        return value
    language = import_module("triton.language")
    named = getattr(language, value.removeprefix("tl."), None)
    return named if isinstance(named, language.dtype) else value


def configurations(decorated: Any) -> list[Any]:
    """Return the configurations of `@triton.autotune`, in order; no configuration without it."""
    return [configuration for wrapper in wrappers(decorated) for configuration in getattr(wrapper, "configs", ())]


def first_configuration(decorated: Any) -> str:
    """Return what the first configuration has, for an error about a missing constant; empty without `autotune`."""
    constants = [configuration.all_kwargs() for configuration in configurations(decorated)]
    items = ", ".join(f"'{name}': {value!r}" for name, value in constants[0].items()) if constants else ""
    return f"; the first configuration of @triton.autotune has {{{items}}}" if items else ""


def _place(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _require_hooks_done(
    decorated: Any, constants: Mapping[str, Constant], arguments: Mapping[str, Any], instance: str
) -> None:
    """Raise a SpecError if the hook of the launch's configuration changes a buffer that the spec leaves as it is.

    A launch of a spec runs no hook; `Zero("c")` before it does what `pre_hook=lambda args: args["c"].zero_()` does.
    Hooks of `autotune` itself, `reset_to_zero` and `restore_value` belong to tuning, which a launch does not do.
    """
    chosen = [
        configuration
        for configuration in configurations(decorated)
        if all(constants.get(name) == value for name, value in configuration.kwargs.items())
        and all(constants.get(name, value) == value for name, value in configuration.all_kwargs().items())
    ]
    hook = getattr(chosen[0], "pre_hook", None) if chosen else None
    if hook is None:
        return
    copies = {name: value.clone() if isinstance(value, HostTensor) else value for name, value in arguments.items()}
    try:
        hook({**copies, **constants})
    except Exception as error:
        raise BackendUnavailable(
            f"{_place(hook)}: {instance}: not emulated: the pre_hook of its configuration ({type(error).__name__}: "
            f"{error}); the compile check and the GPU take the launch without it"
        ) from error
    for name, value in arguments.items():
        if isinstance(value, HostTensor) and not copies[name].same_bytes(value):
            raise SpecError(
                f"{_place(hook)}: {instance}: the pre_hook of its configuration changes '{name}', and a launch of a "
                f"spec runs no hook; return (Zero('{name}'), Launch(...)) from the spec's launch"
            )


# Memory of a launch: the buffers of its arguments by address.


class _Memory:
    """The buffers of a launch's arguments; an access to anything else ends the launch, as it may end on a GPU."""

    def __init__(self, buffers: Sequence[tuple[str, np.ndarray]], program: Callable[[], tuple[int, ...]]) -> None:
        placed = sorted(((array.ctypes.data, name, array) for name, array in buffers), key=lambda entry: entry[0])
        self._arrays = [(name, array) for _, name, array in placed]
        self._starts = [start for start, *_ in placed]
        self._ends = [start + array.nbytes for start, _, array in placed]
        self._program = program

    def check(self, pointers: Any, mask: np.ndarray | None, verb: str) -> None:
        """Raise VerificationFailed if an active lane's element is in no buffer, or at no multiple of its size."""
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        addresses = pointers.data if mask is None else pointers.data[mask]
        if not addresses.size:
            return
        lowest, highest = int(addresses.min()), int(addresses.max())
        index = bisect_right(self._starts, lowest) - 1
        is_aligned = size == 1 or not int(np.bitwise_or.reduce(addresses, axis=None)) & (size - 1)
        if is_aligned and index >= 0 and highest + size <= self._ends[index]:
            return
        starts, ends = np.array(self._starts, np.uint64), np.array(self._ends, np.uint64)
        owners = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
        inside = (owners >= 0) & (addresses + np.uint64(size) <= ends[owners])
        for kind, wrong in (("out of bounds", ~inside), ("misaligned", addresses % np.uint64(size) != 0)):
            if wrong.any():
                address, lanes = int(addresses[wrong][0]), int(wrong.sum())
                raise VerificationFailed(f"{kind}: {self._text(address, kind, verb)}{self._where(lanes, wrong.size)}")

    def _text(self, address: int, kind: str, verb: str) -> str:
        """Return `load of x[4096]; x ends at x[4095]`, of the argument whose buffer is the nearest."""
        if not self._arrays:
            return f"{verb} at {address:#x}; the launch passes no buffer"
        index = min(
            range(len(self._starts)), key=lambda at: max(self._starts[at] - address, address - self._ends[at], 0)
        )
        (name, array), start = self._arrays[index], self._starts[index]
        element = (address - start) // array.itemsize
        if kind == "misaligned":
            return f"{verb} at byte {address - start} of {name}, no multiple of the element's size"
        if not array.size:
            return f"{verb} of {name}[{element}]; {name} has no element"
        end = f"begins at {name}[0]" if address < start else f"ends at {name}[{array.size - 1}]"
        return f"{verb} of {name}[{element}]; {name} {end}"

    def _where(self, lanes: int, active: int) -> str:
        return f" (program {', '.join(map(str, self._program()))}; {lanes} of {active} active lanes)"


def _check_accesses(builder: Any, memory: _Memory) -> None:
    """Let the interpreter's builder check each load, store and atomic operation against the memory of a launch.

    Block pointers and descriptors end in the same loads and stores.
    """
    kind = type(builder)

    def load(pointers: Any, mask: Any, other: Any, *options: Any, **named: Any) -> Any:
        memory.check(pointers, mask.data, "load")
        return kind.create_masked_load(builder, pointers, mask, other, *options, **named)

    def store(pointers: Any, value: Any, mask: Any, *options: Any, **named: Any) -> Any:
        memory.check(pointers, mask.data, "store")
        return kind.create_masked_store(builder, pointers, value, mask, *options, **named)

    def compare_and_swap(pointers: Any, *operands: Any, **named: Any) -> Any:
        memory.check(pointers, None, "atomic operation")
        return kind.create_atomic_cas(builder, pointers, *operands, **named)

    def modify(operation: Any, pointers: Any, value: Any, mask: Any, *options: Any, **named: Any) -> Any:
        memory.check(pointers, mask.data, "atomic operation")
        return kind.create_atomic_rmw(builder, operation, pointers, value, mask, *options, **named)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_cas, builder.create_atomic_rmw = compare_and_swap, modify


# Functions of libdevice by their symbol, in float64 and rounded to the result: `__nv_tanhf` is tanh.


def _away_from_zero(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    bits = 8 * x.itemsize
    return np.vectorize(lambda number: bits - (int(number) % (1 << bits)).bit_length(), otypes=[np.int32])(x)


def _ones(x: np.ndarray) -> np.ndarray:
    bits = 8 * x.itemsize
    return np.vectorize(lambda number: (int(number) % (1 << bits)).bit_count(), otypes=[np.int32])(x)


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.power(x.astype(np.float64), y)


def _of_math(function: Callable[[float], float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[np.float64])


_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "exp10": lambda x: np.power(10.0, x), "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)), "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "erf": _of_math(math.erf), "erfc": _of_math(math.erfc), "tgamma": _of_math(math.gamma),
    "lgamma": _of_math(math.lgamma), "normcdf": _of_math(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "llrint": np.rint, "round": _away_from_zero, "llround": _away_from_zero, "fabs": np.abs, "abs": np.abs,
    "llabs": np.abs, "saturate": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)), "isnan": np.isnan,
    "isnand": np.isnan, "isinf": np.isinf, "isinfd": np.isinf, "finite": np.isfinite, "isfinited": np.isfinite,
    "signbit": np.signbit, "signbitd": np.signbit, "copysign": np.copysign, "nextafter": np.nextafter,
    "fmod": np.fmod, "remainder": lambda x, y: x - np.rint(x / y) * y, "fdim": lambda x, y: np.maximum(x - y, 0),
    "hypot": np.hypot, "rhypot": lambda x, y: 1 / np.hypot(x, y), "pow": _power, "powi": _power,
    "ldexp": np.ldexp, "scalbn": np.ldexp, "fma": lambda x, y, z: x * y + z, "fma_rn": lambda x, y, z: x * y + z,
    "fmaf_rn": lambda x, y, z: x * y + z, "fast_fdivide": np.divide, "clz": _leading_zeros, "clzll": _leading_zeros,
    "popc": _ones, "popcll": _ones,
    **{f"{kind}{name}_rn": function for kind in "fd" for name, function in (
        ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("sqrt", np.sqrt),
        ("rcp", lambda x: 1 / x), ("rsqrt", lambda x: 1 / np.sqrt(x)))},
    **{f"{of}2{to}_{way}": function
       for of, to in (("float", "int"), ("float", "uint"), ("float", "ll"), ("float", "ull"), ("double", "int"),
                      ("double", "uint"), ("double", "ll"), ("double", "ull"))
       for way, function in (("rn", np.rint), ("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil))},
    **{f"{of}2{to}_rn": np.positive for of in ("int", "uint", "ll", "ull") for to in ("float", "double")},
    "double2float_rn": np.positive,
}  # fmt: skip
_BITS = ("int_as_float", "float_as_int", "uint_as_float", "float_as_uint", "longlong_as_double", "double_as_longlong")
# Functions of SciPy by the name in libdevice.
_SPECIAL = {
    "erfinv": "erfinv", "erfcinv": "erfcinv", "erfcx": "erfcx", "normcdfinv": "ndtri", "j0": "j0", "j1": "j1",
    "y0": "y0", "y1": "y1", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1",
}  # fmt: skip


def _library_function(symbol: str) -> Callable[..., Any]:
    """Return the function of NumPy or SciPy for a symbol of libdevice; BackendUnavailable if there is none here."""
    name = symbol.removeprefix("__nv_")
    for form in (name, name.removesuffix("f"), name.removeprefix("fast_").removesuffix("f")):
        if form in _ELEMENTWISE:
            return _ELEMENTWISE[form]
        if form in _SPECIAL:
            try:
                return getattr(import_module("scipy.special"), _SPECIAL[form])
            except ImportError:
                raise BackendUnavailable(
                    f"not emulated: {symbol} of libdevice needs SciPy (pip install scipy)"
                ) from None
    raise BackendUnavailable(f"not emulated: {symbol} of libdevice, for which the interpreter has no function")


def _library_call(library: str, path: str, symbol: str, operands: Sequence[Any], result: Any, pure: bool) -> Any:
    """Return what an external function gives element by element, as the builder's `create_extern_elementwise`."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    kind, values = result.scalar, [operand.data for operand in operands]
    dtype = interpreter._get_np_dtype(kind)
    if symbol.removeprefix("__nv_") in _BITS:
        return interpreter.TensorHandle(np.ascontiguousarray(values[0]).view(dtype), kind)
    function = _library_function(symbol)
    wide = [value.astype(np.float64) if value.dtype.kind == "f" else value for value in values]
    with np.errstate(all="ignore"):
        return interpreter.TensorHandle(np.asarray(function(*wide)).astype(dtype), kind)


# Names of Triton's language in a kernel's file, which the interpreter replaces in `triton.language` alone.

_LIBRARIES = ("triton.language.extra.cuda.libdevice", "triton.language.extra.libdevice")
_HIDDEN = "_triton_language"  # for a file without a name for `triton.language`, which the interpreter looks for


@cache
def _semantic() -> Any:
    return import_module("triton.runtime.interpreter").interpreter_semantic


def _interpreted(value: Any, language: ModuleType, library: ModuleType) -> Any:
    """Return the form of a function of Triton's language in the interpreter; any other value as it is."""
    if value is language.range or value is language.static_range:
        return _counted
    if isinstance(value, FunctionType) and value.__module__ == _LIBRARIES[1]:
        value = getattr(library, value.__name__, value)
    is_builtin = isinstance(value, FunctionType) and language.core.is_builtin(value)
    return partial(value, _semantic=_semantic()) if is_builtin else value


def _counted(start: int, stop: int | None = None, step: int = 1, **_: object) -> range:
    return range(start, step) if stop is None else range(start, stop, step)


@cache
def _replace_libraries() -> None:
    """Let the functions of libdevice run outside of a compiler, and the builder compute them."""
    language, library = import_module("triton.language"), import_module(_LIBRARIES[0])
    for module in (import_module(_LIBRARIES[1]), library):
        for name, value in list(vars(module).items()):
            setattr(module, name, _interpreted(value, language, library))
    interpreter: Any = import_module("triton.runtime.interpreter")
    interpreter.interpreter_builder.create_extern_elementwise = _library_call
    patch_tensor = interpreter._patch_lang_tensor

    def patch(tensor: Any, *scope: Any) -> None:
        """Let a tensor of one element be an index, where Triton before 3.9 takes its array for a number."""
        patch_tensor(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())  # NumPy since 2.4 refuses int(array)

    interpreter._patch_lang_tensor = patch


def _prepare(function: Any, seen: set[int]) -> None:
    """Replace names of Triton's language among the globals of a function, and of the functions that it can call."""
    names = function.fn.__globals__
    if id(names) in seen:
        return
    seen.add(id(names))
    language, library = import_module("triton.language"), import_module(_LIBRARIES[0])
    names.setdefault(_HIDDEN, language)
    for name, value in list(names.items()):
        replaced = _interpreted(value, language, library)
        if replaced is not value:
            names[name] = replaced
        elif type(value) is type(function) and not value.fn.__module__.startswith("triton."):
            _prepare(value, seen)
        elif isinstance(value, ModuleType) and not value.__name__.startswith(("triton.", "torch.")):
            for helper in [helper for helper in vars(value).values() if type(helper) is type(function)]:
                _prepare(helper, seen)


# A launch.


def interpret(module: ModuleType, decorated: Any, launch: InterpretedLaunch) -> None:
    """Run a launch program after program, with every access checked.

    Raise VerificationFailed for an error of the kernel, with file and line, and BackendUnavailable for what the
    interpreter lacks.
    """
    instance = launch.instance
    function = jit_function(decorated, instance.function)
    values = [_passed(*passed) for passed in zip(launch.values, instance.passed, strict=True)]
    free = free_names(function, instance.constants)
    if len(free) != len(values):
        passed = ", ".join(argument.name for argument in instance.passed) or "none"
        raise SpecError(
            f"{_place(function.fn)}: {instance.function} takes the arguments {', '.join(free) or 'none'}; the launch "
            f"passes {passed}"
        )
    arguments = dict(zip(free, values, strict=True))
    constants = with_heuristics(decorated, instance.constants, arguments)
    _require_constants(decorated, function, constants)
    _require_hooks_done(decorated, constants, arguments, str(instance))
    builder = import_module("triton.runtime.interpreter").interpreter_builder
    buffers = [
        (argument.name, value)
        for argument, value in zip(instance.passed, launch.values, strict=True)
        if isinstance(value, np.ndarray)
    ]
    _replace_libraries()
    compute_narrow_types()
    _prepare(function, set())
    _check_accesses(builder, _Memory(buffers, lambda: builder.grid_idx))
    named = {name: value for name, value in constants.items() if name in function.arg_names}
    try:
        function[launch.grid](**arguments, **named)
    except Exception as error:  # whatever a kernel raises when it is interpreted is about this kernel
        raise _described(error, module, str(instance)) from error


def _passed(value: Any, argument: Passed) -> Any:
    """Return an argument as Triton's interpreter takes it; of a number that NumPy lacks the value of its bits."""
    if isinstance(value, np.ndarray):
        return HostTensor(value, argument.dtype)
    is_carried = argument.dtype in CARRIED
    return values_of(np.asarray(value, storage_of(argument.dtype)), argument.dtype).item() if is_carried else value


def free_names(function: Any, constants: Mapping[str, Constant]) -> list[str]:
    """Return the parameters that a launch passes arguments for: no constants, and none that it gives by name."""
    annotations = inspect.get_annotations(function.fn)
    return [
        name for name in function.arg_names if name not in constants and "constexpr" not in str(annotations.get(name))
    ]


def _require_constants(decorated: Any, function: Any, constants: Mapping[str, Constant]) -> None:
    signature, annotations = inspect.signature(function.fn), inspect.get_annotations(function.fn)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if "constexpr" in str(annotations.get(name))
        and name not in constants
        and parameter.default is inspect.Parameter.empty
    ]
    if missing:
        raise missing_constants(decorated, function, missing)


def missing_constants(decorated: Any, function: Any, names: Sequence[str]) -> SpecError:
    """Return the error of a launch without a value for these parameters."""
    return SpecError(
        f"{_place(function.fn)}: {function.fn.__name__}: the launch gives no constant {', '.join(names)}"
        f"{first_configuration(decorated)}"
    )


def _described(error: BaseException, module: ModuleType, instance: str) -> PrismBenchError:
    """Return the error that a kernel raised, with the file and the innermost line of the kernel or its helper."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    place = _line_of(error) or str(module.__file__)
    if isinstance(error, PrismBenchError):
        text = str(error)
        if text.startswith("not emulated: "):
            text = f"{text}; the compile check and the GPU take it"
        return type(error)(f"{place}: {instance}: {text}")
    lacks = isinstance(error, AttributeError) and "InterpreterBuilder" in str(error)
    lacks |= isinstance(error, ValueError) and str(error).lower().startswith("unsupported ")
    if isinstance(error, NotImplementedError) and "removed" in str(error):  # from this version of Triton
        return CompilationFailed(f"{place}: {instance}: {error}")
    if isinstance(error, NotImplementedError) or lacks:
        return BackendUnavailable(f"{place}: {instance}: not emulated: {error}; the compile check and the GPU take it")
    return VerificationFailed(f"{place}: {instance}: {type(error).__name__}: {error}")


def _line_of(error: BaseException) -> str | None:
    """Return `file:line` of the innermost frame that is neither Triton's, NumPy's nor this package's."""
    packages = [Path(str(import_module(name).__file__)).parent for name in ("triton", "numpy", "prism_bench")]
    place, trace = None, error.__traceback__
    while trace:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_absolute() and not any(file.is_relative_to(package) for package in packages):
            place = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
