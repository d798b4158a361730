"""A case on the device: buffers, compiled code, and the host plan turned into launches."""

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from math import prod
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.cuda.device import CudaDevice, library
from prism_bench.backends.cuda.guard import CudaGuard
from prism_bench.backends.cuda.inspection import Inspector
from prism_bench.backends.cuda.peers.peer import XLA, CallableTimers, least_xla_call
from prism_bench.backends.cuda.timers import (
    ColdTimer,
    EndToEndTimer,
    FirstCallTimer,
    Harness,
    HotTimer,
    adopted_arrays,
    captured,
    held_array,
    library_module,
)
from prism_bench.compilation import sass_hash
from prism_bench.compilation.cubin import check_sizes, parameter_sizes, variable_of
from prism_bench.compilation.languages import (
    BuildRequest,
    BuiltCode,
    BuiltKernel,
    build,
    build_request,
    code_facts,
    source_hash,
)
from prism_bench.compilation.languages.calls import real_call
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec import arguments
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import CUDA, Array, Constant, InOut, Launch, Struct, TensorMap, Zero
from prism_bench.spec.launch import MAP_BYTES, MAP_TYPE, CardParameter, LaunchCard, beyond_residence
from prism_bench.units import count_text

# Launches by card: what another compiler's machine code takes, in its order, with its hidden parameters.

Triple = tuple[int, int, int]
_FACTS: Mapping[str, Callable[[Any, int], int]] = {
    "shape": lambda array, axis: array.shape[axis],
    "stride": lambda array, axis: array.strides[axis] // array.itemsize,
    "bytes": lambda array, axis: array.strides[axis],
    "size": lambda array, _: array.size,
    "itemsize": lambda array, _: array.itemsize,
    "axes": lambda array, _: array.ndim,
}  # what a parameter may take of an array, by the word behind its name


def launch_facts(grid: Triple, block: Triple) -> dict[str, int]:
    """Return the facts of a launch by the words that a card has for them."""
    blocks, threads = prod(grid), prod(block)
    extents = {f"launch.grid.{axis}": extent for axis, extent in enumerate(grid)}
    return {**extents, "launch.blocks": blocks, "launch.block": threads, "launch.threads": blocks * threads}


def card_values(
    card: LaunchCard, value_of: Callable[[str], Any], scratch: Any | None, facts: Mapping[str, int] | None = None
) -> tuple[Any, ...]:
    """Return the values of a card's parameters in order: device arrays, NumPy scalars and structures by value.

    `value_of` returns an argument of the kernel by name; the first hidden parameter is the device array `scratch`;
    `facts` are those of the launch.
    """
    values: list[Any] = []
    for members in card.structures:
        fields = [_value(member, value_of, facts or {}) for member in members]
        if members[0].kind == "hidden":
            fields, scratch = [np.uint64(0) if scratch is None else scratch], None
        values.append(fields[0] if len(members) == 1 else _structure(members, fields))
    return tuple(values)


def _structure(members: tuple[CardParameter, ...], values: list[Any]) -> np.ndarray:
    """Return an array of one structure, which CuPy passes by value; of an array on the device it has the address."""
    kinds = [np.uint64 if member.kind in ("pointer", "hidden") else np.dtype(member.kind) for member in members]
    dtype = np.dtype([(f"m{index}", kind) for index, kind in enumerate(kinds)], align=True)
    return np.array(
        [tuple(value.data.ptr if hasattr(value, "data") and hasattr(value.data, "ptr") else value for value in values)],
        dtype,
    )


def _value(parameter: CardParameter, value_of: Callable[[str], Any], facts: Mapping[str, int]) -> Any:
    if parameter.kind in ("pointer", "hidden"):
        return value_of(parameter.value) if parameter.value else np.uint64(0)
    number = _number(parameter.value, value_of, facts) if parameter.value else 0
    return np.dtype(parameter.kind).type(number)


