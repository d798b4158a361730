"""Recorder of CuPy's allocations: it passes requests to any allocator, and keeps a trace and a tracker.

with recording("my run") as recorder:
    ...
recorder.trace(), recorder.tracker.tracked()
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import cupy

from prism_bench.extensions.memory.cupy_extents import Addresses
from prism_bench.extensions.memory.extents import Extents
from prism_bench.extensions.memory.trace import Event, Trace
from prism_bench.extensions.memory.tracker import Tracker


class Recorder:
    """Allocator that calls `inner` and records it. Events of several threads are in the order of their ends."""

    def __init__(self, inner: Callable[[int], Any], name: str, extents: Extents | None = None, least: int = 1) -> None:
        self._inner, self._name, self._extents = inner, name, extents
        self._events: list[Event] = []
        self._streams: dict[int, int] = {}
        self._count = 0
        self.tracker = Tracker(least)

    def __call__(self, size: int) -> Any:
        """Return the pointer that `inner` gives."""
        pointer = self._inner(size)
        if not size:
            return pointer
        self._count += 1
        held = pointer.mem.size
        self._events.append(Event(self._count, size, self._stream()))
        self.tracker.allocated(size, held)
        self._look()
        return cupy.cuda.MemoryPointer(_Watched(pointer, self, (self._count, size, held)), 0)

    def forget(self, id: int, size: int, held: int) -> None:
        """Note that the memory of that id is no longer in use."""
        self._events.append(Event(id, 0, self._stream()))
        self.tracker.freed(size, held)

    def trace(self, **facts: Any) -> Trace:
        """Return everything so far; what is still in use is released at the end."""
        return Trace(self._name, tuple(self._events), facts).balanced()

    def _stream(self) -> int:
        return self._streams.setdefault(cupy.cuda.get_current_stream().ptr, len(self._streams))

    def _look(self) -> None:
        share = self._extents.fragmentation() if self._extents else None
        if share is not None:
            self.tracker.saw_fragmentation(share)


class _Watched(cupy.cuda.memory.BaseMemory):
    """Memory of another allocator that reports its end to the recorder."""

    def __init__(self, pointer: Any, recorder: Recorder, identity: tuple[int, int, int]) -> None:
        self._pointer, self._recorder, self._identity = pointer, recorder, identity
        self.ptr, self.size, self.device_id = pointer.ptr, pointer.mem.size, pointer.device_id

    def __del__(self) -> None:
        self._pointer = None
        self._recorder.forget(*self._identity)


@contextmanager
def recording(name: str, inner: Callable[[int], Any] | None = None) -> Iterator[Recorder]:
    """Make a Recorder CuPy's allocator in the block, on a fresh pool of CuPy unless `inner` is another allocator."""
    extents = Extents() if inner is None else None
    before = cupy.cuda.get_allocator()
    recorder = Recorder(inner or cupy.cuda.MemoryPool().malloc, name, extents)
    cupy.cuda.set_allocator(recorder)
    try:
        with Addresses(extents) if extents else nullcontext():
            yield recorder
    finally:
        cupy.cuda.set_allocator(before)
