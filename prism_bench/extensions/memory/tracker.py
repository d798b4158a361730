"""Tracker of a program's allocations: how often, how much, how often the same size again, and whether a pool helps.

The counts and their names are the published tracker's. Of its two percentages the second is a hundred less the first,
so real fragmentation is reported too, if the allocator provides it.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from prism_bench.extensions.memory.limits import class_of

LEAST = 4096  # bytes; the published tracker looks away from less
HIGH, MEDIUM = 50.0, 25.0  # per cent of reuse potential
TOP_IN_JSON = 10
_PUBLISHED_WARNING = 50.0


@dataclass(frozen=True)
class Tracked:
    """Counts of allocations of at least the tracker's least size, of `unique` sizes in `classes` of powers of two.

    `allocated_bytes` is over all of them, `current` and `peak` are bytes in use. `synthetic` means that no program made
    them.

    `internal` is the share of the memory in use at the peak that rounding adds, `external` the share of the free memory
    that is not in one piece, at its worst; None if the allocator does not report it.
    """

    allocations: int
    repeated: int
    unique: int
    allocated_bytes: int
    current: int
    peak: int
    top: tuple[tuple[int, int], ...]
    classes: int = 0
    ignored: int = 0
    internal: float | None = None
    external: float | None = None
    synthetic: bool = False

    @property
    def reuse_potential(self) -> float:
        """Per cent of the allocations whose size was requested before; 0 of none."""
        return 100 * self.repeated / self.allocations if self.allocations else 0.0

    @property
    def class_reuse(self) -> float:
        """Per cent of the allocations whose size class was requested before, which a pool of classes could reuse."""
        return 100 * (1 - self.classes / self.allocations) if self.allocations else 0.0

    @property
    def unique_percent(self) -> float:
        """The published "fragmentation": per cent of the allocations whose size was new. It carries no news."""
        return 100 * self.unique / self.allocations if self.allocations else 0.0

    @property
    def advice(self) -> str:
        """`high`, `medium` or `low`, by the published thresholds: whether keeping blocks pays."""
        if self.reuse_potential > HIGH:
            return "high"
        return "medium" if self.reuse_potential > MEDIUM else "low"

    @property
    def warns(self) -> bool:
        """Whether the published tracker would warn of fragmentation."""
        return self.unique_percent > _PUBLISHED_WARNING

    def plain(self) -> dict[str, Any]:
        """Return JSON values, the published keys first."""
        return {
            "total_allocations": self.allocations, "repeated_allocations": self.repeated,
            "reuse_potential_percent": self.reuse_potential, "unique_sizes": self.unique,
            "fragmentation_percent": self.unique_percent, "total_bytes_allocated": self.allocated_bytes,
            "current_memory_bytes": self.current, "peak_memory_bytes": self.peak,
            "top_allocation_sizes": [list(pair) for pair in self.top], "class_reuse_percent": self.class_reuse,
            "ignored_allocations": self.ignored, "internal_fragmentation": self.internal,
            "external_fragmentation": self.external, "advice": self.advice, "synthetic": self.synthetic,
        }  # fmt: skip


class Tracker:
    """Counter of allocations and releases; sizes below `least` are only counted as ignored, and so are their ends."""

    def __init__(self, least: int = LEAST) -> None:
        self._least, self._ignored = least, 0
        self._sizes: Counter[int] = Counter()
        self._asked = self._held = self._peak = self._held_at_peak = 0
        self._reports = True
        self._external: float | None = None

    def allocated(self, size: int, held: int | None = None) -> None:
        """Count `size` bytes, for which the allocator set `held` aside, if it reports that."""
        if size < self._least:
            self._ignored += 1
            return
        self._sizes[size] += 1
        self._asked += size
        self._held += held or 0
        self._reports &= held is not None
        if self._asked > self._peak:
            self._peak, self._held_at_peak = self._asked, self._held

    def freed(self, size: int, held: int | None = None) -> None:
        """Count the release of an allocation with these numbers."""
        if size >= self._least:
            self._asked -= size
            self._held -= held or 0

    def saw_fragmentation(self, share: float) -> None:
        """Note the share of the allocator's free memory that is not in its largest piece."""
        self._external = max(self._external or 0.0, share)

    def tracked(self, synthetic: bool = False) -> Tracked:
        """Return the counts so far."""
        count = self._sizes.total()
        rounding = 1 - self._peak / self._held_at_peak if self._reports and self._held_at_peak else None
        return Tracked(
            allocations=count, repeated=count - len(self._sizes), unique=len(self._sizes),
            allocated_bytes=sum(size * times for size, times in self._sizes.items()), current=self._asked,
            peak=self._peak, top=tuple(self._sizes.most_common(TOP_IN_JSON)),
            classes=len({class_of(size) for size in self._sizes}), ignored=self._ignored, internal=rounding,
            external=self._external, synthetic=synthetic,
        )  # fmt: skip


def published_demo() -> Tracked:
    """Return the pattern behind the published 67.92 % of reuse: made up for a demonstration, measured on no program."""
    tracker, kibi, mebi = Tracker(), 1 << 10, 1 << 20
    for size, times in ((4 * mebi, 20), (128 * kibi, 10), (256 * kibi, 8)):
        for _ in range(times):
            tracker.allocated(size)
            tracker.freed(size)
    for step in range(1, 16):
        tracker.allocated(step * 512 * kibi)
        if step % 3 == 0:
            tracker.freed(step * 512 * kibi)
    for _ in range(50):
        tracker.allocated(kibi)
    return tracker.tracked(synthetic=True)
