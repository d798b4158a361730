"""A budget is a promise on one metric; a verdict says whether it was kept."""

from dataclasses import dataclass

from prism_bench.errors import SpecError


@dataclass(frozen=True)
class Budget:
    """`metric` must be at most `at_most` or at least `at_least` (exactly one of them), for cases of `label` or all."""

    metric: str
    at_most: float | None = None
    at_least: float | None = None
    label: str | None = None

    def __post_init__(self):
        if (self.at_most is None) == (self.at_least is None):
            raise SpecError(f"Budget('{self.metric}'): give exactly one of at_most and at_least")

    def verdict(self, value: float | None) -> str:
        """`met`, `missed`, or `unmeasured` where there is no value; never silently met."""
        if value is None or value != value:
            return "unmeasured"
        kept = value <= self.at_most if self.at_most is not None else value >= self.at_least
        return "met" if kept else "missed"
