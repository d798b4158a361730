"""What is physically possible: a stored measurement with a value outside of these ranges is no longer believed.

A file may be of the right form and still hold a time of zero, a negative energy or a clock of a terahertz. Such a
measurement is invalid when it is read, with the reason, and keeps its samples: nobody computes with them.
"""

from prism_bench.record.schema import CaseFile, EnergyFile, EvidenceFile, MeasurementFile
from prism_bench.units import count_text

SHORTEST, LONGEST = 1e-12, 1e7  # seconds: light crosses a third of a millimetre; four months
FASTEST_CLOCK = 1e5  # MHz
MOST_BYTES, MOST_FLOPS = 10**18, 10**24
# By quantity of `Evidence.spans`, in the units given there; none of the others is below zero either.
_SPANS = {
    "sm_clock": 1e11, "memory_clock": 1e11, "power": 1e5, "power_average": 1e5, "temperature": 1e3, "utilization": 1.01,
}  # fmt: skip
_COLDEST, _MOST = -273.15, 1e13


def impossible(case: CaseFile, one: MeasurementFile) -> str | None:
    """Return why the measurement cannot be believed, as one reason; None where all of its values are possible."""
    for group in one.processes:
        if group.counts:
            reason = impossible_times(min(group.counts) * group.unit, max(group.counts) * group.unit)
            if reason:
                return reason
    return impossible_beside_times(case, one)


def impossible_times(least: float, most: float) -> str | None:
    """Return why times from `least` to `most` seconds cannot be believed; None where they can."""
    if SHORTEST <= least <= most <= LONGEST:
        return None
    if not least >= SHORTEST:
        return f"a time of {least:g} s; none is below {SHORTEST:g} s"
    return f"a time of {most:g} s; none is above {LONGEST:g} s"


def impossible_beside_times(case: CaseFile, one: MeasurementFile) -> str | None:
    """Return why a value other than the times cannot be believed; None where all can."""
    for clocks in one.clocks:
        if clocks and not 0 <= min(clocks) <= max(clocks) <= FASTEST_CLOCK:
            return f"a clock from {min(clocks):g} to {max(clocks):g} MHz; possible is 0 to {FASTEST_CLOCK:g}"
    if not 0 <= case.bytes <= MOST_BYTES:
        return f"{case.bytes} bytes; possible is 0 to {MOST_BYTES:g}"
    if case.flops is not None and not 0 <= case.flops <= MOST_FLOPS:
        return f"{count_text(case.flops, 'operation')}; possible is 0 to {MOST_FLOPS:g}"
    for evidence in one.evidence:
        reason = _impossible_evidence(evidence)
        if reason:
            return reason
    return _impossible_energy(one.energy) if one.energy else None


def _impossible_evidence(evidence: EvidenceFile) -> str | None:
    if not 0 <= evidence.seconds <= LONGEST:
        return f"evidence of {evidence.seconds:g} s; possible is 0 to {LONGEST:g}"
    for name, (low, middle, high) in evidence.spans.items():
        if not (_COLDEST if name == "temperature" else 0) <= low <= middle <= high <= _SPANS.get(name, _MOST):
            return f"evidence with {name} of {low:g}, {middle:g}, {high:g}, which is impossible"
    for name, share in evidence.reasons.items():
        if not 0 <= share <= 1.01:
            return f"evidence with a share of {share:g} for {name!r:.40}; possible is 0 to 1"
    for name, seconds in evidence.throttled.items():
        if not 0 <= seconds <= LONGEST:
            return f"evidence with {seconds:g} s of throttling by {name!r:.40}; possible is 0 to {LONGEST:g}"
    return None


def _impossible_energy(energy: EnergyFile) -> str | None:
    for name, value in (("energy", energy.joules), ("uncertainty", energy.uncertainty), ("window", energy.window)):
        if value is not None and not 0 <= value <= _MOST:
            return f"an {name} of {value:g}; possible is 0 to {_MOST:g}"
    return None
