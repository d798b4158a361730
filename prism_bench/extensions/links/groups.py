"""Groups of GPUs of one host: on CUDA, on the null backend and on the emulator."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import permutations
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.device import describe
from prism_bench.backends.cuda.timers import Harness, StreamNotHeld
from prism_bench.backends.null import NullBackend
from prism_bench.compilation import compile_source
from prism_bench.emulator import HostBuffer
from prism_bench.emulator import compile_source as emulator_compile_source
from prism_bench.errors import BackendUnavailable, VerificationFailed
from prism_bench.extensions.links.operations import Axes, GroupCase
from prism_bench.io.files import shared_with
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Device

# Groups of GPUs: prepare a case on all GPUs, launch them together, time the slowest.


class GroupCall(AbstractContextManager["GroupCall"]):
    """A case prepared on every device of a group, with inputs and poisoned outputs."""

    @abstractmethod
    def __call__(self) -> None:
        """Enqueue it once on every device."""

    @abstractmethod
    def poison(self) -> None:
        """Fill the outputs with values that no launch writes."""

    @abstractmethod
    def outputs(self) -> list[np.ndarray]:
        """Wait for all work and return the output of every device."""

    @abstractmethod
    def sample(self) -> Sample:
        """Release all devices together and time the call: the seconds of the slowest device between its events."""

    def evidence(self) -> dict[str, Any]:
        """Return registers and spills of the machine code, if known."""
        return {}

    def __exit__(self, *exception: object) -> None:
        return None


class DeviceGroup(ABC):
    """Devices of one host that work together."""

    @abstractmethod
    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> GroupCall:
        """Prepare the case with the inputs of each device; raise BackendUnavailable if it cannot run."""

    def facts(self) -> dict[str, Any]:
        """Return facts about devices and links for a result."""
        return {}


# Launch of the fused product: its tile, grid and shared memory, and the memory that devices write into each other.

SOURCE = Path(__file__).with_name("matmul_all_reduce.cu")
MEET = "meet"
_EVERYTHING = 7  # the parts of a launch: multiplies, reduces, waits
PARTS = (1, 2, 4)  # separate launches of the parts, for a device that runs launches in turn
STAGES = 3
# Rows, columns and depth of a tile, its threads, and the blocks that a multiprocessor holds: of tensor_tile.cuh.
TILES = {"Square": (128, 128, 64, 128, 2), "Compact": (64, 64, 32, 128, 4), "Tiny": (32, 32, 64, 128, 1)}


@dataclass(frozen=True)
class FusedLaunch:
    """Launch of a kernel of all devices; `parts_bytes` and `own_tiles` are the sizes of each device's memory for it."""

    entry: str
    grid: int
    threads: int
    shared: int
    parts_bytes: int
    own_tiles: int


