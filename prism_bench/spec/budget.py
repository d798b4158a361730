"""Budgets: promises on one metric, and whether they were kept."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from prism_bench.errors import SpecError

BudgetWord = Literal["met", "missed", "undecided", "expired", "unmeasured"]


@dataclass(frozen=True)
class Budget:
    """Limit on one metric.

    `metric` must be at most `at_most` or at least `at_least` (exactly one of them), for cases of `label` or all.
    `owner` is responsible for it, `reason` explains the limit; from `expires` on it is not checked until it is renewed.
    """

    metric: str
    at_most: float | None = None
    at_least: float | None = None
    label: str | None = None
    owner: str | None = None
    reason: str | None = None
    expires: date | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise SpecError(f"Budget('{self.metric}'): give exactly one of at_most and at_least")
        if not self.limit >= 0:
            said = f"{self.limit} cannot be kept; a budget is a number from 0 upwards"
            raise SpecError(f"Budget('{self.metric}'): {said}")

    @property
    def limit(self) -> float:
        """The number that must not be crossed."""
        limit = self.at_least if self.at_most is None else self.at_most
        assert limit is not None, "one of them is given"
        return limit

    def verdict(
        self, value: float | None, today: date | None = None, interval: tuple[float, float] | None = None
    ) -> BudgetWord:
        """Return `met`, `missed`, `unmeasured` if there is no value, or `expired`.

        With the value's `interval` it is `undecided` where the limit is inside of it: `missed` needs all of the
        interval beyond the limit, `met` all of it within.
        """
        if self.expires and today and today >= self.expires:
            return "expired"
        if value is None or value != value:
            return "unmeasured"
        kept = {(end <= self.limit if self.at_most is not None else end >= self.limit) for end in interval or (value,)}
        return "undecided" if len(kept) > 1 else "met" if kept == {True} else "missed"