def _number(text: str, value_of: Callable[[str], Any], facts: Mapping[str, int]) -> Any:
    """Return a scalar argument, or a fact of an array or the launch: `x.shape.0`."""
    if text in facts or text.isdecimal():
        return facts[text] if text in facts else int(text)
    name, _, fact = text.partition(".")
    if not fact:
        return value_of(name)
    word, _, axis = fact.partition(".")
    if word not in _FACTS:
        raise SpecError(f"launch card: '{text}' is no fact of an array; there are {', '.join(_FACTS)}")
    return _FACTS[word](value_of(name), int(axis or 0))


def scratch_bytes(card: LaunchCard, grid: Triple) -> int:
    """Return the bytes of global memory that a launch of this grid needs for the compiler's own use."""
    blocks = prod(grid) * prod(card.cluster)
    return blocks * -(-card.scratch_bytes // max(card.scratch_align, 1)) * max(card.scratch_align, 1)


def block_of(card: LaunchCard, declared: Triple) -> Triple:
    """Return the threads of a block: the card's, or those of the launch where the card leaves them open.

    A SpecError where the launch has others than the card.
    """
    if not any(card.block):
        return declared
    if all(declared) and declared != card.block:
        raise SpecError(
            f"{card.entry}: the launch has {'x'.join(map(str, declared))} threads a block; the compiler made it for "
            f"{'x'.join(map(str, card.block))}"
        )
    return card.block


# Launches with attributes that CuPy does not offer: those that begin while the one before them ends, and clusters.

FIRST_CAPABILITY = 90
_CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_VALUE_WORDS = 16  # of CUlaunchAttributeValue, 4 bytes each


@dataclass(frozen=True)
class LaunchExtents:
    """Blocks of the grid, threads of a block, and bytes of dynamic shared memory."""

    grid: Triple
    block: Triple
    shared: int


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * _VALUE_WORDS)]


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint),
    ]  # fmt: skip


def overlapping_call(
    function: int, extents: LaunchExtents, values: Sequence[Any], stream: Callable[[], int], driver: Any = None
) -> Callable[[], None]:
    """Return a function that launches the driver's `function` on `stream()` and lets it overlap the launch before.

    `values` are device arrays and NumPy scalars.
    """
    attribute = _Attribute(_SERIALIZATION, 0, (ctypes.c_int * _VALUE_WORDS)(1))
    return _call(_Prepared(attribute, function, driver or library()), extents, values, stream)


def clustered_call(
    function: int, extents: LaunchExtents, cluster: Triple, values: Sequence[Any], stream: Callable[[], int]
) -> Callable[[], None]:
    """Return a function that launches the driver's `function` on `stream()` in clusters of `cluster` blocks.

    The grid of `extents` counts clusters, as that of a compiler with its own idea of a block does.
    """
    attribute = _Attribute(_CLUSTER, 0, (ctypes.c_int * _VALUE_WORDS)(*cluster))
    x, y, z = (blocks * each for blocks, each in zip(extents.grid, cluster, strict=True))
    whole = LaunchExtents((x, y, z), extents.block, extents.shared)
    return _call(_Prepared(attribute, function, library()), whole, values, stream)


@dataclass(frozen=True)
class _Prepared:
    """A driver's function that is launched with one attribute."""

    attribute: _Attribute
    function: int
    driver: Any


def _call(
    prepared: _Prepared, extents: LaunchExtents, values: Sequence[Any], stream: Callable[[], int]
) -> Callable[[], None]:
    held = [np.asarray([value.data.ptr], np.uint64) if _is_array(value) else np.asarray([value]) for value in values]
    parameters = (ctypes.c_void_p * len(held))(*(value.ctypes.data for value in held))
    configuration = _Configuration(
        (ctypes.c_uint * 3)(*extents.grid),
        (ctypes.c_uint * 3)(*extents.block),
        extents.shared,
        None,
        ctypes.pointer(prepared.attribute),
        1,
    )

    def call() -> None:
        configuration.stream = stream()
        pointers = parameters if held else None  # they point into the arrays that are held
        launch = prepared.driver.cuLaunchKernelEx
        status = launch(ctypes.byref(configuration), ctypes.c_void_p(prepared.function), pointers, None)
        if status:
            raise BackendUnavailable(f"cuLaunchKernelEx failed with error {status}")

    return call


