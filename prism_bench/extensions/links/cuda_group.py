"""GPUs of one host that reach each other's memory: one process, a stream and a harness for each of them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.device import describe
from prism_bench.backends.cuda.harness import Harness, StreamNotHeld
from prism_bench.compilation import compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.links.emulated_group import meeting
from prism_bench.extensions.links.fused import EVERYTHING, MEET, SOURCE, fused_launch
from prism_bench.extensions.links.group import DeviceGroup, GroupCall
from prism_bench.extensions.links.nccl import WITHOUT_MULTICAST, Communicators, forbid_multicast
from prism_bench.extensions.links.operations import GroupCase
from prism_bench.record.measurement import Sample

ALREADY_ENABLED = 704  # cudaErrorPeerAccessAlreadyEnabled
TRIES = 3  # of a sample: a stalled host releases streams too late once in a while


class Member:
    """One GPU of a group: its number, its stream and what times it."""

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
    """The first `count` GPUs that this process sees; BackendUnavailable where one is missing or reaches not all."""

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
        return [one.stream for one in self.members]

    def communicators(self) -> Communicators:
        """Return NCCL's communicators, which are made once."""
        self._communicators = self._communicators or Communicators(len(self.members))
        return self._communicators

    def synchronize(self) -> None:
        """Wait until all GPUs have done their work."""
        for one in self.members:
            one.stream.synchronize()

    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> "CudaCall":
        make = _CALLS[case.operation.name, case.form]
        return make(self, case, inputs)

    def facts(self) -> dict[str, Any]:
        nccl = {"nccl": self._communicators.version} if self._communicators else {}
        return {"devices": [one.device.uuid for one in self.members], "peer_access": True, **WITHOUT_MULTICAST, **nccl}

    def _connect(self, count: int) -> None:
        """Let each GPU access the memory of all others."""
        runtime = self.cupy.cuda.runtime
        for one in range(count):
            for other in set(range(count)) - {one}:
                if not runtime.deviceCanAccessPeer(one, other):
                    raise BackendUnavailable(f"GPU {one} has no access to the memory of GPU {other}")
                with self.cupy.cuda.Device(one):
                    try:
                        runtime.deviceEnablePeerAccess(other)
                    except runtime.CUDARuntimeError as error:
                        if error.status != ALREADY_ENABLED:
                            raise


class CudaCall(GroupCall):
    """A case on a group; `enqueue` of a form launches it on all GPUs."""

    def __init__(self, group: CudaGroup, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> None:
        self.group, self.case = group, case
        operation, cupy = case.operation, group.cupy
        self.inputs = self.on_each(lambda number: {name: cupy.asarray(one) for name, one in inputs[number].items()})
        self.results = self.on_each(lambda _: cupy.zeros(operation.output(case.axes), operation.dtype))
        self.begin()
        group.synchronize()

    def begin(self) -> None:
        """Prepare what a form needs next to inputs and outputs."""

    def enqueue(self) -> None:
        """Enqueue it on every GPU."""
        raise NotImplementedError

    def __call__(self) -> None:
        self.enqueue()

    def on_each(self, call: Callable[[int], Any]) -> list[Any]:
        """Return what the call returns for each GPU, which is the current one then."""
        found: list[Any] = []
        for member in self.group.members:
            with member.current():
                found.append(call(member.number))
        return found

    def poison(self) -> None:
        self.on_each(lambda number: self.results[number].view(np.uint8).fill(0xFF))
        self.group.synchronize()

    def outputs(self) -> list[np.ndarray]:
        self.group.synchronize()
        return self.on_each(lambda number: self.results[number].get())

    def sample(self) -> Sample:
        for _ in range(TRIES):
            found = self._held()
            if found:
                return found
        raise StreamNotHeld(
            "the call waits for a device, or the host was stalled, so the devices did not start together"
        )

    def _held(self) -> Sample | None:
        """Return the sample of the slowest GPU, or None where a GPU went on before all work was enqueued."""
        harnesses = [one.harness for one in self.group.members]
        with ExitStack() as left:
            for harness in harnesses:
                left.callback(harness.release)
            self.on_each(lambda number: harnesses[number].begin(cold=True))
            began = perf_counter()
            self.enqueue()
            launch_seconds = perf_counter() - began
            self.on_each(lambda number: harnesses[number].end())
        found = self.on_each(lambda number: harnesses[number].finish(launch_seconds))
        return None if None in found else max(found, key=lambda one: one.seconds)

    def __exit__(self, *exception: object) -> None:
        self.group.synchronize()
        self.inputs, self.results = [], []
        for member in self.group.members:
            with member.current():
                self.group.cupy.get_default_memory_pool().free_all_blocks()


class PeerCopy(CudaCall):
    """Every GPU copies its array to the next one, by the driver."""

    def enqueue(self) -> None:
        runtime, devices = self.group.cupy.cuda.runtime, self.case.devices

        def copy(number: int) -> None:
            source, following = self.inputs[number]["x"], (number + 1) % devices
            target, stream = self.results[following], self.group.members[number].stream
            runtime.memcpyPeerAsync(target.data.ptr, following, source.data.ptr, number, source.nbytes, stream.ptr)

        self.on_each(copy)


class Collective(CudaCall):
    """One of NCCL's collectives, by the operation's name."""

    def begin(self) -> None:
        self._call = getattr(self.group.communicators(), self.case.operation.name)

    def enqueue(self) -> None:
        self._call([one["x"] for one in self.inputs], self.results, self.group.streams)


class ProductThenReduce(CudaCall):
    """The product by cuBLAS on every GPU, then NCCL's all-reduce in place: a program without the fused kernel."""

    def begin(self) -> None:
        self._reduce = self.group.communicators().all_reduce

    def enqueue(self) -> None:
        cupy = self.group.cupy
        self.on_each(
            lambda number: cupy.matmul(self.inputs[number]["a"], self.inputs[number]["b"], out=self.results[number])
        )
        self._reduce(self.results, self.results, self.group.streams)


class OwnKernel(CudaCall):
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
            self.on_each(lambda _, words=words: cupy.zeros(words, np.uint64)) for words in sizes
        )
        lists = (self._parts, self.results, self._sent, self._finished)
        addresses = np.array([one.data.ptr for arrays in lists for one in arrays], np.uint64)
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
        launch, axes = self._launch, self.case.axes
        sizes = [axes[one] for one in ("m", "n", "k") if one in axes]
        words = map(np.int32, (number, self.case.devices, *sizes, self._epoch, EVERYTHING))
        arguments = (*self.inputs[number].values(), self._addresses[number], *words)
        self._kernels[number]((launch.grid,), (launch.threads,), arguments, shared_mem=launch.shared)

    def outputs(self) -> list[np.ndarray]:
        if self.case.form != "kernel":
            return super().outputs()
        self.group.synchronize()
        before = np.uint64((self._epoch - 1) * self.case.devices)
        return self.on_each(lambda number: self._finished[number].get() - before)

    def evidence(self) -> dict[str, Any]:
        found = self._compiled.resources.get(self._compiled.lowered[self._launch.entry])
        return {"registers": found.registers, "spill_bytes": found.spill_stores + found.spill_loads} if found else {}


_CALLS: dict[tuple[str, str], type[CudaCall]] = {
    ("meet", "kernel"): OwnKernel,
    ("peer_copy", "driver"): PeerCopy,
    ("all_gather", "nccl"): Collective,
    ("all_to_all", "nccl"): Collective,
    ("all_reduce", "nccl"): Collective,
    ("matmul_all_reduce", "fused"): OwnKernel,
    ("matmul_all_reduce", "nccl"): ProductThenReduce,
}
