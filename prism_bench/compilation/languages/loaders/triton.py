"""Triton: `softmax.triton.py` is compiled to a cubin by Triton's own compiler, for any architecture, without a GPU.

A launch passes its arguments in the order of the function's parameters that are no constants; `constants` of the
launch are its `tl.constexpr` parameters and the compiler's options (`num_warps`, `num_stages`, `num_ctas`, `maxnreg`).
As Triton's own launcher does, a multiple of 16 is compiled as one, and an integer that equals 1 as a constant.
"""

import contextlib
import inspect
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.compilation.languages.language import DeviceLaunch, InterpretedLaunch, Language, MachineCode, OwnLaunch
from prism_bench.compilation.languages.triton_interpreter import (
    free_names,
    interpret,
    jit_function,
    missing_constants,
    with_heuristics,
)
from prism_bench.errors import CompilationFailed, SpecError
from prism_bench.io.workers import torch_assemblers
from prism_bench.spec.launch import CardParameter, Constant, Instance, Kind, LaunchCard, Passed
from prism_bench.spec.peer import Library

_TYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "int4x2": "u8", "uint4x2": "u8",
}  # fmt: skip
_HIDDEN = ("global scratch", "profile scratch")  # pointers that every Triton kernel has behind its own parameters
_THREADS = 32  # of a warp
_MULTIPLE = [["tt.divisibility", 16]]


