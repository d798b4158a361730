"""The queue kernel on a CUDA device: one cooperative launch, with copies on a separate stream."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.device import describe, open_cupy
from prism_bench.compilation import compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.board import Board
from prism_bench.extensions.persistent.layout import DESK_WORDS
from prism_bench.extensions.persistent.machine import Machine
from prism_bench.extensions.persistent.program import ALIGNMENT, Program, Served, ServedStep

MAPPED = 2  # cudaHostRegisterMapped
STAGED = 256 << 10  # bytes; copies of pageable memory this large go through the driver's own pinned memory
DONE, NOT_READY = 0, 600  # what a stream's query answers; anything else is an error


def open_machine() -> "CudaMachine":
    """Return the current device; BackendUnavailable where there is none."""
    return CudaMachine(open_cupy())


class CudaMachine(Machine):
    """A CUDA device.

    Everything is allocated, compiled and loaded before the queue kernel starts, and both copies were made once: what
    waits for an idle device (allocating, freeing, loading) must not happen while the kernel runs.
    """

    def __init__(self, cupy: ModuleType) -> None:
        self._cupy: Any = cupy
        described = describe(cupy)
        self.device, self._name = described, described.name
        self._kernels, self._copies = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))

    def settle_in(self, served: Served) -> None:
        cupy = self._cupy
        self._workspace = cupy.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        for program in served.programs:
            for name, one in program.fields.items():
                offset = served.offsets[program.name, name]
                self._workspace[offset : offset + one.nbytes].data.memset_async(one.first_byte, one.nbytes)
        cupy.cuda.runtime.deviceSynchronize()
        self.write(0, np.frombuffer(self.read(0, STAGED), np.uint8))

    def serve(self, served: Served, board: Board) -> None:
        self._refuse()
        try:
            self._begin(served, board)
        except self._cupy.cuda.driver.CUDADriverError as error:
            raise BackendUnavailable(f"{self._name} does not launch the queue kernel: {error}") from error

    def _begin(self, served: Served, board: Board) -> None:
        kernel = self._kernel(served.source, (), served.entry, served.shared, cooperative=True)
        apart = self._share(board)
        pulse, requests, answers = (np.uint64(part.ctypes.data + apart) for part in board.arrays())
        desk, words = self._held = self._cupy.zeros(DESK_WORDS, np.uint64), self._cupy.asarray(served.words)
        sizes = (np.int32(board.slots), np.int32(served.words.size))
        arguments = (requests, answers, pulse, desk, words, self._workspace, *sizes)
        self._cupy.cuda.runtime.deviceSynchronize()
        with self._kernels:
            kernel((self.device.sm_count,), (served.threads,), arguments, shared_mem=served.shared)

    def serving(self) -> bool:
        runtime = self._cupy.cuda.runtime
        status = runtime.streamQuery(self._kernels.ptr)
        if status not in (DONE, NOT_READY):
            raise BackendUnavailable(f"the queue kernel ended: {runtime.CUDARuntimeError(status)}")
        return status == NOT_READY

    def launcher(self, served: Served, program: Program) -> Callable[[], None]:
        calls = [self._call(served, program, step) for step in program.steps]
        self._cupy.cuda.runtime.deviceSynchronize()

        def launch() -> None:
            with self._kernels:
                for call in calls:
                    call()
            self._kernels.synchronize()

        return launch

    def write(self, offset: int, values: np.ndarray) -> None:
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._workspace[offset : offset + raw.size].set(raw, stream=self._copies)
        self._copies.synchronize()

    def read(self, offset: int, nbytes: int) -> bytes:
        found = self._workspace[offset : offset + nbytes].get(stream=self._copies)
        self._copies.synchronize()
        return found.tobytes()

    def _refuse(self) -> None:
        """Raise BackendUnavailable unless the device has what the queue kernel needs."""
        runtime = self._cupy.cuda.runtime
        needed = {
            "cooperative launches": runtime.cudaDevAttrCooperativeLaunch,
            "memory of the host's in its own address space": runtime.cudaDevAttrCanMapHostMemory,
        }
        here = self._cupy.cuda.Device().id
        missing = [what for what, attribute in needed.items() if not runtime.deviceGetAttribute(attribute, here)]
        if missing:
            raise BackendUnavailable(f"{self._name} offers no {' and no '.join(missing)}")

    def _share(self, board: Board) -> int:
        """Lock the board's pages and return how far the device's addresses of it are from the host's."""
        runtime, address = self._cupy.cuda.runtime, board.arrays()[0].ctypes.data
        try:
            runtime.hostRegister(address, board.nbytes, MAPPED)
            return runtime.pointerGetAttributes(address).devicePointer - address
        except runtime.CUDARuntimeError as error:
            raise BackendUnavailable(f"the queue's memory cannot be shared with {self._name}: {error}") from error

    def _kernel(self, source: Path, options: Sequence[str], entry: str, shared: int, cooperative: bool = False) -> Any:
        """Return the compiled kernel, with room for `shared` bytes of dynamic shared memory."""
        compiled = compile_source(source, (entry,), str(self.device.compute_capability), options)
        module = self._cupy.RawModule(path=str(compiled.path), enable_cooperative_groups=cooperative)
        kernel = module.get_function(compiled.lowered[entry])
        if shared > kernel.max_dynamic_shared_size_bytes:  # of all that launch it, the one with most decides
            kernel.max_dynamic_shared_size_bytes = shared
        return kernel

    def _call(self, served: Served, program: Program, step: ServedStep) -> Callable[[], None]:
        assert program.source is not None, "a program with steps has a source"
        kernel = self._kernel(program.source, program.options, step.entry, step.shared)
        arguments = tuple(
            self._workspace[served.offsets[program.name, one] :] if isinstance(one, str) else one
            for one in step.arguments
        )
        return lambda: kernel(step.grid, (step.block,), arguments, shared_mem=step.shared)
