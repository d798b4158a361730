"""Arrays for interpreters of kernel languages on the CPU: guarded arrays, and PyTorch's tensor methods on NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

_MARGIN = 1 << 16  # bytes
_CANARY = 0xA5


class GuardedArrays:
    """Copies of arrays with margins, for interpreters that write to memory by address; finds writes out of bounds."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._raw: list[np.ndarray] = []
        self.arrays: list[np.ndarray] = []
        for array in arrays:
            raw = np.full(2 * _MARGIN + array.nbytes, _CANARY, np.uint8)
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


class HostTensor:
    """A NumPy array with the methods of PyTorch's tensors that Triton's interpreter calls, so that it needs no PyTorch.

    The interpreter's copies to and from the host are the array itself.
    """

    device = "cpu"

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return self._array.shape

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._array.ctypes.data

    def size(self) -> tuple[int, ...]:
        """Return the extents."""
        return self._array.shape

    def stride(self) -> tuple[int, ...]:
        """Return the strides in elements."""
        return tuple(stride // self._array.itemsize for stride in self._array.strides)

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
        return HostTensor(self._array)

    def set_(self, storage: "HostTensor", *_: object) -> None:
        """Use the memory of another tensor."""
        self._array = storage._array

    def copy_(self, other: "HostTensor") -> None:
        """Do nothing: the interpreter wrote to the same memory."""
