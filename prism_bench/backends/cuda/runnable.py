"""A case on the device: buffers, compiled code, and the host plan turned into calls."""

from collections.abc import Callable, Iterable, Mapping
from math import prod
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.cuda.carded import block_of, card_values, launch_facts, scratch_bytes
from prism_bench.backends.cuda.device import CudaDevice
from prism_bench.backends.cuda.graph import captured
from prism_bench.backends.cuda.guard import CudaGuard
from prism_bench.backends.cuda.harness import Harness
from prism_bench.backends.cuda.overlap import FIRST_CAPABILITY, LaunchExtents, clustered_call, overlapping_call
from prism_bench.backends.cuda.tensor_map import tensor_map
from prism_bench.backends.cuda.timers import ColdTimer, EndToEndTimer, FirstCallTimer, HotTimer
from prism_bench.compilation.languages import BuildRequest, BuiltCode, BuiltKernel, build, build_request, code_facts
from prism_bench.errors import SpecError
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import CUDA, Array, InOut, Launch, Zero
from prism_bench.spec.launch import LaunchCard

END_TO_END_BYTES = 256 << 20  # above this a transfer of pageable memory only measures the host's memory
_STATIC_SHARED = 48 << 10
# Every step of a plan with its kernel, as it was built and as it is loaded; None with a step that is none.
_Built = tuple[BuiltCode, BuildRequest]
_Loaded = list[tuple[Launch | Zero, tuple[BuiltKernel, Any] | None]]


class CudaRunnable(Runnable):
    """Everything the case needs, on the device."""

    def __init__(
        self, cupy: ModuleType, device: CudaDevice, harness: Harness, case: Case, inputs: Mapping[str, InputArray]
    ) -> None:
        self._cupy, self._device, self._harness, self.case = cupy, device, harness, case
        self._steps = case.plan.steps(device)
        self._buffers = {a.name: cupy.empty(case.sizes.shape(a.name), a.dtype) for a in case.spec.arrays}
        self._pristine = {}
        self.reset(inputs)
        self._compiled = self._compile(cache=True)
        self._kernels = self._load(self._compiled)
        self._calls = self._bound(self._kernels)

    def __call__(self) -> None:
        for call in self._calls:
            call()

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
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
        read_only = [self._buffers[array.name] for array in spec.inputs if not isinstance(array, InOut)]
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
        if self.case.sizes.bytes_moved <= END_TO_END_BYTES:
            timers["end_to_end_time"] = self._end_to_end
        if self.case.label == "S0":
            timers["first_call_time"] = lambda: FirstCallTimer(stream, self._first_call)
        return MappingProxyType(timers)

    def evidence(self) -> dict[str, Any]:
        if self._compiled is None:
            return {"launches": 0}
        return {
            **code_facts(*self._compiled),
            "launches": len(self._calls),
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
        buffer = self._buffers[name]
        buffer.data.copy_from_host_async(values.ctypes.data, buffer.nbytes)

    def take(self, name: str, other: Runnable, theirs: str) -> None:
        assert isinstance(other, CudaRunnable), "cases share buffers on one backend"
        buffer = self._buffers[name]
        buffer.data.copy_from_device_async(other._buffers[theirs].data, buffer.nbytes)

    def fetch(self, name: str, out: np.ndarray) -> None:
        buffer = self._buffers[name]
        buffer.data.copy_to_host_async(out.ctypes.data, buffer.nbytes)

    def renew(self, names: Iterable[str]) -> None:
        for name in names:
            self._buffers[name] = self._cupy.empty(self.case.sizes.shape(name), self.case.spec.argument(name).dtype)
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
        return tuple(self._call_for(step, kernel) for step, kernel in kernels)

    def _call_for(self, step: Launch | Zero, loaded: tuple[BuiltKernel, Any] | None) -> Callable[[], object]:
        if isinstance(step, Zero):
            buffer = self._buffers[step.name]
            return lambda: buffer.data.memset_async(0, buffer.nbytes)
        assert loaded is not None, "a launch has its kernel"
        built, kernel = loaded
        if built.card is not None:
            return self._carded_call(step, built.card, kernel)
        extents = LaunchExtents(_triple(step.grid), _triple(step.block), step.shared)
        names = step.arguments or tuple(argument.name for argument in self.case.spec.arguments)
        maps = {one.name: tensor_map(one, self._buffers[one.name]) for one in step.maps}
        values = tuple(maps[name] if name in maps else self._value(name) for name in names)
        if step.overlaps and self._device.compute_capability >= FIRST_CAPABILITY:
            stream = self._cupy.cuda.get_current_stream
            return overlapping_call(kernel.kernel.ptr, extents, values, lambda: stream().ptr)
        return lambda: kernel(extents.grid, extents.block, values, shared_mem=extents.shared)

    def _carded_call(self, step: Launch, card: LaunchCard, kernel: Any) -> Callable[[], object]:
        """Return the call of a kernel that another compiler made, with memory for its own use."""
        names = step.arguments or tuple(argument.name for argument in self.case.spec.arguments)
        card, grid = card.passing(names), _triple(step.grid)
        needed = scratch_bytes(card, grid)
        scratch = self._cupy.zeros(needed, self._cupy.uint8) if needed else None
        block = block_of(card, _triple(step.block))
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
            raise SpecError(f"{self.case.name}: {shared} bytes of shared memory; a block has "
                            f"{self._device.max_shared_bytes} here")  # fmt: skip
        if shared > _STATIC_SHARED:
            kernel.max_dynamic_shared_size_bytes = shared
        return kernel

    def _value(self, name: str) -> Any:
        argument = self.case.spec.argument(name)
        return self._buffers[name] if isinstance(argument, Array) else argument.value(self.case.axes)

    def _step_text(self, step: Launch | Zero) -> str:
        """Return a step in short: two builds with the same steps and machine code are the same on the device."""
        if isinstance(step, Zero):
            return f"zero {step.name}"
        entry = str(self.case.plan.instance(step)) if self.case.spec.language != CUDA else step.entry or ""
        grid, block = ("x".join(str(extent) for extent in _triple(one)) for one in (step.grid, step.block))
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


def _triple(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    numbers = extent if isinstance(extent, tuple) else (extent,)
    x, y, z = (int(np.int64(number)) for number in (*numbers, 1, 1)[:3])
    return x, y, z
