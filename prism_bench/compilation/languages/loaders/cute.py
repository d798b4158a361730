"""CuTe DSL: `softmax.cute.py` is compiled to a cubin by the Python language of CUTLASS, without a GPU.

A launch names a host function with `@cute.jit` that launches one kernel and passes its own arguments on in their order:
arrays as pointers to global memory, scalars as numbers. `constants` of the launch are the host function's
`cutlass.Constexpr` parameters, by name and behind the others; one called `shared` is the dynamic shared memory of a
block, in bytes. Its grid is the spec's; host code that computes what the kernel takes, such as descriptors of tensor
maps, needs a callable.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from prism_bench.compilation.cubin import elf_entries
from prism_bench.compilation.languages.language import DeviceLaunch, Language, MachineCode, OwnLaunch
from prism_bench.errors import CompilationFailed, SpecError
from prism_bench.spec.launch import CardParameter, Instance, Kind, LaunchCard, Passed
from prism_bench.spec.peer import Library
from prism_bench.units import count_text

_ALIGNED = 16  # bytes that every buffer's address is a multiple of
_TYPES = {
    "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "float64": "Float64", "int8": "Int8",
    "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint8": "Uint8", "uint16": "Uint16", "uint32": "Uint32",
    "uint64": "Uint64", "bool": "Boolean",
}  # fmt: skip
# Its code for these architectures uses their own instructions, and runs on no later one.
_SPECIFIC = {"90": "sm_90a", "100": "sm_100a", "103": "sm_103a", "120": "sm_120a"}
_BUILDS = ("cu12", "cu13")  # the wheel asks for cu12 itself, its extra for cu13


def _is_there(distribution: str) -> bool:
    try:
        return bool(version(distribution))
    except PackageNotFoundError:
        return False


class CuteDsl(Language):
    """The Python language of CUTLASS."""

    title = "CuTe DSL"
    library = Library("cute", "cutlass", "nvidia-cutlass-dsl", "torch", extra="cute")
    modules = ("cutlass",)
    prefixes = ("CUTE_DSL_",)

    def require_installed(self) -> str:
        """Return the version, with the CUDA that the compiler was built for: `4.8.1 (cu13)`; both make other code."""
        own, wheels = super().require_installed(), {name: f"nvidia-cutlass-dsl-libs-{name}" for name in _BUILDS}
        built = [name for name, wheel in wheels.items() if _is_there(wheel)]
        if not built:
            raise self.incomplete(f"neither {' nor '.join(wheels.values())} is there")
        return f"{own} ({', '.join(built)})"

    def compile(self, module: ModuleType, instance: Instance, architecture: str) -> MachineCode:
        """Compile the kernel that a host function launches; the card has its pointers and scalars."""
        number = architecture.rstrip("af")
        host = self.function_of(module, instance.function)
        arguments = [_argument(passed) for passed in instance.passed]
        try:
            cubin = _compiled(host, [*arguments, *instance.constants.values()], _SPECIFIC.get(number, f"sm_{number}"))
        except Exception as error:  # whatever its passes raise is about this kernel
            raise CompilationFailed(_words(host, instance, error)) from error
        return MachineCode(cubin, _card(cubin, instance, architecture))

    def own_launch(self, module: ModuleType, launch: DeviceLaunch) -> OwnLaunch:
        """Return a launch by the host function, compiled here with the launch's grid and stream."""
        instance, cute = launch.instance, import_module("cutlass.cute")
        host = self.function_of(module, instance.function)
        passed = tuple(_argument(*pair) for pair in zip(instance.passed, launch.values, strict=True))
        stream = import_module("cuda.bindings.driver").CUstream(launch.stream)

        def launched(arguments: tuple[Any, ...], stream: Any) -> None:
            with _launched_with(grid=launch.grid, stream=stream):
                host(*arguments, *instance.constants.values())

        launched.__annotations__ = {"stream": type(stream)}
        function = cute.jit(preprocess=False)(launched)
        with tempfile.TemporaryDirectory() as folder:
            compiled = cute.compile(function, passed, stream, options=f"--keep-cubin --dump-dir {folder}")
            cubin = _cubin(compiled)
        return OwnLaunch(lambda: compiled(passed, stream), lambda: (cubin,))


@contextmanager
def _launched_with(**changed: Any) -> Iterator[None]:
    """Let kernels that are launched here have these values in place of their host function's."""
    launcher = import_module("cutlass.cutlass_dsl.cutlass").KernelLauncher
    launch = launcher.launch
    launcher.launch = lambda self, *args, **given: launch(self, *args, **{**given, **changed})
    try:
        yield
    finally:
        launcher.launch = launch


def _compiled(host: Any, arguments: list[Any], target: str) -> bytes:
    """Return the cubin; the compiler keeps it in a folder that must exist, else it returns only a path."""
    with tempfile.TemporaryDirectory() as folder:
        options = f"--gpu-arch {target} --keep-cubin --dump-dir {folder}"
        return _cubin(import_module("cutlass.cute").compile(host, *arguments, options=options))


def _cubin(compiled: Any) -> bytes:
    found = compiled.__cubin__
    return bytes(found) if isinstance(found, (bytes, bytearray)) else Path(found).read_bytes()


def _argument(passed: Passed, value: Any = None) -> Any:
    """Return an argument for a tensor or a number; without one it has a type and no memory."""
    cutlass = import_module("cutlass")
    if passed.dtype not in _TYPES:
        raise SpecError(f"'{passed.name}' has elements of {passed.dtype}, which the CuTe DSL does not have")
    dtype = getattr(cutlass, _TYPES[passed.dtype])
    if not passed.pointer:
        return dtype(1 if value is None else value.item())
    space = import_module("cutlass.cute").AddressSpace.gmem
    address = _ALIGNED if value is None else value.data_ptr()
    return import_module("cutlass.cute.runtime").make_ptr(dtype, address, space, assumed_align=_ALIGNED)


def _card(cubin: bytes, instance: Instance, architecture: str) -> LaunchCard:
    entries = elf_entries(cubin)
    if len(entries) != 1:
        raise SpecError(f"{instance.function} launches {count_text(len(entries), 'kernel')}; a launch of a spec is one")
    ((symbol, entry),) = entries.items()
    parameters = tuple(CardParameter(_kind(passed), passed.name) for passed in instance.passed)
    shared = instance.constants.get("shared", 0)
    required = {"block": entry.block or (0, 0, 0), "cluster": entry.cluster or (1, 1, 1)}
    return LaunchCard(symbol, architecture, parameters, shared=int(shared or 0), **required)


def _kind(passed: Passed) -> Kind:
    kinds: dict[str, Kind] = {"bool": "int8", "bfloat16": "uint16"}
    return "pointer" if passed.pointer else kinds.get(passed.dtype, passed.dtype)  # pyright: ignore[reportReturnType]  # one of the kinds, or refused


def _words(host: Any, instance: Instance, error: Exception) -> str:
    """Return the compiler's message with the file and the line of the host function."""
    code = getattr(getattr(host, "__wrapped__", host), "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
    return f"{place}{instance}: {type(error).__name__}: {str(error).strip()}"


LANGUAGE = CuteDsl()
