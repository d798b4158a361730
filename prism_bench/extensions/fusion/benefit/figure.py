"""A number of the ledger, or the reason why there is none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`value` in SI units with its `source` in words, or None and the `reason`."""

    value: float | None = None
    source: str | None = None
    reason: str | None = None


def absent(reason: str | None) -> Figure:
    """Return no number, with the reason."""
    return Figure(reason=reason)
