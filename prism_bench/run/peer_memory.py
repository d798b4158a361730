"""Device memory that a peer still holds after its end: what grows with every use is a leak, a workspace is not."""

import gc
import time
from collections.abc import Callable
from contextlib import suppress

from prism_bench.backends import Backend
from prism_bench.backends.base import HeldBytes
from prism_bench.units import bytes_text

SMALL = 1 << 20  # of live arrays: less is no finding
LIBRARY_CODE = 32 << 20  # outside of arrays: the driver loads a library's kernels when they are first used
WORKSPACE = 256 << 20  # what a library may keep for later calls, where a peer cannot be used again to find out
USES = 2
PAUSE = 0.1  # seconds


class HeldMemory:
    """The memory that this process held before a peer; `alone` is whether no other process of the run uses the device.

    Libraries keep workspaces and loaded code, so that the first use may leave something. Where it did, the peer is
    used twice more: memory that grows by more than 1 MiB each time is lost. Outside of arrays the memory is that of
    the whole device: there nothing is concluded where it grows unevenly, or while nothing is used, since others are at
    work.
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
        by_arrays = grown.arrays > SMALL
        steps = [self._step(use, by_arrays) for _ in range(USES)]
        if min(steps) <= SMALL or not (by_arrays or self._is_own(steps)):
            return None
        return _reason(self._growth())

    def _step(self, use: Callable[[], None], by_arrays: bool) -> int:
        """Return by how many bytes the memory grows with one use, in arrays or else outside of them."""
        before = self._growth()
        with suppress(Exception):  # one that raises may leak, too
            use()
        gc.collect()
        after = self._growth()
        return after.arrays - before.arrays if by_arrays else after.outside - before.outside

    def _is_own(self, steps: list[int]) -> bool:
        """Return whether memory outside of arrays grew evenly with the uses, and stays as it is without one."""
        before = self._growth().outside
        time.sleep(PAUSE)
        return max(steps) <= 2 * min(steps) and abs(self._growth().outside - before) <= SMALL

    def _growth(self) -> HeldBytes:
        now = self._backend.held_bytes(self._alone)
        return HeldBytes(now.arrays - self._before.arrays, now.outside - self._before.outside)

    def _suspicious(self, grown: HeldBytes) -> bool:
        return grown.arrays > SMALL or grown.outside > LIBRARY_CODE


def _reason(grown: HeldBytes) -> str:
    return f"it leaks: {bytes_text(sum(grown))} of device memory are still held after its end, more after each use"
