"""What a pool may keep: the published defaults (512 MiB, 16 buffers of a class, 60 s), and a bound on its peak."""

from dataclasses import dataclass

from prism_bench.errors import UsageError

LEAST = 512  # bytes; what CuPy aligns to, so that no class is finer than its own pool's


@dataclass(frozen=True)
class PoolLimits:
    """Limits of a pool.

    `cap`: bytes that may be free; `per_class`: free blocks of one size; `seconds`: how long a block may be free;
    `least`: the smallest class; `slack`: what is held may exceed the most that was in use by this share; `zero`: blocks
    are filled with zeros.
    """

    cap: int = 512 << 20
    per_class: int = 16
    seconds: float = 60.0
    least: int = LEAST
    slack: float = 0.25
    zero: bool = False

    def __post_init__(self) -> None:
        negative = [name for name in ("cap", "per_class", "seconds", "slack") if getattr(self, name) < 0]
        if negative:
            raise UsageError(f"a pool's {negative[0]} is {getattr(self, negative[0])}; it is 0 or more")
        if self.least < 1 or self.least & (self.least - 1):
            raise UsageError(f"a pool's least class is {self.least} bytes; it is a power of two")


def class_of(size: int, least: int = 1) -> int:
    """Return the bytes of the block that serves a request: the next power of two, `least` at least; 0 for 0."""
    return max(least, 1 << (size - 1).bit_length()) if size else 0
