"""NumPy arrays with the methods of PyTorch's tensors that Triton's interpreter calls, which needs no PyTorch then."""

from typing import Any

import numpy as np


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
