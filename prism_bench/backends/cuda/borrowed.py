"""The backend for somebody else's callable: the libraries' current streams are ours meanwhile, then theirs again."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from prism_bench.backends.cuda.backend import CudaBackend
from prism_bench.backends.cuda.device import open_cupy
from prism_bench.backends.cuda.peers.peer import torch_stream

# CuPy 14 destroys a stream it was only lent when it forgets it; so it must not forget. A process has few streams.
_ADOPTED: dict = {}


@contextmanager
def borrowed_backend(stream: Any = None) -> Iterator[tuple[CudaBackend, str]]:
    """Open a backend on `stream` (CuPy's, PyTorch's or a new one), current in CuPy and, if loaded, in PyTorch.

    Gives the backend and the library whose graphs can capture the callable: `torch` where it is loaded.
    """
    cupy = open_cupy()
    chosen = _as_cupy(cupy, stream) if stream is not None else cupy.cuda.Stream(non_blocking=True)
    with ExitStack() as stack:
        stack.enter_context(chosen)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.cuda.synchronize()
            stack.enter_context(torch.cuda.stream(torch_stream(chosen)))
        cupy.cuda.runtime.deviceSynchronize()
        yield CudaBackend(cupy, chosen), "torch" if torch is not None else "cupy"
        chosen.synchronize()


def _as_cupy(cupy: ModuleType, stream: Any) -> Any:
    """Return the stream as CuPy's, whichever library made it."""
    if hasattr(stream, "ptr"):
        return stream
    if hasattr(cupy.cuda.Stream, "from_external"):  # since CuPy 14, where ExternalStream is deprecated
        handle = stream.cuda_stream
        if handle not in _ADOPTED:
            _ADOPTED[handle] = cupy.cuda.Stream.from_external(_Foreign(handle))
        return _ADOPTED[handle]
    return cupy.cuda.ExternalStream(stream.cuda_stream)


@dataclass(frozen=True)
class _Foreign:
    """A stream's handle by the CUDA stream protocol, which not every PyTorch speaks itself."""

    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle
