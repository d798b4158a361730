"""What the fusion plan published: its table before and after, and its pass rule. Quoted, never measured."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

STAGES = ("baseline", "partial", "full")


@dataclass(frozen=True)
class PublishedRow:
    """One row of the plan's table in SI units: what `quantity` of which `chains` was at each stage, and its target."""

    name: str
    quantity: str
    chains: tuple[str, ...]
    stages: dict[str, float]
    target: float
    at_least: bool

    def met(self, value: float | None) -> bool | None:
        """Return whether `value` keeps the target; None where there is no value."""
        if value is None:
            return None
        return value > self.target if self.at_least else value < self.target


@dataclass(frozen=True)
class PassRule:
    """When the plan calls a fused stage passed: its relative error below, its speedup at least."""

    error_below: float
    speedup_at_least: float

    def verdict(self, error: float | None, speedup: float | None) -> bool | None:
        """Return True, False, or None where what was measured does not decide it."""
        kept = (None if error is None else error < self.error_below,
                None if speedup is None else speedup >= self.speedup_at_least)  # fmt: skip
        return False if False in kept else None if None in kept else True


@cache
def _quoted() -> dict[str, Any]:
    return tomllib.loads(files("prism_bench.extensions.fusion.benefit").joinpath("published.toml").read_text("utf-8"))


def source() -> str:
    """Return where the figures are from, and what they leave out."""
    return _quoted()["source"]


def pass_rule() -> PassRule:
    """Return the plan's rule for a fused stage."""
    return PassRule(**_quoted()["rule"])


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Return the plan's table."""
    return tuple(_row(entry) for entry in _quoted()["row"])


def _row(entry: Mapping[str, Any]) -> PublishedRow:
    scale = entry["scale"]
    stages = {stage: entry[stage] * scale for stage in STAGES}
    return PublishedRow(entry["name"], entry["quantity"], tuple(entry["chains"]), stages, entry["target"] * scale,
                        entry.get("at_least", False))  # fmt: skip
