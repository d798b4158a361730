"""The marks that tell a profiler what to look at: a named range (NVTX) and the driver's profiler start and stop."""

from contextlib import contextmanager


class Marks:
    """Marks on the device of `xp`; none where it has no CUDA, so that the same program runs anywhere."""

    def __init__(self, xp):
        self._cuda = getattr(xp, "cuda", None)

    @contextmanager
    def range(self, name: str):
        """Everything launched inside belongs to `name`."""
        if self._cuda is None:
            yield
            return
        self._cuda.nvtx.RangePush(name)
        try:
            yield
        finally:
            self._cuda.nvtx.RangePop()

    def wait(self) -> None:
        """Until the device is idle."""
        if self._cuda is not None:
            self._cuda.runtime.deviceSynchronize()

    @contextmanager
    def profiled(self):
        """A profiler looks here and nowhere else; the device is idle at both ends."""
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
