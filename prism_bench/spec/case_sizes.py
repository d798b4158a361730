"""Sizes of a case: shapes and bytes of its buffers, compulsory traffic and floating-point operations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from prism_bench.spec import byname
from prism_bench.spec.kernel import KernelSpec


@dataclass(frozen=True)
class CaseSizes:
    """Sizes of one case. `axes` has the case's values by name."""

    spec: KernelSpec
    axes: Mapping[str, object]
    _shapes: dict[str, tuple[int, ...]] = field(
        default_factory=dict[str, tuple[int, ...]], init=False, repr=False, compare=False
    )

    def shape(self, argument: str) -> tuple[int, ...]:
        """Return the shape of a buffer."""
        if argument not in self._shapes:
            self._shapes[argument] = self.spec.array(argument).extents(self.axes)
        return self._shapes[argument]

    def elements(self, argument: str) -> tuple[str, int]:
        """Return the type of a buffer's elements and their number."""
        return self.spec.array(argument).dtype, prod(self.shape(argument))

    def nbytes(self, argument: str) -> int:
        """Return the bytes that a buffer takes."""
        dtype, count = self.elements(argument)
        return count * np.dtype(dtype).itemsize

    @property
    def allocated_bytes(self) -> int:
        """Device memory that all buffers of the case take."""
        return sum(self.nbytes(array.name) for array in self.spec.arrays)

    @property
    def bytes_moved(self) -> int:
        """Compulsory bytes: each input read once, each output written once, unless the spec has `bytes_moved`."""
        if self.spec.bytes_moved:
            return int(byname.call(self.spec.bytes_moved, self.axes, f"{self.spec.name}: bytes_moved"))
        return sum(self.nbytes(array.name) * (array.reads + array.writes) for array in self.spec.arrays)

    @property
    def flops(self) -> int | None:
        """Floating-point operations, an FMA counting two; None if the spec has none."""
        if not self.spec.flops:
            return None
        return int(byname.call(self.spec.flops, self.axes, f"{self.spec.name}: flops"))