def fused_launch(axes: Axes, device: Device, tile: str | None = None) -> FusedLaunch:
    """Return the launch of a product on such devices: large tiles where they fill the device."""
    m, n, k, devices = (axes[axis] for axis in ("m", "n", "k", "devices"))
    name = tile or ("Square" if _tiles("Square", m, n) >= device.sm_count else "Compact")
    rows, cols, depth, threads, resident = TILES[name]
    tiles, width = _tiles(name, m, n), 8 if k % 8 == n % 8 == 0 else 1
    own_tiles = -(-tiles // devices)
    stage = 2 * (rows * (depth + 8) + depth * (cols + 8))
    return FusedLaunch(
        entry=f"matmul_all_reduce<{name}<Half, {STAGES}>, {width}>",
        grid=min(tiles, device.sm_count * resident),
        threads=threads,
        shared=max(STAGES * stage, 2 * rows * (cols + 8)),
        parts_bytes=2 * own_tiles * devices * rows * cols,
        own_tiles=own_tiles,
    )


def _tiles(name: str, m: int, n: int) -> int:
    rows, cols, *_ = TILES[name]
    return -(-m // rows) * -(-n // cols)


def meeting() -> FusedLaunch:
    """Return the launch of `meet`, which has no parts."""
    return FusedLaunch(MEET, 1, 32, 0, 8, 1)


def _integers(case: GroupCase, device: int, epoch: int, parts: int) -> list[np.int32]:
    """Return the integers that a kernel takes after its inputs and addresses."""
    sizes = [case.axes[axis] for axis in ("m", "n", "k") if axis in case.axes]
    return [np.int32(number) for number in (device, case.devices, *sizes, epoch, parts)]


def _fill_with_poison(outputs: Sequence[np.ndarray]) -> None:
    for output in outputs:
        output[...] = np.nan if output.dtype.kind == "f" else 91


# The fused kernel's own source on the CPU: the devices run each part of a launch in turn.

SMALL = Device(sm_count=2)  # so that blocks have several tiles


class EmulatedCall(GroupCall):
    """The fused kernel, or the meeting, on devices whose memory is this process's own."""

    def __init__(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]], launch: FusedLaunch) -> None:
        self._case, self._inputs, self._launch, self._epoch = case, inputs, launch, 0
        entries = (launch.entry, MEET) if launch.entry != MEET else (MEET,)
        self._module = emulator_compile_source(SOURCE, shared_with(SOURCE), entries)
        devices = range(case.devices)
        self._parts = [np.zeros(launch.parts_bytes, np.uint8) for _ in devices]
        self._c = [np.zeros(case.operation.output(case.axes), case.operation.dtype) for _ in devices]
        self._sent = [np.zeros(max(1, launch.own_tiles), np.uint64) for _ in devices]
        self._finished = [np.zeros(1, np.uint64) for _ in devices]
        lists = (self._parts, self._c, self._sent, self._finished)
        self._addresses = np.array([array.ctypes.data for arrays in lists for array in arrays], np.uint64)

    def __call__(self) -> None:
        self._epoch += 1
        for parts in (_EVERYTHING,) if self._case.devices == 1 else PARTS:
            for device in range(self._case.devices):
                self._run(device, parts)

    def _run(self, device: int, parts: int) -> None:
        launch, arrays = self._launch, [*self._inputs[device].values(), self._addresses]
        arguments = [*map(HostBuffer, arrays), *_integers(self._case, device, self._epoch, parts)]
        report = self._module.launch(
            launch.entry, launch.grid, launch.threads, arguments, shared_bytes=launch.shared, cooperative=True
        )
        if report.findings:
            raise VerificationFailed(f"{self._case.name} on device {device}: {report.findings[0]}")

    def poison(self) -> None:
        _fill_with_poison(self._c)

    def outputs(self) -> list[np.ndarray]:
        if self._launch.entry == MEET:
            return [counter - np.uint64((self._epoch - 1) * self._case.devices) for counter in self._finished]
        return self._c

    def sample(self) -> Sample:
        began = perf_counter()
        self()
        return Sample(perf_counter() - began)


class EmulatedGroup(DeviceGroup):
    """Emulated devices for a case; they have no links, so only this project's own kernels run."""

    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> EmulatedCall:
        if case.form == "fused":
            return EmulatedCall(case, inputs, fused_launch(case.axes, SMALL, "Tiny"))
        if case.form == "kernel":
            return EmulatedCall(case, inputs, meeting())
        raise BackendUnavailable(f"{case.name}: the emulator has no {case.form} and no links")


# NCCL in one process: a communicator for each device of a group, and the collectives as calls on all devices.
#
# NVLink multicast (NVLS) is off: it needs rights of the host that a guest lacks, and a fault of it takes the links
# down.

WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}


def forbid_multicast() -> None:
    """Switch NVLink multicast off for libraries that this process loads later."""
    os.environ.update(WITHOUT_MULTICAST)


