"""Checks of timed callables: whether they did their work, and whether anybody changed the clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from prism_bench.errors import MeasurementInvalid
from prism_bench.units import bytes_text, count_text, rate_text, time_text

# Signs that the time of a callable is not that of its work: no work, two levels, rates that no device reaches.
#
# Floats in, sentences out.

_LEVELS_APART = 1.3  # ratio between neighbours in order of time that makes two levels of them
_LEVELS_SECONDS = 1.5e-6  # and their distance: below it a timer's step and a late block are enough
_OTHER_WORK = 2.0  # ratio from which two levels are two kinds of work
_COLD_OVER_HOT = 10.0  # memory is less than that slower than caches, launches taken off
_RATE_ALLOWANCE = 0.01


@dataclass(frozen=True)
class SampleLevels:
    """Two levels of samples: how many there are of each, and their medians in seconds."""

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
    """Return the two levels that the samples have; None where they have one. A single odd sample makes no level."""
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
    """Whether a single sample is so far from the others that more are needed to know whether it is a level."""
    ordered = sorted(samples)
    if len(ordered) < 3:
        return False
    ends = ((ordered[0], ordered[1]), (ordered[-2], ordered[-1]))
    return any(high > _LEVELS_APART * low and high - low >= _LEVELS_SECONDS for low, high in ends)


def at_overhead(seconds: float, nothing: float, launch: float) -> str | None:
    """Return why a time is that of no work; None above it.

    `nothing` is the time between two events, `launch` that of an empty kernel.
    """
    if seconds > sqrt(nothing * max(launch, nothing)):
        return None
    return (
        f"at launch overhead: nothing to time ({time_text(seconds)}; no work at all takes {time_text(nothing)}, an "
        f"empty kernel {time_text(launch)})"
    )


def less_work_when_hot(cold: float, hot: float, launch: float, warming: float) -> str | None:
    """Return why a hot time cannot be of the work that takes `cold`; None where it can.

    `warming` is the time in which memory fills the cache: clearing that costs a call no less, and seldom much more.
    """
    work = max(hot, launch / 2)
    if cold - launch <= _COLD_OVER_HOT * work or cold - hot <= 4 * warming + launch:
        return None
    return f"{time_text(hot)} hot and {time_text(cold)} cold: the replayed graph does not do the work of the call"


def less_work_when_cold(cold: float, warm: float, warming: float) -> str | None:
    """Return why a cold time cannot be of the work that takes `warm` with caches as they are; None where it can.

    Lines that are dirty in the cache go to memory while a warm call runs, which takes up to `warming`.
    """
    if warm <= _OTHER_WORK * cold or warm - cold <= 10e-6 + 2 * warming:
        return None
    return f"{time_text(cold)} after clearing the caches and {time_text(warm)} without: the call does less when timed"


def too_many_bytes(moved: int | None, seconds: float, bus: float | None, cache: int, cache_rate: float) -> str | None:
    """Return why so many bytes cannot have moved in that time; None where they can.

    `cache` is how many of them may be in L2 before the call: none when it is cold.
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
    """Return why so many operations cannot have been done in that time; None where they can."""
    if not flops or seconds <= 0 or flops / seconds <= peak:
        return None
    return (
        f"{flops:.3g} operations in {time_text(seconds)} are {rate_text(flops / seconds, 'FLOP/s')}; this device does "
        f"{rate_text(peak, 'FLOP/s')} at most, of any type"
    )


# What the names that a time is made with meant before any spec was imported.
#
# Code that is measured runs in the clock's own process, so it can replace what the clock calls. Modules `keep` their
# names when they are imported; a sample is refused where one of the names means something else by then.


@dataclass(frozen=True)
class _KeptName:
    """A name, the object that it belongs to with that object's names as they are now, and what it meant."""

    text: str
    owner: object
    names: Mapping[str, object]
    name: str
    value: object


_KEPT: dict[tuple[int, str], _KeptName] = {}
_STRANGE: list[str] = []


def keep(text: str, owner: object, names: tuple[str, ...] = ()) -> None:
    """Remember what the names of a module or class mean; without names all functions and properties of a class."""
    members = vars(owner)
    for name in names or [name for name, value in members.items() if callable(value) or isinstance(value, property)]:
        if name in members:
            _KEPT.setdefault((id(owner), name), _KeptName(f"{text}.{name}", owner, members, name, members[name]))


def distrust(name: str) -> None:
    """Remember that a name was replaced before it could be kept."""
    _STRANGE.append(name)


def replaced() -> list[str]:
    """Return the names that no longer mean what they meant."""
    return [*_STRANGE, *sorted(kept.text for kept in _KEPT.values() if kept.names.get(kept.name) is not kept.value)]


def refuse_replaced() -> None:
    """Raise MeasurementInvalid where one of the names was replaced."""
    names = replaced()
    if names:
        raise MeasurementInvalid(f"{', '.join(names[:3])} was replaced: no time can be trusted in this process")
