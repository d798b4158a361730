"""State of a pool: counts and bytes at one moment, and what follows from them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from prism_bench.units import bytes_text, count_text, share_text


@dataclass(frozen=True)
class PoolState:
    """Bytes: `asked` of what is in use, `live` with their classes' rounding, `free` kept; peaks likewise.

    `evictions` are by cause: too old (`age`), too many bytes free (`cap`), too many blocks of a `class` or one of none,
    much more held than was ever in use (`slack`), the device out of `memory`, or `cleared` by the user. `waits` are
    hits that had to wait for another stream, `refused` releases that came twice where no error could be raised.
    """

    releases: int = 0
    hits: int = 0
    misses: int = 0
    waits: int = 0
    refused: int = 0
    evictions: Mapping[str, int] = field(default_factory=dict)
    asked: int = 0
    live: int = 0
    free: int = 0
    free_blocks: int = 0
    largest_free: int = 0
    peak_asked: int = 0
    peak_live: int = 0
    peak_held: int = 0

    @property
    def requests(self) -> int:
        """Allocations that were served."""
        return self.hits + self.misses

    @property
    def held(self) -> int:
        """Bytes that the pool has of the device."""
        return self.live + self.free

    @property
    def hit_rate(self) -> float | None:
        """The share of requests that a free block served; None before the first."""
        return self.hits / self.requests if self.requests else None

    @property
    def internal_fragmentation(self) -> float | None:
        """The share of the memory in use that was not requested: rounding to classes."""
        return 1 - self.asked / self.live if self.live else None

    @property
    def external_fragmentation(self) -> float | None:
        """The share of the free memory that is not in its largest piece."""
        return 1 - self.largest_free / self.free if self.free else None

    def __str__(self) -> str:
        return (
            f"{bytes_text(self.asked)} in use in blocks of {bytes_text(self.live)}, "
            f"{count_text(self.free_blocks, 'block')} of "
            f"{bytes_text(self.free)} free, {bytes_text(self.peak_held)} held at "
            f"most; {count_text(self.requests, 'request')}, "
            f"{share_text(self.hit_rate)} served again, {count_text(sum(self.evictions.values()), 'eviction')}"
        )

    def plain(self) -> dict[str, Any]:
        """Return JSON values, the published keys first, without the one of savings, which counted nothing."""
        return {
            "allocate_requests": self.requests, "deallocate_requests": self.releases, "pool_hits": self.hits,
            "pool_misses": self.misses, "hit_rate_percent": None if self.hit_rate is None else 100 * self.hit_rate,
            "buffers_in_pool": self.free_blocks, "pooled_bytes": self.free,
            **{key: value for key, value in asdict(self).items() if key not in _PUBLISHED}, "held": self.held,
            "internal_fragmentation": self.internal_fragmentation,
            "external_fragmentation": self.external_fragmentation,
        }  # fmt: skip


_PUBLISHED = ("releases", "hits", "misses", "free_blocks", "free")
