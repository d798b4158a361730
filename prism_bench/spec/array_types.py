"""Types of arrays that belong to NumPy or to CuPy, which is installed only where there is a device for it."""

from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

AnyArray: TypeAlias = Any  # an array of NumPy or of CuPy; CuPy has no stubs
ArrayModule: TypeAlias = ModuleType  # numpy or cupy
DType: TypeAlias = "np.dtype[Any]"
