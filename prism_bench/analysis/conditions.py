"""Conditions of a run: the state of the device over all of it, from the evidence of its measurements."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from prism_bench.record.measurement import Evidence, Span
from prism_bench.record.run_record import RunRecord
from prism_bench.units import count_text, rate_text, share_text

# What the host spends is read in the window of the cold times: it counts once.
_SAME_WINDOW = "launch_time"
_WATTS = ("power", "power_average")


@dataclass(frozen=True)
class Conditions:
    """Readings of `windows` windows: (lowest, median of medians, highest) by quantity.

    `reasons` is in how many windows each reason held the clock down; `cost` the sampler's largest share of a core in
    one process, None where it was not counted.
    """

    windows: int
    readings: int
    spans: Mapping[str, Span]
    reasons: Mapping[str, int]
    neighbours: tuple[str, ...]
    cost: float | None


def conditions(record: RunRecord) -> Conditions | None:
    """Return the conditions of a record; None where nothing watched its device."""
    measurements = [one for case in record.cases for one in case.measurements if one.metric != _SAME_WINDOW]
    seen = [evidence for one in measurements for evidence in one.evidence]
    if not seen:
        return None
    reasons = Counter(word for evidence in seen for word in evidence.reasons)
    costs: list[float] = [one["cpu_share"] for one in record.monitor if one.get("cpu_share") is not None]
    return Conditions(
        windows=len(seen),
        readings=sum(evidence.readings for evidence in seen),
        spans=_spans(seen),
        reasons=dict(reasons.most_common()),
        neighbours=tuple(dict.fromkeys(name for evidence in seen for name in evidence.neighbours)),
        cost=max(costs, default=None),
    )


def noted(record: RunRecord) -> dict[str, int]:
    """Return the notes of measurements, with how many have each."""
    return Counter(note for case in record.cases for one in case.measurements for note in one.notes)


def _spans(seen: list[Evidence]) -> dict[str, Span]:
    names = dict.fromkeys(name for evidence in seen for name in evidence.spans)
    found = {name: [evidence.spans[name] for evidence in seen if name in evidence.spans] for name in names}
    return {
        name: (
            min(low for low, _, _ in spans),
            median(middle for _, middle, _ in spans),
            max(high for *_, high in spans),
        )
        for name, spans in found.items()
    }


def words(found: Conditions) -> Iterator[tuple[str, str]]:
    """Yield the conditions as pairs of words, for people."""
    for name, title in (("sm_clock", "SM clock"), ("memory_clock", "memory clock")):
        if name in found.spans:
            yield title, _span(found.spans[name], lambda value: rate_text(value, "Hz"))
    power = next((found.spans[name] for name in _WATTS if name in found.spans), None)
    if power:
        yield "power", _span(power, lambda value: f"{value:.0f} W")
    if "temperature" in found.spans:
        yield "temperature", _span(found.spans["temperature"], lambda value: f"{value:.0f} C")
    held = [f"{word} in {count} of {count_text(found.windows, 'window')}" for word, count in found.reasons.items()]
    yield "clock held down", ", ".join(held) or "never"
    yield "neighbours", ", ".join(found.neighbours) or "none seen"
    yield "readings", f"{found.readings} in {count_text(found.windows, 'window')}"
    if found.cost is not None:
        yield "sampler", f"{share_text(found.cost)} of a core at most"


def _span(span: Span, text: Callable[[float], str]) -> str:
    low, middle, high = (text(value) for value in span)
    return middle if low == high else f"{middle} ({low} to {high})"
