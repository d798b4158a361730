"""Arrays for interpreters of kernel languages on the CPU: guarded arrays, and PyTorch's tensor methods on NumPy."""

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from prism_bench.spec.dtypes import CARRIED, PAIRS, stored

_MARGIN = 1 << 16  # bytes
_CANARY = 0xA5
# Bytes of address space on each side of an array, so that an access far out of bounds is in no other array either.
# Only touched pages take memory; a process with a limit on its address space gets the margins alone.
_APART = 1 << 35
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class GuardedArrays:
    """Copies of arrays with margins, for interpreters that write to memory by address; finds writes out of bounds."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._raw: list[np.ndarray] = []
        self.arrays: list[np.ndarray] = []
        for array in arrays:
            raw = _memory(2 * _MARGIN + array.nbytes)
            raw[:_MARGIN] = raw[-_MARGIN:] = _CANARY
            inside = raw[_MARGIN : _MARGIN + array.nbytes].view(array.dtype).reshape(array.shape)
            inside[...] = array
            self._raw.append(raw)
            self.arrays.append(inside)

    def complaint(self, names: Sequence[str]) -> str | None:
        """Return an error text with the name of an array outside of which something was written, or None."""
        for name, raw in zip(names, self._raw, strict=True):
            for side, margin in (("before", raw[:_MARGIN]), ("behind", raw[-_MARGIN:])):
                if (margin != _CANARY).any():
                    return f"it writes {side} the end of '{name}'" if side == "behind" else f"it writes before '{name}'"
        return None


def _memory(nbytes: int) -> np.ndarray:
    """Return memory for an array, which begins at a multiple of 4096 and is far from any other."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    for apart in (_APART, 0):
        try:
            space = mmap.mmap(-1, nbytes + 2 * apart, flags=flags)
        except (OSError, ValueError):  # a limit on the process's address space
            continue
        return np.frombuffer(space, np.uint8)[apart : apart + nbytes]
    raise MemoryError(f"no memory for an array of {nbytes} bytes")


class HostTensor:
    """A NumPy array with the methods of PyTorch's tensors that Triton's interpreter calls, so that it needs no PyTorch.

    The interpreter's copies to and from the host are the array itself.
    """

    device = "cpu"

    def __init__(self, array: np.ndarray, dtype: str = "") -> None:
        self._array, self._dtype = array, dtype if dtype in set(CARRIED) - set(PAIRS) else ""

    @property
    def dtype(self) -> "np.dtype[Any] | str":
        """Return the type of the elements, by name where the array has the bits of a type that NumPy lacks."""
        return self._dtype or self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return self._array.shape

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._array.ctypes.data

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return self._array.ndim

    def size(self, axis: int | None = None) -> Any:
        """Return the extents, or that of an axis."""
        return self._array.shape if axis is None else self._array.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        """Return the strides in elements, or that of an axis."""
        strides = tuple(stride // self._array.itemsize for stride in self._array.strides)
        return strides if axis is None else strides[axis]

    def numel(self) -> int:
        """Return the number of elements."""
        return self._array.size

    def element_size(self) -> int:
        """Return the size of an element in bytes."""
        return self._array.itemsize

    def clone(self) -> "HostTensor":
        """Return a tensor with a copy of the elements."""
        return HostTensor(self._array.copy(), self._dtype)

    def zero_(self) -> "HostTensor":
        """Set every element to zero; return the tensor."""
        return self.fill_(0)

    def fill_(self, value: float) -> "HostTensor":
        """Set every element; return the tensor."""
        self._array.fill(stored(np.asarray(value), self._dtype) if self._dtype else value)
        return self

    def same_bytes(self, other: "HostTensor") -> bool:
        """Return whether both have the same bytes in each element, NaN included."""
        return self._array.tobytes() == other._array.tobytes()

    def untyped_storage(self) -> "HostTensor":
        """Return the tensor itself as its memory."""
        return self

    def storage_offset(self) -> int:
        """Return the offset in its memory, 0."""
        return 0

    def cpu(self) -> "HostTensor":
        """Return the tensor itself: it is on the host."""
        return self

    def new_empty(self, *_: object, **__: object) -> "HostTensor":
        """Return another view; `set_` changes its memory."""
        return HostTensor(self._array, self._dtype)

    def set_(self, storage: "HostTensor", *_: object) -> None:
        """Use the memory of another tensor."""
        self._array = storage._array

    def copy_(self, other: "HostTensor") -> None:
        """Do nothing: the interpreter wrote to the same memory."""
