"""Energy of one launch, by watching the driver's energy counter move while the kernel runs without a pause.

The counter does not change for tens of milliseconds and then jumps, so a window is only worth its whole steps: it opens
at one jump and closes at a later one, and the launches in it follow from the time between. The reported uncertainty is
that of the counter. The sensor behind it is another matter: on some boards it looks only a quarter of the time (Z.
Yang, K. Adamek, W. Armour, "Part-time power measurements", SC 2024).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from prism_bench.record.measurement import Energy

RESOLUTION = 1e-3  # joules: the counter is in millijoules


@dataclass(frozen=True)
class EnergyPrecision:
    """At most `seconds` of running; done as soon as the uncertainty is below `precision` of the energy.

    A window has `steps` steps of the counter, or a single one where the time allows no more. What stays more uncertain
    than `worst` is not reported.
    """

    seconds: float = 0.3
    steps: int = 2
    precision: float = 0.03
    worst: float = 0.25


@dataclass(frozen=True)
class _Edge:
    """The counter read `joules` at `at`, and something less at `before`; `launches` were done at `at`."""

    before: float
    at: float
    joules: float
    launches: float


def energy_per_launch(
    replays: Iterator[int],
    counter: Callable[[], float | None],
    patience: EnergyPrecision | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Energy:
    """Return the energy of one launch, or the reason why there is none.

    `replays` keeps the device busy without a pause and yields the launches done so far; `counter` reads joules. The
    replays of one step must be shorter than a step of the counter.
    """
    patience = patience or EnergyPrecision()
    began, edges = clock(), []
    last_at, last = began, counter()
    if last is None:
        return Energy(reason="this device has no energy counter")
    for launches in replays:
        now, joules = clock(), counter()
        if joules is None:
            return Energy(reason="the energy counter does not answer any more")
        if joules > last:
            edges.append(_Edge(last_at, now, joules, launches))
        last_at, last = now, joules
        found = _between(edges, patience.steps)
        if found and _is_within(found, patience.precision):
            return found
        if now - began >= patience.seconds:
            found = found or _between(edges, 1)
            if found and _is_within(found, patience.worst):
                return found
            times = {0: "did not move", 1: "moved once"}.get(len(edges), f"moved {len(edges)} times")
            reason = f"the energy counter {times} in {now - began:.2g} s of repetition, too coarse for one launch"
            return Energy(reason=reason)
    return Energy(reason="the kernel could not be repeated")


def _between(edges: Sequence[_Edge], steps: int) -> Energy | None:
    """Return the energy between the first edge and the last; None while there are too few steps.

    An edge is anywhere between two readings of the counter, so the window is uncertain by half of both gaps.
    """
    if len(edges) <= steps:
        return None
    first, last = edges[0], edges[-1]
    window, joules, launches = last.at - first.at, last.joules - first.joules, last.launches - first.launches
    if window <= 0 or launches <= 0:
        return None
    gaps = (first.at - first.before + last.at - last.before) / 2
    share = gaps / window + RESOLUTION / joules
    each = joules / launches
    return Energy(joules=each, uncertainty=each * share, window=window, launches=round(launches))


def _is_within(found: Energy, share: float) -> bool:
    """Return whether the uncertainty is at most that share of the energy."""
    if found.joules is None or found.uncertainty is None:
        return False
    return found.uncertainty <= share * found.joules