def _is_array(value: Any) -> bool:
    return hasattr(value, "data") and hasattr(value.data, "ptr")


# Tensor maps: what the tensor memory accelerator has to know of a buffer, made by the driver.

_TYPES = {1: 0, 2: 1, 4: 7}  # CUtensorMapDataType by bytes of an element: UINT8, UINT16, FLOAT32
_TF32 = 11  # CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
_ALIGNED = 64
_SWIZZLED, _PROMOTED = 3, 2  # CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B


def tensor_map(wanted: TensorMap, buffer: Any, driver: Any = None) -> np.ndarray:
    """Return the map of a buffer as an array of one element, which CuPy passes by value.

    Raises a SpecError where the accelerator cannot copy by it.
    """
    size = buffer.dtype.itemsize
    shape, box = wanted.of(tuple(buffer.shape), size, buffer.data.ptr)
    encode = getattr(driver or library(), "cuTensorMapEncodeTiled", None)
    if encode is None:
        raise BackendUnavailable("the driver has no tensor maps (cuTensorMapEncodeTiled): it needs CUDA 12 or later")
    memory = np.zeros(MAP_TYPE.itemsize + _ALIGNED, np.uint8)
    first = -memory.ctypes.data % _ALIGNED
    pitches = [prod(shape[i:]) * size for i in range(len(shape) - 1, 0, -1)]
    kind = _TF32 if wanted.tf32 else _TYPES[size]
    swizzled = _SWIZZLED if box[-1] * size == MAP_BYTES else 0
    status = encode(
        ctypes.c_void_p(memory.ctypes.data + first),
        kind,
        len(shape),
        ctypes.c_void_p(buffer.data.ptr),
        _numbers(ctypes.c_uint64, shape[::-1]),
        _numbers(ctypes.c_uint64, pitches),
        _numbers(ctypes.c_uint32, box[::-1]),
        _numbers(ctypes.c_uint32, [1] * len(shape)),
        0,
        swizzled,
        _PROMOTED,
        0,
    )
    if status:
        raise SpecError(f"{wanted.name}: no tensor map of {buffer.dtype} {buffer.shape} (driver error {status})")
    return memory[first : first + MAP_TYPE.itemsize].view(MAP_TYPE)


def _numbers(kind: Any, values: Sequence[int]) -> Any:
    """Return a C array of the numbers."""
    return (kind * len(values))(*values)


# A case on the device: buffers, compiled code, and the host plan turned into calls.

_END_TO_END_BYTES = 256 << 20  # above this a transfer of pageable memory only measures the host's memory
_STATIC_SHARED = 48 << 10
_HOLDERS: dict[int, object] = {}  # by address of a variable: the content that was written last
# Each step of a launch plan with its built and loaded kernel; None for a zero fill.
_Built = tuple[BuiltCode, BuildRequest]
_Loaded = list[tuple[Launch | Zero, tuple[BuiltKernel, Any] | None]]


