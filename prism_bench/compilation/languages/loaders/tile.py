"""cuTile: `softmax.tile.py` is compiled to a cubin by NVIDIA's tile compiler, for any architecture, without a GPU.

A launch passes its arguments in the order of the function's parameters; an array has the axes of the spec, the last one
contiguous. `constants` of the launch are its `ct.Constant` parameters, hints of `ct.kernel` (`num_ctas`,
`num_worker_warps`, `occupancy`, `opt_level`), and `divisible`: of how many elements the length of every last axis is a
multiple. The grid counts clusters.
"""

import inspect
import io
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.compilation.cubin import elf_entries
from prism_bench.compilation.languages.language import DeviceLaunch, Language, MachineCode, OwnLaunch
from prism_bench.errors import CompilationFailed, SpecError
from prism_bench.spec.launch import CardParameter, Constant, Instance, LaunchCard, Passed
from prism_bench.spec.peer import Library

_DIVISIBLE = "divisible"
_ALIGNED = 16  # bytes that every buffer's address is a multiple of
_KINDS = {"bool": "bool_", "bfloat16": "bfloat16"}


class CuTile(Language):
    """The tile language of CUDA Python."""

    title = "cuTile"
    library = Library("tile", "cuda.tile", "cuda-tile", "torch", extra="tile")
    modules = ("cuda",)
    prefixes = ("CUDA_TILE_",)
    parts = {"tileiras": "nvidia-cuda-tileiras"}
    stand_ins = {"cuda.tile.cdiv": lambda dividend, divisor: -(-dividend // divisor)}

    def compile(self, module: ModuleType, instance: Instance, architecture: str) -> MachineCode:
        """Compile an instance to a cubin; of an array the card has pointer, lengths and strides."""
        kernel = self.function_of(module, instance.function)
        names = _parameter_names(kernel, instance)
        signature = _signature(instance, names, int(instance.constants.get(_DIVISIBLE, 1) or 1))
        target, output = f"sm_{architecture.rstrip('af')}", io.BytesIO()
        try:
            hinted = _hinted(kernel, names, instance)
            export = import_module("cuda.tile.compilation").export_kernel
            export(hinted, [signature], output, gpu_code=target, output_format="cubin")
        except FileNotFoundError as error:  # tileiras, which is a separate package
            raise self.incomplete(error) from error
        except Exception as error:  # whatever its passes and tileiras raise is about this kernel
            raise CompilationFailed(_words(kernel, instance, error)) from error
        return _machine_code(output.getvalue(), instance, architecture)

    def own_launch(self, module: ModuleType, launch: DeviceLaunch) -> OwnLaunch:
        """Return a launch by cuTile's own launcher, which compiles at the first call and keeps its cubin to itself."""
        instance, tile = launch.instance, import_module("cuda.tile")
        kernel = self.function_of(module, instance.function)
        names = _parameter_names(kernel, instance)
        hinted = _hinted(kernel, names, instance)
        passed = (one.item() if isinstance(one, np.generic) else one for one in launch.values)
        values = tuple(instance.constants[name] if name in instance.constants else next(passed) for name in names)
        return OwnLaunch(lambda: tile.launch(launch.stream, launch.grid, hinted, values))


def _hinted(kernel: Any, names: list[str], instance: Instance) -> Any:
    """Return the kernel with the hints among the launch's constants."""
    own = (*names, _DIVISIBLE)
    hints = {name: value for name, value in instance.constants.items() if name not in own}
    return kernel.replace_hints(**hints) if hints else kernel


def _parameter_names(kernel: Any, instance: Instance) -> list[str]:
    """Return the names of the function's parameters; a SpecError where the launch gives other ones."""
    if not hasattr(kernel, "_pyfunc"):
        raise SpecError(f"'{instance.function}' is no function with @ct.kernel")
    names = list(inspect.signature(kernel._pyfunc).parameters)
    free = [name for name in names if name not in instance.constants]
    if len(free) != len(instance.passed):
        given = ", ".join(one.name for one in instance.passed) or "none"
        raise SpecError(f"{instance.function} takes the arguments {', '.join(free)}; the launch passes {given}")
    return names


def _signature(instance: Instance, names: list[str], divisible: int) -> Any:
    """Return cuTile's signature: constants by value, arrays with what is known of them, scalars by type."""
    compilation = import_module("cuda.tile.compilation")
    passed = iter(instance.passed)
    constraints: list[Constant | Any] = [
        instance.constants[name] if name in instance.constants else _constraint(next(passed), divisible)
        for name in names
    ]
    convention = compilation.CallingConvention.cutile_python_v1()
    return compilation.KernelSignature(constraints, convention, symbol=instance.function)


def _constraint(passed: Passed, divisible: int) -> Any:
    tile, compilation = import_module("cuda.tile"), import_module("cuda.tile.compilation")
    dtype = getattr(tile, _KINDS.get(passed.dtype, passed.dtype), None)
    if dtype is None:
        raise SpecError(f"'{passed.name}' has elements of {passed.dtype}, which cuTile does not have")
    if not passed.pointer:
        return compilation.ScalarConstraint(dtype)
    before = [1] * (passed.dimensions - 1)
    facts: Mapping[str, Any] = {
        "stride_lower_bound_incl": 0,
        "alias_groups": (),
        "may_alias_internally": False,
        "stride_constant": (*(None for _ in before), 1),
        "base_addr_divisible_by": _ALIGNED,
        "shape_divisible_by": (*before, divisible),
        "stride_divisible_by": (*(divisible for _ in before), 1),
    }
    return compilation.ArrayConstraint(dtype, passed.dimensions, index_dtype=tile.int32, **facts)


def _machine_code(cubin: bytes, instance: Instance, architecture: str) -> MachineCode:
    entry = elf_entries(cubin)[instance.function]
    parameters = tuple(one for passed in instance.passed for one in _parameters(passed))
    required = {"block": entry.block or (0, 0, 0), "cluster": entry.cluster or (1, 1, 1)}
    card = LaunchCard(instance.function, architecture, parameters, **required)
    return MachineCode(cubin, card)


def _parameters(passed: Passed) -> list[CardParameter]:
    if not passed.pointer:
        kinds = {"bool": "int8", "bfloat16": "uint16"}
        return [CardParameter(kinds.get(passed.dtype, passed.dtype), passed.name)]  # pyright: ignore[reportArgumentType]  # one of the kinds, or refused
    lengths = [CardParameter("int32", f"{passed.name}.shape.{axis}") for axis in range(passed.dimensions)]
    strides = [CardParameter("int32", f"{passed.name}.stride.{axis}") for axis in range(passed.dimensions)]
    return [CardParameter("pointer", passed.name), *lengths, *strides]


def _words(kernel: Any, instance: Instance, error: Exception) -> str:
    """Return the compiler's message with the file, and the line of the function where its message has none."""
    code = kernel._pyfunc.__code__
    text = str(error).strip()
    place = "" if code.co_filename in text else f"{code.co_filename}:{code.co_firstlineno}: "
    return f"{place}{instance}: {type(error).__name__}: {text}"


LANGUAGE = CuTile()