def _cdiv(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def _next_power_of_2(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


@dataclass(frozen=True)
class _Signature:
    """Triton's words for an instance: types, constants and facts of the parameters, the compiler's options."""

    types: dict[str, str]
    constants: dict[str, Constant]
    facts: dict[tuple[int, ...], list[list[object]]]
    passed: tuple[Passed, ...]
    options: dict[str, Constant]


class Triton(Language):
    """Triton on NVIDIA GPUs."""

    title = "Triton"
    library = Library("triton", "triton", "triton", "torch", extra="triton")
    modules = ("triton", "torch")
    prefixes = ("TRITON_", "PTXAS_", "DISABLE_", "LLVM_", "MLIR_")
    stand_ins = {"triton.cdiv": _cdiv, "triton.next_power_of_2": _next_power_of_2}
    interpreter_variables = {"TRITON_INTERPRET": "1"}
    interprets_narrow = True
    variables = {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DEFAULT_FP_FUSION": "1"}

    def compile(self, module: ModuleType, instance: Instance, architecture: str) -> MachineCode:
        """Compile an instance to a cubin; the card has Triton's two hidden pointers."""
        triton = import_module("triton")
        decorated = self.function_of(module, instance.function)
        function = jit_function(decorated, instance.function)
        signature = _signature(decorated, function, instance)
        target = import_module("triton.backends.compiler").GPUTarget("cuda", int(architecture.rstrip("af")), _THREADS)
        source = import_module("triton.compiler").ASTSource(
            function, signature.types, signature.constants, signature.facts
        )
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                compiled = triton.compile(source, target=target, options=signature.options)
            except Exception as error:  # whatever its passes raise, ptxas's complaint among it, is about this kernel
                raise CompilationFailed(_words(function, instance, error)) from error
        return MachineCode(compiled.asm["cubin"], _card(compiled.metadata, signature, architecture), printed.getvalue())

    def own_launch(self, module: ModuleType, launch: DeviceLaunch) -> OwnLaunch:
        """Return a launch by Triton's own launcher, which compiles at the first call."""
        instance = launch.instance
        decorated = self.function_of(module, instance.function)
        function = jit_function(decorated, instance.function)
        names = [one.name for one in function.params if one.name not in instance.constants and not one.is_constexpr]
        values = [one.item() if isinstance(one, np.generic) else one for one in launch.values]
        arguments: dict[str, Any] = dict(zip(names, values, strict=True))
        arguments |= with_heuristics(decorated, instance.constants, arguments)
        torch = import_module("torch")
        import_module("triton").set_allocator(  # for tensor descriptors
            lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )
        launched: list[Any] = []

        for name in torch_assemblers(os.environ):  # our launch has the code of Triton's own assembler
            del os.environ[name]

        def call() -> None:
            launched[:] = [function[launch.grid](**arguments)]

        return OwnLaunch(call, lambda: tuple(kernel.asm["cubin"] for kernel in launched))

    def not_emulated(self) -> str | None:
        """Return why Triton's interpreter cannot run here, or None."""
        if not self.library.is_installed():
            return f"its interpreter comes with Triton, which is not installed ({self._command})"
        return None

    def emulate(self, module: ModuleType, launch: InterpretedLaunch) -> None:
        """Run a launch in Triton's interpreter, program after program."""
        interpret(module, self.function_of(module, launch.instance.function), launch)


def _signature(decorated: Any, function: Any, instance: Instance) -> _Signature:
    named = zip(free_names(function, instance.constants), instance.passed, strict=False)
    ones = {name: 1 for name, passed in named if passed.fact == "1" and not passed.pointer}
    constants = with_heuristics(decorated, instance.constants, ones)
    optional = (parameter for parameter in function.params if parameter.is_constexpr and parameter.has_default)
    defaults = {parameter.name: parameter.default for parameter in optional}
    own = {**defaults, **{name: value for name, value in constants.items() if name in function.arg_names}}
    options = {name: value for name, value in constants.items() if name not in own}
    free = [one for one in function.params if one.name not in own and not one.is_constexpr]
    _refuse_other_arguments(decorated, function, instance, own, free)
    types: dict[str, str] = dict.fromkeys(own, "constexpr")
    facts: dict[tuple[int, ...], list[list[object]]] = {}
    kept: list[Passed] = []
    for parameter, passed in zip(free, instance.passed, strict=True):
        fact = "" if parameter.do_not_specialize else passed.fact
        if fact == "1" and not passed.pointer:
            own[parameter.name], types[parameter.name] = 1, "constexpr"
            continue
        types[parameter.name] = _type(passed)
        kept.append(passed)
        if fact == "16" and not parameter.do_not_specialize_on_alignment:
            facts[(parameter.num,)] = _MULTIPLE
    ordered = {name: types[name] for name in function.arg_names if name in types}
    return _Signature(ordered, own, facts, tuple(kept), options)


def _refuse_other_arguments(
    decorated: Any, function: Any, instance: Instance, own: Mapping[str, Constant], free: list[Any]
) -> None:
    """Raise a SpecError where the launch's arguments and constants are not those of the function."""
    missing = [one.name for one in function.params if one.is_constexpr and one.name not in own and not one.has_default]
    if missing:
        raise missing_constants(decorated, function, missing)
    if len(free) != len(instance.passed):
        takes = ", ".join(one.name for one in free) or "none"
        given = ", ".join(one.name for one in instance.passed) or "none"
        raise SpecError(f"{instance.function} takes the arguments {takes}; the launch passes {given}")


def _type(passed: Passed) -> str:
    if passed.dtype not in _TYPES:
        raise SpecError(f"'{passed.name}' has elements of {passed.dtype}, which Triton does not have")
    return ("*" if passed.pointer else "") + _TYPES[passed.dtype]


def _card(metadata: Any, signature: _Signature, architecture: str) -> LaunchCard:
    own = [CardParameter(_kind(passed), passed.name) for passed in signature.passed]
    hidden = [CardParameter("hidden") for _ in _HIDDEN]
    cluster = tuple(getattr(metadata, "cluster_dims", None) or (metadata.num_ctas, 1, 1))
    return LaunchCard(
        entry=metadata.name,
        architecture=architecture,
        parameters=(*own, *hidden),
        block=(_THREADS * metadata.num_warps, 1, 1),
        cluster=(cluster[0], cluster[1], cluster[2]),
        shared=metadata.shared,
        scratch_bytes=metadata.global_scratch_size,
        scratch_align=metadata.global_scratch_align,
        attributes={"num_warps": metadata.num_warps, "num_stages": metadata.num_stages, "num_ctas": metadata.num_ctas},
    )


def _kind(passed: Passed) -> Kind:
    kinds: dict[str, Kind] = {"bool": "int8", "bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
    return "pointer" if passed.pointer else kinds.get(passed.dtype, passed.dtype)  # pyright: ignore[reportReturnType]


def _words(function: Any, instance: Instance, error: Exception) -> str:
    """Return the compiler's message with the file, and the line where Triton knows it."""
    code = function.fn.__code__
    source = inspect.getsource(function.fn)
    decorators = source[: source.index("def ")].count("\n")
    within = getattr(getattr(error, "node", None), "lineno", None)  # of the function without its decorators
    line = code.co_firstlineno + decorators + (within or 1) - 1
    return f"{code.co_filename}:{line}: {instance}: {type(error).__name__}: {str(error).strip()}"


LANGUAGE = Triton()
