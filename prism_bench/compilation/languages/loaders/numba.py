"""Numba-CUDA: `softmax.numba.py` is compiled by Numba, and linked to a cubin by nvJitLink, without a GPU.

A launch passes its arguments in the order of the function's parameters; an array is C-contiguous and has the axes of
the spec. `constants` of the launch are globals of the kernel's file that the function reads, such as `TILE`, and
options of `cuda.jit`: `fastmath`, `opt`, `lto`, `launch_bounds` (threads of a block) and its second one, `min_blocks`.
As with Numba's own launcher, the linker compiles the code (`lto`); without it Numba's PTX is compiled to other code.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from prism_bench.compilation.cubin import elf_entries
from prism_bench.compilation.languages.language import (
    DeviceLaunch,
    InterpretedLaunch,
    Language,
    MachineCode,
    OwnLaunch,
    with_globals,
)
from prism_bench.errors import CompilationFailed, SpecError, VerificationFailed
from prism_bench.spec.launch import CardParameter, Instance, Kind, LaunchCard, Passed
from prism_bench.spec.peer import Library
from prism_bench.units import count_text

_OPTIONS = ("fastmath", "launch_bounds", "lto", "opt")
_BLOCKS = "min_blocks"  # of a multiprocessor at once, which the registers of a thread have to allow


class NumbaCuda(Language):
    """NVIDIA's CUDA target of Numba."""

    title = "Numba-CUDA"
    library = Library("numba", "numba_cuda", "numba-cuda", "cupy", extra="numba")
    modules = ("numba",)
    prefixes = ("NUMBA_",)
    parts = {"NVVM": "nvidia-nvvm", "nvJitLink": "nvidia-nvjitlink"}
    interpreter_variables = {"NUMBA_ENABLE_CUDASIM": "1"}
    most_threads = 2048  # each is one of Python's

    def compile(self, module: ModuleType, instance: Instance, architecture: str) -> MachineCode:
        """Compile an instance to a cubin; of an array the card has seven words, and two more for each further axis."""
        function = _python_function(self.function_of(module, instance.function), instance)
        options, constants = _options_and_constants(instance)
        optimised = options.pop("lto")
        try:
            cuda = _numba_cuda()
            types = tuple(_type(passed) for passed in instance.passed)
            capability = divmod(int(architecture.rstrip("af")), 10)
            options |= {"output": "ltoir" if optimised else "ptx", "device": False, "abi": "numba"}
            with _device_of(capability):
                code, _ = cuda.compile(with_globals(function, constants), types, cc=capability, **options)
            cubin = _linked(code, architecture)
        except SpecError:
            raise
        except ImportError as error:  # NVVM or nvJitLink, which are separate packages
            raise self.incomplete(error) from error
        except Exception as error:  # whatever typing, lowering and the linker raise is about this kernel
            raise CompilationFailed(_words(function, instance, error)) from error
        return MachineCode(cubin, _card(cubin, instance, architecture))

    def own_launch(self, module: ModuleType, launch: DeviceLaunch) -> OwnLaunch:
        """Return a launch by Numba's own launcher, which compiles at the first call."""
        cuda, instance = _numba_cuda(), launch.instance
        options, constants = _options_and_constants(instance)
        function = _python_function(self.function_of(module, instance.function), instance)
        kernel = cuda.jit(with_globals(function, constants), **options)
        bound = kernel[launch.grid, launch.block, cuda.external_stream(launch.stream)]
        values = [cuda.as_cuda_array(one) if hasattr(one, "data_ptr") else one for one in launch.values]
        return OwnLaunch(
            lambda: bound(*values),
            lambda: tuple(_cubin(one._codelibrary.get_cubin()) for one in kernel.overloads.values()),
        )

    def not_emulated(self) -> str | None:
        """Return why Numba's simulator cannot run here, or None."""
        if not self.library.is_installed():
            return f"its simulator comes with Numba-CUDA, which is not installed ({self._command})"
        return None

    def emulate(self, module: ModuleType, launch: InterpretedLaunch) -> None:
        """Run a launch in Numba's simulator, block after block, with a thread of Python for each thread."""
        instance = launch.instance
        found = self.function_of(module, instance.function)
        function = _python_function(getattr(found, "fn", found), instance)
        _, constants = _options_and_constants(instance)
        kernel = _numba_cuda().jit(with_globals(function, constants))
        try:
            with np.errstate(all="ignore"):  # of its scalars, which are NumPy's
                kernel[launch.grid, launch.block](*launch.values)
        except Exception as error:  # whatever a kernel raises when it is simulated is about this kernel
            raise VerificationFailed(_words(function, instance, error)) from error


