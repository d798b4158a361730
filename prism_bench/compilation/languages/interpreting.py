"""Calls of other languages on the CPU: guarded arrays, and PyTorch's tensor methods on NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# Arrays with a margin on both sides, for interpreters that write to memory by address: writes outside are found.

_MARGIN = 1 << 16  # bytes
_CANARY = 0xA5


class GuardedArrays:
    """Copies of arrays with a margin around each; `complaint` names one outside of which something was written."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._raw = [np.full(2 * _MARGIN + array.nbytes, _CANARY, np.uint8) for array in arrays]
        self.arrays = [self._view(raw, array) for raw, array in zip(self._raw, arrays, strict=True)]

    def complaint(self, names: Sequence[str]) -> str | None:
        """Return what was written outside of an array, with its name; None if nothing was."""
        for name, raw in zip(names, self._raw, strict=True):
            for side, margin in (("before", raw[:_MARGIN]), ("behind", raw[-_MARGIN:])):
                if (margin != _CANARY).any():
                    return f"it writes {side} the end of '{name}'" if side == "behind" else f"it writes before '{name}'"
        return None

    def _view(self, raw: np.ndarray, array: np.ndarray) -> np.ndarray:
        inside = raw[_MARGIN : _MARGIN + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        return inside


# NumPy arrays with the methods of PyTorch's tensors that Triton's interpreter calls, which needs no PyTorch then.


class HostTensor:
    """A view of a NumPy array: the interpreter's copies to and from the host are the array itself."""

    device = "cpu"

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
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
        """Return the memory behind it."""
        return self

    def storage_offset(self) -> int:
        """Return where in its memory it begins."""
        return 0

    def cpu(self) -> "HostTensor":
        """Return it: it is on the host."""
        return self

    def new_empty(self, *_: object, **__: object) -> "HostTensor":
        """Return one more view, which `set_` gives its memory."""
        return HostTensor(self._array)

    def set_(self, storage: "HostTensor", *_: object) -> None:
        """Take the memory of another one."""
        self._array = storage._array

    def copy_(self, other: "HostTensor") -> None:
        """Do nothing: the interpreter wrote to this memory."""
