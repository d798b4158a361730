"""Device buffers: exactly sized, 256-byte aligned copies of arrays, with margins that show an overrun."""

import ctypes

import numpy as np

from prism_bench.errors import BackendUnavailable

ALIGNMENT = 256
# An overrun by less than this lands in the margin: found afterwards, and harmless to others.
MARGIN_BYTES = 4096
MARGIN_FILL = 0xA5


class DeviceBuffer:
    """A copy of `array` on the emulated device, which exists as long as this object, for any number of launches."""

    def __init__(self, array: np.ndarray) -> None:
        source = np.ascontiguousarray(array)
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, source.nbytes
        self._memory = np.full(self.bytes + 2 * MARGIN_BYTES + ALIGNMENT, MARGIN_FILL, np.uint8)
        start = self._memory.ctypes.data + MARGIN_BYTES
        self._first = MARGIN_BYTES + -start % ALIGNMENT
        self._content[:] = source.reshape(-1).view(np.uint8)

    @property
    def _content(self) -> np.ndarray:
        return self._memory[self._first : self._first + self.bytes]

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return self._memory.ctypes.data + self._first

    @property
    def array(self) -> np.ndarray:
        """The device's own memory as an array of the original shape and type; writes go through."""
        return self._content.view(self.dtype).reshape(self.shape)

    def to_host(self) -> np.ndarray:
        """Return a copy of the present content."""
        return self.array.copy()

    def overrun(self) -> int:
        """Return how far outside the buffer something was written: 0 not at all, n the nth byte past it, -n before it.

        The margins are clean again afterwards, so that each overrun is reported once.
        """
        before = self._memory[self._first - MARGIN_BYTES : self._first]
        after = self._memory[self._first + self.bytes : self._first + self.bytes + MARGIN_BYTES]
        past, early = np.flatnonzero(after != MARGIN_FILL), np.flatnonzero(before != MARGIN_FILL)
        before[:], after[:] = MARGIN_FILL, MARGIN_FILL
        if past.size:
            return int(past[0]) + 1
        return int(early[-1]) - MARGIN_BYTES if early.size else 0


class HostBuffer(DeviceBuffer):
    """Host memory that the device sees as it is, without a copy and without margins around it."""

    def __init__(self, array: np.ndarray) -> None:
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, array.nbytes
        self._memory = array.reshape(-1).view(np.uint8)

    @property
    def _content(self) -> np.ndarray:
        return self._memory

    @property
    def address(self) -> int:
        return self._memory.ctypes.data

    def overrun(self) -> int:
        """Return 0: the memory around it has other uses."""
        return 0


class GuardedBuffer(DeviceBuffer):
    """A buffer from the C library's allocator, which the address sanitizer replaces by one with red zones."""

    def __init__(self, array: np.ndarray) -> None:
        source = np.ascontiguousarray(array)
        self.shape, self.dtype, self.bytes = array.shape, array.dtype, source.nbytes
        self._library, place = ctypes.CDLL(None), ctypes.c_void_p()
        if self._library.posix_memalign(ctypes.byref(place), ctypes.c_size_t(ALIGNMENT), ctypes.c_size_t(self.bytes)):
            raise BackendUnavailable(f"no memory for a buffer of {self.bytes} bytes on the emulator")
        self._place = place
        self._content[:] = source.reshape(-1).view(np.uint8)

    def __del__(self) -> None:
        self._library.free(self._place)

    @property
    def _content(self) -> np.ndarray:
        return np.frombuffer(memoryview((ctypes.c_uint8 * self.bytes).from_address(self.address)), np.uint8)

    @property
    def address(self) -> int:
        return self._place.value or 0

    def overrun(self) -> int:
        """Return 0: the sanitizer reports an overrun itself, and ends the process."""
        return 0