def _numba_cuda() -> Any:
    """Return `numba.cuda`. Up to 0.30 it asks for a name of `numpy.vstack` that NumPy 2.5 has no more."""
    if not hasattr(np, "row_stack"):
        setattr(np, "row_stack", np.vstack)  # noqa: B010 - NumPy is typed without it
    return import_module("numba.cuda")


@contextmanager
def _device_of(capability: tuple[int, int]) -> Iterator[None]:
    """Let functions of the device, which Numba compiles for the current GPU, be compiled where there is none."""
    dispatcher: Any = import_module("numba.cuda.dispatcher")
    current = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = current


def _options_and_constants(instance: Instance) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the launch's constants as options of the compiler and globals of the file."""
    options: dict[str, Any] = {name: value for name, value in instance.constants.items() if name in _OPTIONS}
    constants = {name: value for name, value in instance.constants.items() if name not in (*options, _BLOCKS)}
    if _BLOCKS in instance.constants:
        options["launch_bounds"] = options.get("launch_bounds"), instance.constants[_BLOCKS]
    return {"lto": True, **options}, constants


def _cubin(found: Any) -> bytes:
    """Return the bytes of a cubin, which Numba may keep as an object of cuda.core."""
    return bytes(getattr(found, "code", found))


def _python_function(found: Any, instance: Instance) -> FunctionType:
    """Return the function below `@cuda.jit`; a SpecError where it takes other arguments than the launch passes."""
    function = getattr(found, "py_func", found)
    if not isinstance(function, FunctionType):
        raise SpecError(f"'{instance.function}' is no function with @cuda.jit")
    names = list(inspect.signature(function).parameters)
    if len(names) != len(instance.passed):
        given = ", ".join(one.name for one in instance.passed) or "none"
        raise SpecError(f"{instance.function} takes the arguments {', '.join(names)}; the launch passes {given}")
    return function


def _type(passed: Passed) -> Any:
    types = import_module("numba.types")
    scalar = getattr(types, "boolean" if passed.dtype == "bool" else passed.dtype, None)
    if scalar is None:
        raise SpecError(f"'{passed.name}' has elements of {passed.dtype}, which Numba does not have")
    return types.Array(scalar, passed.dimensions, "C") if passed.pointer else scalar


def _linked(code: str | bytes, architecture: str) -> bytes:
    """Return the cubin that nvJitLink makes of PTX (text) or of the linker's own language (bytes).

    It is as new as the compiler, which other packages' ptxas is not.
    """
    linker = import_module("cuda.bindings.nvjitlink")
    is_text = isinstance(code, str)
    options = [f"-arch=sm_{architecture.rstrip('af')}", *(() if is_text else ("-lto",))]
    data, kind = (code.encode(), linker.InputType.PTX) if is_text else (code, linker.InputType.LTOIR)
    handle = linker.create(len(options), options)
    try:
        linker.add_data(handle, kind, data, len(data), "kernel")
        linker.complete(handle)
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
        return bytes(cubin)
    finally:
        linker.destroy(handle)


def _card(cubin: bytes, instance: Instance, architecture: str) -> LaunchCard:
    symbols = [name for name in elf_entries(cubin) if instance.function in name]
    if len(symbols) != 1:
        raise SpecError(
            f"{instance.function}: Numba made {count_text(len(symbols), 'entry', 'entries')} "
            f"of it: {', '.join(symbols) or 'none'}"
        )
    parameters = tuple(one for passed in instance.passed for one in _parameters(passed))
    return LaunchCard(symbols[0], architecture, parameters)


def _parameters(passed: Passed) -> list[CardParameter]:
    """Return an array's words: owner, parent, elements, bytes of one, data, then lengths and strides in bytes."""
    if not passed.pointer:
        kinds: dict[str, Kind] = {"bool": "int8"}
        return [CardParameter(kinds.get(passed.dtype, passed.dtype), passed.name)]  # pyright: ignore[reportArgumentType]  # one of the kinds, or refused
    name, axes = passed.name, range(passed.dimensions)
    return [
        CardParameter("pointer"),
        CardParameter("pointer"),
        CardParameter("int64", f"{name}.size"),
        CardParameter("int64", f"{name}.itemsize"),
        CardParameter("pointer", name),
        *(CardParameter("int64", f"{name}.shape.{axis}") for axis in axes),
        *(CardParameter("int64", f"{name}.bytes.{axis}") for axis in axes),
    ]


def _words(function: FunctionType, instance: Instance, error: Exception) -> str:
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno}: {instance}: {type(error).__name__}: {str(error).strip()}"


LANGUAGE = NumbaCuda()
