"""Rule: a condition that a workload or a configuration must keep."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """Condition on axes: `text` gives it in words, `holds` asks for axes by name."""

    text: str
    holds: Callable[..., object]
