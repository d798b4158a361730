"""NVIDIA Warp: `softmax.warp.py` is compiled to a cubin by Warp, without a GPU, and runs on Warp's own CPU device.

A launch passes its arguments in the order of the function's parameters, whose annotations are their types. `wp.tid()`
of one number counts all threads; of two, blocks and the threads of one. With the constant `tiled=True` it counts
blocks along the axes of the launch's grid, as in `wp.launch_tiled`. The constant `block_dim` is how many threads a
block has, 256 without it. Other `constants` of the launch are globals of the kernel's file that the function reads,
such as `TILE`, and options of Warp's module (`fast_math`, `enable_mathdx_gemm`) and kernel (`cuda_max_registers`).
"""

import json
import tempfile
from collections.abc import Mapping
from importlib import import_module
from math import prod
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from prism_bench.compilation.languages.language import (
    DeviceLaunch,
    InterpretedLaunch,
    Language,
    MachineCode,
    OwnLaunch,
    with_globals,
)
from prism_bench.errors import CompilationFailed, SpecError, VerificationFailed
from prism_bench.io.files import cache_folder
from prism_bench.spec.launch import CardParameter, Instance, Kind, LaunchCard, Passed
from prism_bench.spec.peer import Library
from prism_bench.units import count_text

_OF_MODULE = (
    "fast_math", "fuse_fp", "max_unroll", "optimization_level", "enable_mathdx_gemm", "enable_mathdx_solver",
    "enable_mathdx_fft", "block_dim",
)  # fmt: skip
_OF_KERNEL = ("cuda_max_registers", "grid_stride", "launch_bounds")
_TILED, _THREADS = "tiled", 256
_AXES = 4  # of an array, and of a launch
_Extent = TypeVar("_Extent", int, str)
_BLOCK_AND_THREAD = 2  # numbers that `wp.tid()` may give where it counts threads


class Warp(Language):
    """NVIDIA's language for simulation."""

    title = "Warp"
    library = Library("warp", "warp", "warp-lang", "torch", extra="warp")
    modules = ("warp",)
    prefixes = ("WARP_",)
    stand_ins = {"warp.constant": lambda value: value}

    def compile(self, module: ModuleType, instance: Instance, architecture: str) -> MachineCode:
        """Compile the forward pass; the card begins with Warp's own structure, the extents of the launch."""
        warp = _warp()
        found = self.function_of(module, instance.function)
        try:
            kernel, log = _kernel(warp, found, instance), ""
            _refuse_other_arguments(warp, kernel, instance)
            with tempfile.TemporaryDirectory() as folder:
                warp.compile_aot_module(
                    kernel.module, arch=int(architecture.rstrip("af")), module_dir=folder, use_ptx=False
                )
                (cubin,), (meta,) = (list(Path(folder).glob(f"*.{kind}")) for kind in ("cubin", "meta"))
                shared = json.loads(meta.read_text())
                code = cubin.read_bytes()
        except SpecError:
            raise
        except Exception as error:  # whatever its passes and NVRTC raise is about this kernel
            raise CompilationFailed(_words(found, instance, error)) from error
        entry = f"{instance.function}_cuda_kernel_forward"
        card = LaunchCard(
            entry,
            architecture,
            (*_bounds(kernel.adj.kernel_dim, instance), *_of_arguments(instance)),
            block=(_threads(instance), 1, 1),
            shared=shared.get(f"{entry}_smem_bytes", 0),
            linear=True,
        )
        return MachineCode(code, card, log)

    def own_launch(self, module: ModuleType, launch: DeviceLaunch) -> OwnLaunch:
        """Return a launch by Warp's own launcher, which compiles at the first call and keeps its cubin to itself."""
        warp, instance = _warp(), launch.instance
        kernel = _kernel(warp, self.function_of(module, instance.function), instance)
        device = warp.get_cuda_device()
        kernel.module.load(device, _threads(instance))  # counts the numbers of `wp.tid()`
        options = {
            "dim": _extents(kernel.adj.kernel_dim, instance, launch.grid),
            "block_dim": _threads(instance),
            "inputs": [warp.from_torch(one) if hasattr(one, "data_ptr") else one for one in launch.values],
            "stream": warp.Stream(device, cuda_stream=launch.stream),
        }
        return OwnLaunch(lambda: warp.launch(kernel, **options))

    def not_emulated(self) -> str | None:
        """Return why Warp's CPU device cannot run here, or None."""
        if not self.library.is_installed():
            return f"its CPU device comes with Warp, which is not installed ({self._command})"
        return None

    def emulate(self, module: ModuleType, launch: InterpretedLaunch) -> None:
        """Run a launch on Warp's CPU device, with the threads of a block taking turns."""
        warp, instance = _warp(), launch.instance
        found = self.function_of(module, instance.function)
        try:
            kernel = _kernel(warp, found, instance)
            _refuse_other_arguments(warp, kernel, instance)
            kernel.module.load(warp.get_device("cpu"), _threads(instance))  # counts the numbers of `wp.tid()`
            bounds = _extents(kernel.adj.kernel_dim, instance, launch.grid)
            values = [_on_host(warp, one) for one in launch.values]
            warp.launch(kernel, dim=bounds, inputs=values, device="cpu", block_dim=_threads(instance))
        except SpecError:
            raise
        except Exception as error:  # whatever a kernel raises there is about this kernel
            raise VerificationFailed(_words(found, instance, error)) from error


