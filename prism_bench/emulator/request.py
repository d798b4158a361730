"""The configuration of one launch, as plain values that can be sent to a child process."""

from dataclasses import dataclass
from numbers import Integral
from typing import TypedDict

from prism_bench.errors import SpecError

ORDERS = ("forward", "reverse", "shuffled")
# A launch that makes no progress for this long (CPU time) ends with a finding.
PATIENCE_SECONDS = 10.0
MOST_THREADS = 1024
MOST_SHARED_BYTES = 227 * 1024


Extent = int | tuple[int, ...] | list[int]


class LaunchOptions(TypedDict, total=False):
    """The optional fields of a LaunchRequest."""

    shared_bytes: int
    cooperative: bool
    order: str
    seed: int
    patience: float


@dataclass(frozen=True)
class LaunchRequest:
    """A kernel's launch configuration, checked against the device's limits."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cooperative: bool = False
    order: str = "forward"
    seed: int = 0
    patience: float = PATIENCE_SECONDS

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise SpecError(f"{self.entry}: order '{self.order}' is none of {', '.join(ORDERS)}")
        if min(self.grid) < 1 or min(self.block) < 1:
            raise SpecError(
                f"{self.entry}: grid {self.grid} and block {self.block} must be at least 1 in each dimension"
            )
        threads = self.block[0] * self.block[1] * self.block[2]
        if threads > MOST_THREADS:
            raise SpecError(
                f"{self.entry}: block {self.block} has {threads} threads; a block has at most {MOST_THREADS}"
            )
        if not 0 <= self.shared_bytes <= MOST_SHARED_BYTES:
            raise SpecError(
                f"{self.entry}: {self.shared_bytes} bytes of dynamic shared memory; "
                f"a block has at most {MOST_SHARED_BYTES}"
            )


def three(extent: Extent) -> tuple[int, int, int]:
    """Return a grid or block as three numbers: `256` and `(16, 16)` are filled up with ones."""
    sizes = tuple(extent) if isinstance(extent, tuple | list) else (extent,)
    if not all(isinstance(size, Integral) for size in sizes):
        raise SpecError(f"grid and block are whole numbers, or up to three of them; not {extent!r}")
    x, y, z = (int(size) for size in (*sizes, 1, 1)[:3])
    return x, y, z
