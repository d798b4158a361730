"""Device memory that a peer still holds after its end: what grows with every use is a leak, a workspace is not."""

import gc
from collections.abc import Callable
from contextlib import suppress

from prism_bench.backends import Backend
from prism_bench.backends.base import HeldBytes
from prism_bench.units import bytes_text

SMALL = 1 << 20  # of live arrays: less is no finding
LIBRARY_CODE = 32 << 20  # outside of arrays: the driver loads a library's kernels when they are first used
WORKSPACE = 256 << 20  # what a library may keep for later calls, where a peer cannot be used again to find out
USES = 2


class HeldMemory:
    """The memory that this process held before a peer; `alone` is whether no other process of the run uses the device.

    Libraries keep workspaces and loaded code, so that the first use may leave something. Where it did, the peer is used
    twice more: memory that grows by more than 1 MiB each time is lost.
    """

    def __init__(self, backend: Backend, alone: bool) -> None:
        self._backend, self._alone = backend, alone
        self._before = backend.held_bytes(alone)

    def leak(self, use: Callable[[], None], *, lacked_memory: bool = False) -> str | None:
        """Return the reason why a peer that has ended leaks, or None; `use` prepares it, calls it once and ends it.

        A peer that `lacked_memory` is not used again.
        """
        if not self._suspicious(self._growth()):
            return None
        gc.collect()
        grown = self._growth()
        if not self._suspicious(grown):
            return None
        if lacked_memory:
            return _reason(grown) if sum(grown) > WORKSPACE else None
        for _ in range(USES):
            before = sum(self._growth())
            with suppress(Exception):  # one that raises may leak, too
                use()
            gc.collect()
            if sum(self._growth()) - before <= SMALL:
                return None
        return _reason(self._growth())

    def _growth(self) -> HeldBytes:
        now = self._backend.held_bytes(self._alone)
        return HeldBytes(now.arrays - self._before.arrays, now.outside - self._before.outside)

    def _suspicious(self, grown: HeldBytes) -> bool:
        return grown.arrays > SMALL or grown.outside > LIBRARY_CODE


def _reason(grown: HeldBytes) -> str:
    return f"it leaks: {bytes_text(sum(grown))} of device memory are still held after its end, more after each use"
