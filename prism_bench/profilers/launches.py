"""Launches as a kernel profiler reports them, whichever tool and file they came from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_MISSING = re.compile(r"|n/a|[+-]?(nan|inf|infinity)(\(.*\))?", re.IGNORECASE)  # `-nan(ind)` on Windows


@dataclass(frozen=True)
class ProfiledValue:
    """A metric's value in SI; None, with the tool's own `text`, where it is no number (`n/a`, a policy's name)."""

    value: float | None
    unit: str = ""
    text: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the tool printed no value (`n/a`, `nan`, `-inf`, nothing), where a word would be a value."""
        return self.value is None and bool(_MISSING.fullmatch(self.text.strip()))


@dataclass(frozen=True)
class ProfilerAdvice:
    """The tool's opinion about a launch, never ours: `speedup` is its estimate in per cent, `local` to its subject."""

    name: str
    kind: str
    text: str
    speedup_kind: str = ""
    speedup: float | None = None


@dataclass(frozen=True)
class ProfiledLaunch:
    """One launch of a kernel: which, where, in what profiler ranges, and what was counted.

    `metrics` are by the tool's metric name, or by `section: label [unit]` where the file only has labels, which are
    not unique. `capability` is `9.0`; `ranges` are NVTX cells as the tool wrote them.
    """

    id: int
    kernel: str
    metrics: Mapping[str, ProfiledValue]
    process: int | None = None
    device: int | None = None
    capability: str | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    ranges: tuple[str, ...] = ()
    rules: tuple[ProfilerAdvice, ...] = field(default=())

    def value(self, metric: str) -> float | None:
        """Return the metric's value in SI; None where it was not collected or is no number."""
        found = self.metrics.get(metric)
        return found.value if found else None