class CudaRunnable(Runnable):
    """Everything the case needs, on the device."""

    def __init__(
        self, cupy: ModuleType, device: CudaDevice, harness: Harness, case: Case, inputs: Mapping[str, InputArray]
    ) -> None:
        self._cupy, self._device, self._harness, self.case = cupy, device, harness, case
        self._steps = case.plan.steps(device)
        self._buffers = {a.name: cupy.empty(case.sizes.shape(a.name), a.storage) for a in case.spec.arrays}
        self._pristine = {}
        self.reset(inputs)
        self._compiled = self._compile(cache=True)
        self._kernels = self._load(self._compiled)
        self._calls = self._bound(self._kernels)

    def __call__(self) -> None:
        for call in self._calls:
            call()

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs, self._version = inputs, object()
        self._cupy.cuda.runtime.deviceSynchronize()  # a launch that still runs would count on in what is cleared here
        for array in self.case.spec.arrays:
            self._reset_one(array, inputs)
        self._cupy.cuda.runtime.deviceSynchronize()

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        self._cupy.cuda.runtime.deviceSynchronize()
        return {name: self._buffers[name] for name in names}

    def restore(self) -> None:
        """Put the inputs of in-place arguments back, on the stream."""
        for name, pristine in self._pristine.items():
            self._buffers[name].data.copy_from_device_async(pristine.data, pristine.nbytes, self._harness.stream)

    def guard(self, key: int) -> CudaGuard | None:
        if not self._harness.poison:  # what a guard writes would count as written, too
            return None
        spec = self.case.spec
        outputs = {output.name: self._buffers[output.name] for output in spec.outputs}
        scratch = [self._buffers[array.name] for array in spec.arrays if array.scratch]
        read_only = [self._buffers[a.name] for a in spec.inputs if not isinstance(a, InOut | Constant)]
        inputs = [*read_only, *self._pristine.values()]
        return CudaGuard(
            self._cupy, self._device, outputs, in_place=self._pristine, scratch=scratch, inputs=inputs, key=key
        )

    def replayed(self, call: Callable[[], object], times: int) -> Callable[[], float]:
        replay = captured(self._harness.stream, call, times)
        return lambda: self._harness.timed(replay, cold=False).seconds / times

    def timers(self) -> TimerFactories:
        stream = self._harness.stream
        timers = {
            "cold_time": lambda: ColdTimer(self._harness, self, self.restore if self._pristine else None),
            "hot_time": lambda: HotTimer(self._harness, self, self._capture),
        }
        if self.case.sizes.bytes_moved <= _END_TO_END_BYTES:
            timers["end_to_end_time"] = self._end_to_end
        if self.case.label == "S0":
            timers["first_call_time"] = lambda: FirstCallTimer(stream, self._first_call)
        return MappingProxyType(timers)

    def evidence(self) -> dict[str, Any]:
        if self._compiled is None:
            return {"launches": 0}
        return {
            **code_facts(*self._compiled),
            "launches": len(self._kernels),
            "plan": [self._step_text(step) for step in self._steps],
        }

    def __exit__(self, *exception: object) -> None:
        self._buffers, self._pristine, self._calls, self._kernels = {}, {}, (), []
        self._cupy.get_default_memory_pool().free_all_blocks()

    def _reset_one(self, array: Array, inputs: Mapping[str, InputArray]) -> None:
        buffer = self._buffers[array.name]
        if array.reads:
            buffer[...] = inputs[array.name].on(self._cupy)
            if isinstance(array, InOut):
                self._pristine[array.name] = buffer.copy()
        elif array.scratch or self._harness.poison:
            buffer.data.memset_async(array.first_byte, buffer.nbytes)

    def _compile(self, cache: bool) -> _Built | None:
        request = build_request(self.case, self._device)
        return (build(request, cache=cache), request) if request else None

    def _share(self, name: str, other: Runnable, theirs: str) -> None:
        assert isinstance(other, CudaRunnable), "cases share buffers on one backend"
        self._buffers[name] = other._buffers[theirs].reshape(self.case.sizes.shape(name))
        self._calls = self._bound(self._kernels)

    def put(self, name: str, values: np.ndarray) -> None:
        buffer, self._version = self._buffers[name], object()
        buffer.data.copy_from_host_async(values.ctypes.data, buffer.nbytes)

    def take(self, name: str, other: Runnable, theirs: str) -> None:
        assert isinstance(other, CudaRunnable), "cases share buffers on one backend"
        buffer, self._version = self._buffers[name], object()
        buffer.data.copy_from_device_async(other._buffers[theirs].data, buffer.nbytes)

    def fetch(self, name: str, out: np.ndarray) -> None:
        buffer = self._buffers[name]
        buffer.data.copy_to_host_async(out.ctypes.data, buffer.nbytes)

    def renew(self, names: Iterable[str]) -> None:
        for name in names:
            self._buffers[name] = self._cupy.empty(self.case.sizes.shape(name), self.case.spec.array(name).storage)
        self._calls = self._bound(self._kernels)

    def _load(self, built: _Built | None) -> _Loaded:
        """Every step of the plan with its loaded kernel; None for a step without a kernel."""
        loaded: _Loaded = []
        for step in self._steps:
            if isinstance(step, Zero):
                loaded.append((step, None))
            elif not step.is_empty and built is not None:
                kernel = built[0].kernels[self.case.plan.instance(step)]
                loaded.append((step, (kernel, self._function(step, kernel))))
        return loaded

    def _bound(self, kernels: _Loaded) -> tuple[Callable[[], object], ...]:
        """Return the steps as calls on the present buffers; they go to the stream that is current when called."""
        calls = tuple(self._call_for(step, kernel) for step, kernel in kernels)
        variables = self._variables(kernels) if self.case.spec.constants else []
        return (partial(self._write_constants, variables), *calls) if variables else calls

    def _variables(self, kernels: _Loaded) -> list[tuple[str, Any]]:
        """Return the variables of the loaded code that hold constants, as arrays, each with its argument's name."""
        variables: list[tuple[str, Any]] = []
        for constant in self.case.spec.constants:
            buffer = self._buffers[constant.name]
            for content in self._contents(constant.variable, kernels):
                if content.nbytes != buffer.nbytes:
                    raise SpecError(
                        f"{self.case.name}: Constant '{constant.name}' has {buffer.nbytes} bytes; the variable "
                        f"'{constant.variable}' has {content.nbytes}"
                    )
                variables.append((constant.name, content.view(buffer.dtype).reshape(buffer.shape)))
        return variables

    def _contents(self, variable: str, kernels: _Loaded) -> Iterator[Any]:
        """Yield a variable of the loaded code as an array of bytes, once for each time that the code is loaded."""
        loaded = {(kernel[0].path, step.cooperative) for step, kernel in kernels if isinstance(step, Launch) and kernel}
        for path, cooperative in sorted(loaded):
            module = self._cupy.RawModule(path=str(path), enable_cooperative_groups=cooperative)
            symbol, size = variable_of(variable, path.read_bytes())
            yield self._cupy.ndarray((size,), self._cupy.uint8, memptr=module.get_global(symbol))

    def clear_variable(self, name: str) -> None:
        for content in self._contents(name, self._kernels):
            content.data.memset_async(0, content.nbytes)

    def variables(self, name: str, dtype: DTypeLike) -> list[np.ndarray]:
        self._cupy.cuda.runtime.deviceSynchronize()
        return [content.get().view(dtype) for content in self._contents(name, self._kernels)]

    def _write_constants(self, variables: list[tuple[str, Any]]) -> None:
        """Enqueue: the variables hold this case's constants, which another case of the same code may have replaced."""
        for name, variable in variables:
            if _HOLDERS.get(variable.data.ptr) is not self._version:
                variable.data.copy_from_device_async(self._buffers[name].data, variable.nbytes)
                _HOLDERS[variable.data.ptr] = self._version

    def _call_for(self, step: Launch | Zero, loaded: tuple[BuiltKernel, Any] | None) -> Callable[[], object]:
        if isinstance(step, Zero):
            buffer = self._buffers[step.name]
            return lambda: buffer.data.memset_async(0, buffer.nbytes)
        assert loaded is not None, "a launch has its kernel"
        built, kernel = loaded
        if built.card is not None:
            return self._carded_call(step, built.card, kernel)
        extents = LaunchExtents(*step.extents, step.shared)
        names = self.case.spec.passed(step)
        maps = {wanted.name: tensor_map(wanted, self._buffers[wanted.name]) for wanted in step.maps}
        values = tuple(maps[name] if name in maps else self._value(name) for name in names)
        if built.path.suffix == ".cubin":
            taken = _sizes_taken(built.path, built.path.stat().st_mtime_ns, built.symbol)
            check_sizes(built.symbol, self.case.spec.passed_bytes(step), taken, f"{self.case.name}: the launch")
        if step.overlaps and self._device.compute_capability >= FIRST_CAPABILITY:
            stream = self._cupy.cuda.get_current_stream
            return overlapping_call(kernel.kernel.ptr, extents, values, lambda: stream().ptr)
        return lambda: kernel(extents.grid, extents.block, values, shared_mem=extents.shared)

    def _carded_call(self, step: Launch, card: LaunchCard, kernel: Any) -> Callable[[], object]:
        """Return the call of a kernel that another compiler made, with memory for its own use."""
        names = self.case.spec.passed(step)
        card, grid = card.passing(names), step.extents[0]
        needed = scratch_bytes(card, grid)
        scratch = self._cupy.zeros(needed, self._cupy.uint8) if needed else None
        block = block_of(card, step.extents[1])
        values = card_values(card, self._value, scratch, launch_facts(grid, block))
        grid = (prod(grid), 1, 1) if card.linear else grid
        if card.cluster != (1, 1, 1):
            stream, extents = self._cupy.cuda.get_current_stream, LaunchExtents(grid, block, card.shared)
            return clustered_call(kernel.kernel.ptr, extents, card.cluster, values, lambda: stream().ptr)
        return lambda: kernel(grid, block, values, shared_mem=card.shared)

    def _function(self, step: Launch, built: BuiltKernel) -> Any:
        module = self._cupy.RawModule(path=str(built.path), enable_cooperative_groups=step.cooperative)
        kernel, shared = module.get_function(built.symbol), built.card.shared if built.card else step.shared
        if shared > self._device.max_shared_bytes:
            raise SpecError(
                f"{self.case.name}: {shared} bytes of shared memory; a block has {self._device.max_shared_bytes} here"
            )
        if shared > _STATIC_SHARED:
            kernel.max_dynamic_shared_size_bytes = shared
        if step.cooperative and not built.card:  # CuPy makes a grid smaller that the device refuses, with a warning
            resident = self._cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
            most = self._device.sm_count * resident(kernel.kernel.ptr, prod(step.extents[1]), shared)
            problem = beyond_residence(step.extents[0], most, "this device")
            if problem:
                raise SpecError(f"{self.case.name}: {problem}")
        return kernel

    def _value(self, name: str) -> Any:
        argument = self.case.spec.argument(name)
        if isinstance(argument, Array):
            return self._buffers[name]
        value = argument.value(self.case.axes)
        return np.array([value]) if isinstance(argument, Struct) else value  # of one element: CuPy passes it by value

    def _step_text(self, step: Launch | Zero) -> str:
        """Return a step in short: two builds with the same steps and machine code are the same on the device."""
        if isinstance(step, Zero):
            return f"zero {step.name}"
        entry = str(self.case.plan.instance(step)) if self.case.spec.language != CUDA else step.entry or ""
        grid, block = ("x".join(map(str, extents)) for extents in step.extents)
        overlap = ", overlaps" if step.overlaps else ""
        return f"{entry} {grid} of {block}, {step.shared} B{overlap}".strip()

    def _capture(self, launches: int) -> Callable[[], object]:
        return captured(self._harness.stream, self, launches)

    def _end_to_end(self) -> EndToEndTimer:
        self.restore()  # many launches came before
        host = {array.name: self._buffers[array.name].get() for array in self.case.spec.inputs}
        return EndToEndTimer(self._harness.stream, self, lambda: self._upload(host), self._download)

    def _upload(self, host: Mapping[str, np.ndarray]) -> None:
        for name, values in host.items():
            self._buffers[name].set(values)

    def _download(self) -> list[np.ndarray]:
        return [self._buffers[output.name].get() for output in self.case.spec.outputs]

    def _first_call(self) -> None:
        for call in self._bound(self._load(self._compile(cache=False))):
            call()


