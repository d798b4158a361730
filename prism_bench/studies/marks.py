"""Marks for a profiler: a named range (NVTX), and the driver's profiler start and stop."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class ProfilerMarks:
    """Marks on the device of `xp`; none where it has no CUDA, so that the same program runs anywhere."""

    def __init__(self, xp: ModuleType) -> None:
        self._cuda = getattr(xp, "cuda", None)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """Attribute everything that is launched inside to `name`."""
        if self._cuda is None:
            yield
            return
        self._cuda.nvtx.RangePush(name)
        try:
            yield
        finally:
            self._cuda.nvtx.RangePop()

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self._cuda is not None:
            self._cuda.runtime.deviceSynchronize()

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Let a profiler collect here and nowhere else; the device is idle at both ends."""
        if self._cuda is None:
            yield
            return
        self.wait()
        self._cuda.runtime.profilerStart()
        try:
            yield
            self.wait()
        finally:
            self._cuda.runtime.profilerStop()