def _warp() -> Any:
    """Return the package, quiet, with its cache among ours; blocks of its CPU device have all their threads."""
    warp: Any = import_module("warp")
    warp.config.quiet = True
    warp.config.kernel_cache_dir = str(cache_folder("warp"))
    warp.config.enable_cpu_blocks = True
    return warp


def _kernel(warp: Any, found: Any, instance: Instance) -> Any:
    """Return the kernel with the launch's constants and options, in its own module, without its adjoint."""
    function = getattr(found, "func", None)
    if not isinstance(function, FunctionType) or not hasattr(found, "adj"):
        raise SpecError(f"'{instance.function}' is no function with @wp.kernel")
    constants = dict(instance.constants)
    constants.pop(_TILED, None)
    of_module = {name: constants.pop(name) for name in _OF_MODULE if name in constants}
    of_kernel = {name: constants.pop(name) for name in _OF_KERNEL if name in constants}
    text = f"{Path(function.__code__.co_filename).read_text()}{instance}"
    own = warp.get_module(f"prism_{crc32(text.encode()):08x}")
    if instance.function in own.kernels:
        return own.kernels[instance.function]
    own.options.update({"enable_backward": False, "strip_hash": True, **of_module})
    options = {**found.options, **of_kernel, "enable_backward": False}
    return warp.Kernel(with_globals(function, constants), key=instance.function, module=own, options=options)


def _refuse_other_arguments(warp: Any, kernel: Any, instance: Instance) -> None:
    """Raise a SpecError where the launch's arguments are not those that the function is annotated with."""
    takes = {one.label: _type_text(warp, one.type) for one in kernel.adj.args}
    given = {one.name: (one.dtype, one.dimensions if one.pointer else 0) for one in instance.passed}
    if len(takes) != len(given):
        raise SpecError(
            f"{instance.function} takes the arguments {', '.join(takes) or 'none'}; the launch passes "
            f"{', '.join(given) or 'none'}"
        )
    for (name, wanted), (passed, got) in zip(takes.items(), given.items(), strict=True):
        if wanted != got:
            raise SpecError(
                f"{instance.function}: '{name}' is {_named(*wanted)}; the launch passes '{passed}', {_named(*got)}"
            )


def _type_text(warp: Any, annotation: Any) -> tuple[str, int]:
    """Return the elements' type and the axes of a parameter; no axes for a scalar."""
    axes = getattr(annotation, "ndim", 0)  # of `wp.array(dtype=...)` and of `wp.array[...]`
    dtype = annotation.dtype if axes else annotation
    try:
        return np.dtype(warp.dtype_to_numpy(dtype)).name, axes
    except (TypeError, KeyError):
        return getattr(dtype, "__name__", str(dtype)), axes


