"""Hooks CuPy's allocator: what is asked for goes on to any allocator, a trace and a tracker are kept of it.

with recording("my run") as recorder:
    ...
recorder.trace(), recorder.tracker.tracked()
"""

from contextlib import contextmanager, nullcontext

import cupy

from prism_bench.extensions.memory.cupy_extents import Addresses
from prism_bench.extensions.memory.extents import Extents
from prism_bench.extensions.memory.trace import Event, Trace
from prism_bench.extensions.memory.tracker import Tracker


class Recorder:
    """An allocator that asks `inner` and remembers. Events of several threads stand in the order of their ends."""

    def __init__(self, inner, name: str, extents: Extents | None = None, least: int = 1):
        self._inner, self._name, self._extents = inner, name, extents
        self._events, self._streams, self._count = [], {}, 0
        self.tracker = Tracker(least)

    def __call__(self, size: int):
        """The pointer that `inner` gives."""
        pointer = self._inner(size)
        if not size:
            return pointer
        self._count += 1
        held = pointer.mem.size
        self._events.append(Event(self._count, size, self._stream()))
        self.tracker.allocated(size, held)
        self._look()
        return cupy.cuda.MemoryPointer(_Watched(pointer, self, (self._count, size, held)), 0)

    def forget(self, id, size, held):
        """The memory of that id is in use no more."""
        self._events.append(Event(id, 0, self._stream()))
        self.tracker.freed(size, held)

    def trace(self, **facts) -> Trace:
        """Everything so far; what is still in use is released at the end."""
        return Trace(self._name, tuple(self._events), facts).balanced()

    def _stream(self):
        return self._streams.setdefault(cupy.cuda.get_current_stream().ptr, len(self._streams))

    def _look(self):
        share = self._extents.fragmentation() if self._extents else None
        if share is not None:
            self.tracker.saw_fragmentation(share)


class _Watched(cupy.cuda.memory.BaseMemory):
    """Memory of another allocator, whose end is told."""

    def __init__(self, pointer, recorder, told):
        self._pointer, self._recorder, self._told = pointer, recorder, told
        self.ptr, self.size, self.device_id = pointer.ptr, pointer.mem.size, pointer.device_id

    def __del__(self):
        self._pointer = None
        self._recorder.forget(*self._told)


@contextmanager
def recording(name: str, inner=None):
    """CuPy's allocator is a Recorder meanwhile, on a fresh pool of CuPy's own unless another allocator is given."""
    extents = Extents() if inner is None else None
    before = cupy.cuda.get_allocator()
    recorder = Recorder(inner or cupy.cuda.MemoryPool().malloc, name, extents)
    cupy.cuda.set_allocator(recorder)
    try:
        with Addresses(extents) if extents else nullcontext():
            yield recorder
    finally:
        cupy.cuda.set_allocator(before)
