"""Types of arrays that belong to NumPy or to CuPy, which is installed only where there is a device for it."""

from types import ModuleType
from typing import Any, TypeAlias

AnyArray: TypeAlias = Any  # an array of NumPy or of CuPy; CuPy has no stubs
ArrayModule: TypeAlias = ModuleType  # numpy or cupy