class Communicators:
    """The communicators of the first `count` devices; BackendUnavailable if NCCL is missing."""

    def __init__(self, count: int) -> None:
        forbid_multicast()
        self._nccl: Any = _nccl()
        self._all = self._nccl.NcclCommunicator.initAll(list(range(count)))

    @property
    def version(self) -> str:
        """`2.27.7`."""
        number = int(self._nccl.get_version())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def on_all(self, call: Callable[[int, Any], None]) -> None:
        """Call with the number and the communicator of each device; NCCL starts them as one operation."""
        self._nccl.groupStart()
        try:
            for device, communicator in enumerate(self._all):
                call(device, communicator)
        finally:
            self._nccl.groupEnd()

    def all_reduce(self, arrays: Sequence[Any], outputs: Sequence[Any], streams: Sequence[Any]) -> None:
        """Enqueue: every output is the sum of all arrays."""
        kind, add = self._type(arrays[0]), self._nccl.NCCL_SUM
        self.on_all(
            lambda device, communicator: communicator.allReduce(
                arrays[device].data.ptr, outputs[device].data.ptr, arrays[device].size, kind, add, streams[device].ptr
            )
        )

    def all_gather(self, arrays: Sequence[Any], outputs: Sequence[Any], streams: Sequence[Any]) -> None:
        """Enqueue: every output is the concatenation of all arrays."""
        kind = self._type(arrays[0])
        self.on_all(
            lambda device, communicator: communicator.allGather(
                arrays[device].data.ptr, outputs[device].data.ptr, arrays[device].size, kind, streams[device].ptr
            )
        )

    def all_to_all(self, arrays: Sequence[Any], outputs: Sequence[Any], streams: Sequence[Any]) -> None:
        """Enqueue: part i of a device's output is its part of the array of device i."""
        kind, count = self._type(arrays[0]), arrays[0].size // len(arrays)
        step = count * arrays[0].itemsize

        def exchange(device: int, communicator: Any) -> None:
            source, target, stream = arrays[device].data.ptr, outputs[device].data.ptr, streams[device].ptr
            for other in range(len(arrays)):
                communicator.send(source + other * step, count, kind, other, stream)
                communicator.recv(target + other * step, count, kind, other, stream)

        self.on_all(exchange)

    def _type(self, array: Any) -> int:
        return {"float32": self._nccl.NCCL_FLOAT32, "float16": self._nccl.NCCL_FLOAT16}[array.dtype.name]


def _nccl() -> ModuleType:
    """Return CuPy's NCCL; BackendUnavailable if the library is not installed."""
    try:
        nccl = import_module("cupy.cuda.nccl")
    except ImportError as error:
        raise BackendUnavailable(f"NCCL cannot be loaded: {error}") from None
    if not getattr(nccl, "available", False):
        raise BackendUnavailable("NCCL is not installed; pip install nvidia-nccl-cu13")
    return nccl


# GPUs of one host that reach each other's memory: one process, with a stream and a harness for each GPU.

_ALREADY_ENABLED = 704  # cudaErrorPeerAccessAlreadyEnabled
_TRIES = 3  # of a sample: a stalled host sometimes releases streams too late


class Member:
    """One GPU of a group: its number, its stream and its timing harness."""

    def __init__(self, cupy: ModuleType, number: int) -> None:
        self.number, self._cupy = number, cupy
        with cupy.cuda.Device(number):
            self.device = describe(cupy)
            self.stream = cupy.cuda.Stream(non_blocking=True)
            with self.stream:
                self.harness = Harness(cupy, self.device, self.stream)
            cupy.cuda.runtime.deviceSynchronize()

    @contextmanager
    def current(self) -> Any:
        """Make the GPU and its stream those of CuPy within the block."""
        with self._cupy.cuda.Device(self.number), self.stream:
            yield


class CudaGroup(DeviceGroup):
    """The first `count` visible GPUs; BackendUnavailable if a GPU is missing or cannot access all others."""

    def __init__(self, cupy: ModuleType, count: int) -> None:
        forbid_multicast()
        self.cupy: Any = cupy
        visible = cupy.cuda.runtime.getDeviceCount()
        if visible < count:
            raise BackendUnavailable(f"{count} GPUs of one host are needed, and {visible} is visible")
        self._connect(count)
        self.members = [Member(cupy, number) for number in range(count)]
        self._communicators: Communicators | None = None

    @property
    def streams(self) -> list[Any]:
        """The stream of each GPU."""
        return [member.stream for member in self.members]

    def communicators(self) -> Communicators:
        """Return NCCL's communicators, created at the first call."""
        self._communicators = self._communicators or Communicators(len(self.members))
        return self._communicators

    def synchronize(self) -> None:
        """Wait until all GPUs have done their work."""
        for member in self.members:
            member.stream.synchronize()

    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> "CudaCall":
        return _CALLS[case.operation.name, case.form](self, case, inputs)

    def facts(self) -> dict[str, Any]:
        nccl = {"nccl": self._communicators.version} if self._communicators else {}
        return {
            "devices": [member.device.uuid for member in self.members],
            "peer_access": True,
            **WITHOUT_MULTICAST,
            **nccl,
        }

    def _connect(self, count: int) -> None:
        """Let each GPU access the memory of all others."""
        runtime = self.cupy.cuda.runtime
        for number, peer in permutations(range(count), 2):
            if not runtime.deviceCanAccessPeer(number, peer):
                raise BackendUnavailable(f"GPU {number} has no access to the memory of GPU {peer}")
            with self.cupy.cuda.Device(number):
                try:
                    runtime.deviceEnablePeerAccess(peer)
                except runtime.CUDARuntimeError as error:
                    if error.status != _ALREADY_ENABLED:
                        raise


