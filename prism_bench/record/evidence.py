"""Evidence: the state of the device while a measurement was made. Why its number may be trusted, or may not."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

# A clock below this share of the best one of its session is throttled, or not yet awake.
CLOCK_SHARE = 0.75

Span = tuple[float, float, float]


@dataclass(frozen=True)
class Evidence:
    """The state of one device in a window of `seconds`, by `readings` readings.

    `spans` are (lowest, median, highest) by quantity: `sm_clock` and `memory_clock` in hertz, `power` in watts
    (`power_average` where only a mean is offered), `temperature` in degrees Celsius, `utilization` as a share.
    `reasons` are the shares of the readings in which the driver gave that reason for a lower clock; `throttled` the
    seconds of the window by cause, from the driver's own counters, which see what falls between two readings.
    `neighbours` are other processes on the device, as words. `events` are Xid and memory errors that fell into the
    window. `missing` has the reason why a quantity is null, `lost` since when and why the device did not answer.
    """

    seconds: float
    readings: int
    spans: Mapping[str, Span] = field(default_factory=dict[str, Span])
    reasons: Mapping[str, float] = field(default_factory=dict[str, float])
    throttled: Mapping[str, float] = field(default_factory=dict[str, float])
    neighbours: tuple[str, ...] = ()
    busy_neighbours: bool = False
    events: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    lost: str | None = None

    def highest(self, quantity: str) -> float | None:
        """Return the largest value that was read; None where none was."""
        span = self.spans.get(quantity)
        return span[2] if span else None


@dataclass(frozen=True)
class Energy:
    """Energy of one launch in `joules`, from the driver's counter over a `window` of seconds with `launches` in it.

    `uncertainty` in joules is that of counting: when the counter moved, and by how much it moves at once. It does not
    contain the error of the board's sensor. Without joules there is a `reason`.
    """

    joules: float | None = None
    uncertainty: float | None = None
    window: float | None = None
    launches: int | None = None
    reason: str | None = None


def plain_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as plain JSON values, without empty fields and spans that contain no number."""
    known = {name: span for name, span in evidence.spans.items() if all(map(math.isfinite, span))}
    evidence = replace(evidence, spans=known)
    return {key: _plain(value) for key, value in vars(evidence).items() if value or key in ("seconds", "readings")}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in cast("Mapping[str, object]", value).items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in cast("tuple[object, ...]", value)]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def plain_energy(energy: Energy | None) -> dict[str, Any] | None:
    """Return the energy as plain JSON values; None where nobody asked for it."""
    return {key: _plain(value) for key, value in vars(energy).items() if value is not None} if energy else None
