"""Checks of timed callables: signs of missing work in their times, and replaced functions of the clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from prism_bench.errors import MeasurementInvalid
from prism_bench.units import bytes_text, count_text, rate_text, time_text

# Signs that the time of a callable is not that of its work: no work, two levels, rates that no device reaches.

_LEVELS_APART = 1.3  # ratio of neighbours in order of time that separates two levels
_LEVELS_SECONDS = 1.5e-6  # and their distance: a timer's step and a late block explain less
_OTHER_WORK = 2.0  # ratio from which two levels are two kinds of work
_COLD_OVER_HOT = 10.0  # memory slows a call by less than that against caches, without the launch
_RATE_ALLOWANCE = 0.01


@dataclass(frozen=True)
class SampleLevels:
    """Two levels of samples: their numbers of samples, and their medians in seconds."""

    fast: int
    slow: int
    low: float
    high: float

    @property
    def is_other_work(self) -> bool:
        """Whether the levels are too far apart for the same work."""
        return self.high > _OTHER_WORK * self.low

    def __str__(self) -> str:
        return (
            f"two levels: {count_text(self.fast, 'sample')} near {time_text(self.low)}, "
            f"{self.slow} near {time_text(self.high)}"
        )


def levels(samples: Sequence[float]) -> SampleLevels | None:
    """Return the two levels of the samples, or None. A single odd sample is no level."""
    ordered = sorted(samples)
    cuts = range(2, len(ordered) - 1)
    gaps = {cut: ordered[cut] / max(ordered[cut - 1], 1e-12) for cut in cuts}
    if not gaps:
        return None
    cut = max(gaps, key=gaps.__getitem__)
    if gaps[cut] < _LEVELS_APART or ordered[cut] - ordered[cut - 1] < _LEVELS_SECONDS:
        return None
    return SampleLevels(cut, len(ordered) - cut, median(ordered[:cut]), median(ordered[cut:]))


def has_odd_sample(samples: Sequence[float]) -> bool:
    """Return whether a single sample is so far from the others that more samples are needed."""
    ordered = sorted(samples)
    if len(ordered) < 3:
        return False
    ends = ((ordered[0], ordered[1]), (ordered[-2], ordered[-1]))
    return any(high > _LEVELS_APART * low and high - low >= _LEVELS_SECONDS for low, high in ends)


def at_overhead(seconds: float, nothing: float, launch: float) -> str | None:
    """Return why a time is that of no work, or None.

    `nothing` is the time between two events, `launch` that of an empty kernel.
    """
    if seconds > sqrt(nothing * max(launch, nothing)):
        return None
    return (
        f"at launch overhead: nothing to time ({time_text(seconds)}; no work at all takes {time_text(nothing)}, an "
        f"empty kernel {time_text(launch)})"
    )


def less_work_when_hot(cold: float, hot: float, launch: float, warming: float) -> str | None:
    """Return why a hot time cannot be of the work that takes `cold`, or None.

    `warming` is the time in which memory fills the cache: clearing costs a call at least that, and seldom much more.
    """
    work = max(hot, launch / 2)
    if cold - launch <= _COLD_OVER_HOT * work or cold - hot <= 4 * warming + launch:
        return None
    return f"{time_text(hot)} hot and {time_text(cold)} cold: the replayed graph does not do the work of the call"


def less_work_when_cold(cold: float, warm: float, warming: float) -> str | None:
    """Return why a cold time cannot be of the work that takes `warm` with caches as they are, or None.

    Dirty lines of the cache are written to memory while a warm call runs, which takes up to `warming`.
    """
    if warm <= _OTHER_WORK * cold or warm - cold <= 10e-6 + 2 * warming:
        return None
    return f"{time_text(cold)} after clearing the caches and {time_text(warm)} without: the call does less when timed"


def too_many_bytes(moved: int | None, seconds: float, bus: float | None, cache: int, cache_rate: float) -> str | None:
    """Return why the bytes cannot have moved in that time, or None.

    `cache` is the number of bytes that may be in L2 before the call: 0 when it is cold.
    """
    if not moved or seconds <= 0:
        return None
    rate = f"{bytes_text(moved)} in {time_text(seconds)} is {rate_text(moved / seconds, 'B/s')}"
    if bus and (moved - cache) / seconds > bus * (1 + _RATE_ALLOWANCE):
        held = f" in addition to the {bytes_text(cache)} that L2 holds" if cache else ""
        return f"{rate}; this device's memory moves {rate_text(bus, 'B/s')} at most{held}"
    if moved / seconds > cache_rate:
        return f"{rate}; this device's L2 gives {rate_text(cache_rate, 'B/s')} at most"
    return None


def too_many_operations(flops: int | None, seconds: float, peak: float) -> str | None:
    """Return why the operations cannot have been done in that time, or None."""
    if not flops or seconds <= 0 or flops / seconds <= peak:
        return None
    return (
        f"{flops:.3g} operations in {time_text(seconds)} are {rate_text(flops / seconds, 'FLOP/s')}; this device does "
        f"{rate_text(peak, 'FLOP/s')} at most, of any type"
    )


# Guard of the clock's functions against replacement by specs.
#
# Measured code runs in the clock's process, so it can replace functions of the clock. Modules `keep` their names when
# they are imported; a sample is refused if one of the names has another value by then.


@dataclass(frozen=True)
class _KeptName:
    """A name, its owner with the owner's present names, and its original value."""

    text: str
    owner: object
    names: Mapping[str, object]
    name: str
    value: object


_KEPT: dict[tuple[int, str], _KeptName] = {}
_STRANGE: list[str] = []


def keep(text: str, owner: object, names: tuple[str, ...] = ()) -> None:
    """Remember the values of names of a module or class; without names, of all functions and properties of a class."""
    members = vars(owner)
    for name in names or [name for name, value in members.items() if callable(value) or isinstance(value, property)]:
        if name in members:
            _KEPT.setdefault((id(owner), name), _KeptName(f"{text}.{name}", owner, members, name, members[name]))


def distrust(name: str) -> None:
    """Remember that a name was replaced before it could be kept."""
    _STRANGE.append(name)


def replaced() -> list[str]:
    """Return the names whose values were replaced."""
    return [*_STRANGE, *sorted(kept.text for kept in _KEPT.values() if kept.names.get(kept.name) is not kept.value)]


def refuse_replaced() -> None:
    """Raise MeasurementInvalid if a name was replaced."""
    names = replaced()
    if names:
        raise MeasurementInvalid(f"{', '.join(names[:3])} was replaced: no time can be trusted in this process")