class CudaCall(GroupCall):
    """A case on a group; `enqueue` of a form launches it on all GPUs."""

    def __init__(self, group: CudaGroup, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> None:
        self.group, self.case = group, case
        operation, cupy = case.operation, group.cupy
        self.inputs = self.on_each(lambda number: {name: cupy.asarray(array) for name, array in inputs[number].items()})
        self.results = self.on_each(lambda _: cupy.zeros(operation.output(case.axes), operation.dtype))
        self.begin()
        group.synchronize()

    def begin(self) -> None:
        """Prepare a form's objects next to inputs and outputs."""

    def enqueue(self) -> None:
        """Enqueue it on every GPU."""
        raise NotImplementedError

    def __call__(self) -> None:
        self.enqueue()

    def on_each(self, call: Callable[[int], Any]) -> list[Any]:
        """Return the call's result for each GPU; the call runs with its GPU and stream as the current ones."""
        results: list[Any] = []
        for member in self.group.members:
            with member.current():
                results.append(call(member.number))
        return results

    def poison(self) -> None:
        self.on_each(lambda number: self.results[number].view(np.uint8).fill(0xFF))
        self.group.synchronize()

    def outputs(self) -> list[np.ndarray]:
        self.group.synchronize()
        return self.on_each(lambda number: self.results[number].get())

    def sample(self) -> Sample:
        for _ in range(_TRIES):
            slowest = self._held()
            if slowest:
                return slowest
        raise StreamNotHeld(
            "the call waits for a device, or the host was stalled, so the devices did not start together"
        )

    def _held(self) -> Sample | None:
        """Return the sample of the slowest GPU, or None if a GPU started before all work was enqueued."""
        harnesses = [member.harness for member in self.group.members]
        with ExitStack() as left:
            for harness in harnesses:
                left.callback(harness.release)
            self.on_each(lambda number: harnesses[number].begin(cold=True))
            began = perf_counter()
            self.enqueue()
            launch_seconds = perf_counter() - began
            self.on_each(lambda number: harnesses[number].end())
        samples = self.on_each(lambda number: harnesses[number].finish(launch_seconds))
        return None if None in samples else max(samples, key=lambda taken: taken.seconds)

    def __exit__(self, *exception: object) -> None:
        self.group.synchronize()
        self.inputs, self.results = [], []
        for member in self.group.members:
            with member.current():
                self.group.cupy.get_default_memory_pool().free_all_blocks()


class _PeerCopy(CudaCall):
    """Every GPU copies its array to the next one, by the driver."""

    def enqueue(self) -> None:
        runtime, devices = self.group.cupy.cuda.runtime, self.case.devices

        def copy(number: int) -> None:
            source, following = self.inputs[number]["x"], (number + 1) % devices
            target, stream = self.results[following], self.group.members[number].stream
            runtime.memcpyPeerAsync(target.data.ptr, following, source.data.ptr, number, source.nbytes, stream.ptr)

        self.on_each(copy)


class _Collective(CudaCall):
    """One of NCCL's collectives, by the operation's name."""

    def begin(self) -> None:
        self._call = getattr(self.group.communicators(), self.case.operation.name)

    def enqueue(self) -> None:
        self._call([arrays["x"] for arrays in self.inputs], self.results, self.group.streams)


class _ProductThenReduce(CudaCall):
    """The product by cuBLAS on every GPU, then NCCL's all-reduce in place: a program without the fused kernel."""

    def begin(self) -> None:
        self._reduce = self.group.communicators().all_reduce

    def enqueue(self) -> None:
        cupy = self.group.cupy
        self.on_each(
            lambda number: cupy.matmul(self.inputs[number]["a"], self.inputs[number]["b"], out=self.results[number])
        )
        self._reduce(self.results, self.results, self.group.streams)


class _OwnKernel(CudaCall):
    """One of this project's kernels that read and write the memory of all GPUs."""

    def begin(self) -> None:
        case, cupy, first = self.case, self.group.cupy, self.group.members[0].device
        self._launch = meeting() if case.form == "kernel" else fused_launch(case.axes, first)
        entries = tuple(dict.fromkeys((self._launch.entry, MEET)))
        self._compiled = compile_source(SOURCE, entries, str(first.compute_capability))
        self._kernels = self.on_each(lambda _: self._loaded())
        self._epoch = 0
        sizes = (self._launch.parts_bytes // 8, max(1, self._launch.own_tiles), 1)
        self._parts, self._sent, self._finished = (
            self.on_each(lambda _, size=size: cupy.zeros(size, np.uint64)) for size in sizes
        )
        lists = (self._parts, self.results, self._sent, self._finished)
        addresses = np.array([array.data.ptr for arrays in lists for array in arrays], np.uint64)
        self._addresses = self.on_each(lambda _: cupy.asarray(addresses))

    def _loaded(self) -> Any:
        module = self.group.cupy.RawModule(path=str(self._compiled.path), enable_cooperative_groups=True)
        kernel = module.get_function(self._compiled.lowered[self._launch.entry])
        if self._launch.shared:
            kernel.max_dynamic_shared_size_bytes = self._launch.shared
        return kernel

    def enqueue(self) -> None:
        self._epoch += 1
        self.on_each(self._start)

    def _start(self, number: int) -> None:
        launch, integers = self._launch, _integers(self.case, number, self._epoch, _EVERYTHING)
        arguments = (*self.inputs[number].values(), self._addresses[number], *integers)
        self._kernels[number]((launch.grid,), (launch.threads,), arguments, shared_mem=launch.shared)

    def outputs(self) -> list[np.ndarray]:
        if self.case.form != "kernel":
            return super().outputs()
        self.group.synchronize()
        before = np.uint64((self._epoch - 1) * self.case.devices)
        return self.on_each(lambda number: self._finished[number].get() - before)

    def evidence(self) -> dict[str, Any]:
        used = self._compiled.resources.get(self._compiled.lowered[self._launch.entry])
        return {"registers": used.registers, "spill_bytes": used.spill_stores + used.spill_loads} if used else {}


_CALLS: dict[tuple[str, str], type[CudaCall]] = {
    ("meet", "kernel"): _OwnKernel,
    ("peer_copy", "driver"): _PeerCopy,
    ("all_gather", "nccl"): _Collective,
    ("all_to_all", "nccl"): _Collective,
    ("all_reduce", "nccl"): _Collective,
    ("matmul_all_reduce", "fused"): _OwnKernel,
    ("matmul_all_reduce", "nccl"): _ProductThenReduce,
}


# Group of GPUs on the null backend: results of the reference, times and faults of its script.


class HostCall(GroupCall):
    """A case with the rounded outputs of the reference; the script can damage the output of a device."""

    def __init__(
        self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]], behaviour: Any, timer: Callable[[], Sample]
    ) -> None:
        operation = case.operation
        self._behaviour, self._timer, self._calls = behaviour, timer, 0
        self._results = [array.astype(operation.dtype) for array in operation.expected(case.axes, inputs, np)]
        self._outputs = [np.zeros(operation.output(case.axes), operation.dtype) for _ in self._results]

    def __call__(self) -> None:
        if self._behaviour.get("crash"):
            os.abort()
        self._calls += 1
        if self._behaviour.get("skips") and self._calls > 1:
            return
        for output, result in zip(self._outputs, self._results, strict=True):
            output[...] = result
        if self._behaviour.get("wrong"):
            self._outputs[-1].reshape(-1)[0] += 1

    def poison(self) -> None:
        _fill_with_poison(self._outputs)

    def outputs(self) -> list[np.ndarray]:
        return self._outputs

    def sample(self) -> Sample:
        if not self._behaviour.get("idles"):
            self()
        return self._timer()


class HostGroup(DeviceGroup):
    """Devices of the null backend for a case."""

    def __init__(self, backend: NullBackend) -> None:
        self._backend = backend

    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> HostCall:
        return HostCall(case, inputs, self._backend.scripted(case.name), self._backend.scripted_timer(case.name))