@lru_cache(maxsize=1024)  # every case of a kernel launches the same entries
def _sizes_taken(path: Path, _changed: int, symbol: str) -> tuple[int, ...] | None:
    return parameter_sizes(path.read_bytes(), symbol)


# A case whose work a callable does: a launcher of another language, a custom operator, a library's function.


class CudaCalled(CudaRunnable):
    """A case's callable on its buffers; what it returns takes the place of the outputs that it does not write."""

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self._result: tuple[Any, ...] = ()
        super().reset(inputs)

    def _bound(self, kernels: object) -> tuple[Callable[[], object], ...]:
        """Return the one call on the present buffers."""
        self._known = real_call(self.case.spec)
        library = self._known.library
        if not library.is_installed():
            raise BackendUnavailable(library.why_absent)
        module = library_module(library, self._harness)
        self._offered = {
            **self.case.axes,
            **adopted_arrays(library, self._buffers, self.case.spec),
            "stream": self._harness.stream.ptr,
            library.name: module,
        }
        make = arguments.call if self._known.prepares else arguments.bind
        call = make(self._known.function, self._offered, f"{self.case.spec.label_in_errors}: callable")
        is_xla = library.name == XLA
        least = least_xla_call(import_module(XLA), self._cupy) if is_xla else None
        self._clocks = CallableTimers(self._harness, self, XLA if is_xla else library.arrays, least, self._restoring())
        return (lambda: self._keep(call()),)

    def _restoring(self) -> Callable[[], None] | None:
        return self.restore if self._pristine else None

    def _keep(self, result: object) -> None:
        self._result = result if isinstance(result, tuple) else () if result is None else (result,)

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        arrays = super().arrays(names)
        return arrays | {name: array for name, array in self._returned().items() if name in arrays}

    def _returned(self) -> dict[str, Any]:
        """Return the outputs that the last call returned; a SpecError where they are not what the spec declares."""
        spec = self.case.spec
        names = self._known.returned(output.name for output in spec.outputs)
        if len(names) != len(self._result):
            raise SpecError(
                f"{self.case.name}: the callable returns {count_text(len(self._result), 'array')}; it neither asks for "
                f"{', '.join(names) or 'no output'} nor returns them"
            )
        return {
            name: self._checked(name, held_array(self._cupy, array, spec.array(name)))
            for name, array in zip(names, self._result, strict=True)
        }

    def _checked(self, name: str, array: Any) -> Any:
        shape, dtype = self.case.sizes.shape(name), self.case.spec.array(name).storage.name
        if (tuple(array.shape), str(array.dtype)) != (shape, dtype):
            raise SpecError(
                f"{self.case.name}: the callable returns '{name}' as {array.dtype}{list(array.shape)}; the spec "
                f"declares {dtype}{list(shape)}"
            )
        return array

    def guard(self, key: int) -> CudaGuard | None:
        outputs = [output.name for output in self.case.spec.outputs]
        return None if self._known.returned(outputs) else super().guard(key)

    def timers(self) -> TimerFactories:
        """Look at the callable once, then offer the clocks; MeasurementInvalid where it cannot be timed honestly."""
        self()
        if self._known.library.name != XLA:  # its own streams wait through DLPack; the clocks look for late work
            Inspector(self._harness).inspect(self)
        return self._clocks.timers()

    def _capture(self, launches: int) -> Callable[[], object]:
        return self._clocks.capture(launches)

    def evidence(self) -> dict[str, Any]:
        """Return language, library and version, how many launches a call has, and its machine code where known."""
        library, launches = self._known.library, self._clocks.launches()
        facts: dict[str, Any] = {
            "language": self.case.spec.written_in,
            "compiler": f"{library.name} {library.installed_version()}",
            "source": source_hash(self.case.spec.source_file)[:16],
        }
        facts |= {"launches": launches} if launches is not None else {}
        return facts | self._machine_code()

    def _machine_code(self) -> dict[str, Any]:
        if self._known.artifacts is None:
            return {}
        where = f"{self.case.spec.label_in_errors}: artifacts"
        hashes = sorted(sass_hash(cubin) for cubin in arguments.call(self._known.artifacts, self._offered, where))
        whole = hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]
        return {"sass": whole, "architecture": f"sm_{self._device.compute_capability}"} if hashes else {}
