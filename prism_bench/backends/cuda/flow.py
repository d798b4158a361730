"""Lanes of work on the device: streams, events between them, and one graph of it all."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.backends.base import Flow
from prism_bench.backends.cuda.graph import captured


class CudaFlow(Flow):
    """Lane 0 is the backend's own stream; others are made when they are first used."""

    def __init__(self, cupy: ModuleType, stream: Any) -> None:
        self._cupy, self._streams = cupy, {0: stream}

    def lane(self, number: int) -> Any:
        return self._stream(number)

    def point(self) -> Any:
        return self._cupy.cuda.Event(disable_timing=True)

    def reached(self, point: Any, lane: int) -> None:
        point.record(self._stream(lane))

    def wait(self, lane: int, point: Any) -> None:
        self._stream(lane).wait_event(point)

    def synchronize(self) -> None:
        self._streams[0].synchronize()

    def captured(self, call: Callable[[], object]) -> Callable[[], None]:
        """All lanes that `call` uses must begin by waiting for a point of lane 0, and lane 0 for all of them."""
        return captured(self._streams[0], call)

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """In pinned memory."""
        count = int(np.prod(shape, dtype=np.int64))
        memory = self._cupy.cuda.alloc_pinned_memory(max(1, count * np.dtype(dtype).itemsize))
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def _stream(self, number: int) -> Any:
        if number not in self._streams:
            self._streams[number] = self._cupy.cuda.Stream(non_blocking=True)
        return self._streams[number]