def _named(dtype: str, axes: int) -> str:
    return f"an array of {dtype} with {count_text(axes, 'axis', 'axes')}" if axes else f"one {dtype}"


def _threads(instance: Instance) -> int:
    return int(instance.constants.get("block_dim") or _THREADS)


def _bounds(numbers: int, instance: Instance) -> list[CardParameter]:
    """Return Warp's structure: the extents that `wp.tid()` counts, all threads, and how many share its numbers."""
    if instance.constants.get(_TILED):
        shape, shared = [f"launch.grid.{axis}" for axis in range(numbers)], "launch.block"
    else:
        shape, shared = _shape_of_threads(numbers, instance, ("launch.threads", "launch.blocks", "launch.block")), "1"
    first, *others = shape
    return [
        CardParameter("uint32", first),
        *(CardParameter("uint32", one, joined=True) for one in others),
        CardParameter("uint64", "launch.threads", joined=True),
        CardParameter("uint64", shared, joined=True),
    ]


def _shape_of_threads(numbers: int, instance: Instance, extents: tuple[_Extent, _Extent, _Extent]) -> list[_Extent]:
    """Return what `wp.tid()` counts of (threads, blocks, threads of a block) where it counts threads."""
    if numbers > _BLOCK_AND_THREAD:
        raise SpecError(
            f"{instance.function}: wp.tid() gives {numbers} numbers; one counts the threads, two the blocks and their "
            "threads, and with the constant tiled=True they count blocks along the grid's axes"
        )
    threads, blocks, block = extents
    return [threads] if numbers == 1 else [blocks, block]


def _extents(numbers: int, instance: Instance, grid: tuple[int, int, int]) -> tuple[int, ...]:
    """Return the same for `wp.launch`."""
    block = _threads(instance)
    if instance.constants.get(_TILED):
        return (*grid[:numbers], block)
    return tuple(_shape_of_threads(numbers, instance, (prod(grid) * block, prod(grid), block)))


def _of_arguments(instance: Instance) -> list[CardParameter]:
    """Return the parameters behind: of an array a structure of data, gradient, lengths, strides, axes and flags."""
    return [parameter for passed in instance.passed for parameter in _parameters(passed)]


def _parameters(passed: Passed) -> list[CardParameter]:
    if not passed.pointer:
        kinds: Mapping[str, Kind] = {"bool": "int8"}
        return [CardParameter(kinds.get(passed.dtype, passed.dtype), passed.name)]  # pyright: ignore[reportArgumentType]  # one of the kinds, or refused
    name, axes = passed.name, range(_AXES)
    lengths = [f"{name}.shape.{axis}" if axis < passed.dimensions else "" for axis in axes]
    strides = [f"{name}.bytes.{axis}" if axis < passed.dimensions else "" for axis in axes]
    return [
        CardParameter("pointer", name),
        CardParameter("pointer", joined=True),
        *(CardParameter("int32", one, joined=True) for one in (*lengths, *strides)),
        CardParameter("uint16", f"{name}.axes", joined=True),
        CardParameter("uint16", joined=True),
    ]


def _on_host(warp: Any, value: Any) -> Any:
    """Return an array of Warp over the memory of a NumPy array; a scalar as it is."""
    if not isinstance(value, np.ndarray):
        return value
    dtype = warp.dtype_from_numpy(value.dtype)
    return warp.array(ptr=value.ctypes.data, dtype=dtype, shape=value.shape, strides=value.strides, device="cpu")


def _words(found: Any, instance: Instance, error: Exception) -> str:
    """Return Warp's message with the file and the line of the function."""
    code = getattr(getattr(found, "func", None), "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
    return f"{place}{instance}: {type(error).__name__}: {str(error).strip()}"


LANGUAGE = Warp()
