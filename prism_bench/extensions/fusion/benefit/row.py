"""One stage of a chain at one workload: all its figures in the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass

from prism_bench.analysis.bounds.bound import dram_bytes, value
from prism_bench.analysis.summary import number
from prism_bench.extensions.fusion.benefit.figure import Figure, absent
from prism_bench.extensions.fusion.benefit.plan import Planned
from prism_bench.extensions.fusion.benefit.saving import CLOCKS, Saving, Speedup, Timed, timed
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.case import Case
from prism_bench.workflows.traffic import CaseTraffic

_TRACERS = ("cupti", "nsys")


@dataclass(frozen=True)
class StageRow:
    """One stage of a chain at one workload.

    Its `figures` by name:

    cold_time, hot_time, launch_time, issued   seconds of one evaluation; `issued` is that of `saving.timed`
    gaps            seconds of one evaluation in which the device waits for the next launch
    emulated        different bytes that every launch touched on the emulator; `requested` those it asked for
    dram_bytes      counted by a profiler;  dram_share, tensor_share: likewise
    energy          joules of one evaluation, replayed
    error           largest relative error against the float64 reference, over outputs and seeds
    `floor`         seconds in which the whole chain's compulsory bytes move at the copy ceiling

    `speedups` and `savings` against the baseline are by clock; a clock without times has no saving. The speedup named
    `library` is that against the fastest library call, cold. `passed` is the plan's rule, by the cold clock; None where
    it is not decided, and for the baseline.
    """

    stage: str
    case: str
    plan: Planned
    figures: Mapping[str, Figure]
    speedups: Mapping[str, Speedup]
    savings: Mapping[str, Saving]
    passed: bool | None
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        """Return the figure of that name; None where it is missing."""
        return self.figures[name].value


@dataclass(frozen=True)
class Seen:
    """What is known of one stage: its `case` and `plan`, the record's `result` and the emulator's `traffic`.

    `missing` is why there is no result, `uncounted` why no traffic. `counted` is the case where a profiler counted it
    in another record.
    """

    stage: str
    case: Case
    plan: Planned
    result: CaseResult | None
    traffic: CaseTraffic | None
    missing: str
    uncounted: str
    counted: CaseResult | None = None

    def timed(self, clock: str) -> Timed:
        """Return its time by `clock`."""
        return timed(self.result, clock, self.missing)


def figures(seen: Seen, least_time: Figure) -> dict[str, Figure]:
    """Return all figures of a stage; `least_time` is that of the chain's compulsory bytes."""
    times = {clock: seen.timed(clock).figure for clock in (*CLOCKS, "launch_time")}
    return {
        **times, "gaps": _gaps(seen, times), **_emulated(seen),
        **{name: _counted(seen, name) for name in ("dram_bytes", "dram_share", "tensor_share")},
        "energy": _energy(seen), "error": _error(seen), "floor": least_time,
    }  # fmt: skip


def _gaps(seen: Seen, times: Mapping[str, Figure]) -> Figure:
    """Return what a tracer measured, or how much longer the host takes to launch than the device to work."""
    profile = seen.result.profile if seen.result else {}
    traced = value(seen.result, "gap_seconds") if seen.result and profile.get("tool") in _TRACERS else None
    if traced is not None:
        return Figure(traced, f"traced by {profile['tool']}")
    host, device = times["launch_time"], times["hot_time"]
    if host.value is None or device.value is None:
        return absent(host.reason or device.reason)
    return Figure(max(0.0, host.value - device.value), "host time to launch it, less the device's hot time")


def _emulated(seen: Seen) -> dict[str, Figure]:
    found = seen.traffic
    if found is None or not found.launches:
        gap = absent((found.complaint if found else None) or seen.uncounted)
        return {"emulated": gap, "requested": gap}
    touched = Figure(found.touched + found.scratch, "different bytes of every launch, on the emulator")
    return {"emulated": touched, "requested": Figure(found.requested, "all accesses, on the emulator")}


def _counted(seen: Seen, name: str) -> Figure:
    """Return the figure by the record's counters or another record's, if that launched what today's plan launches."""
    for one in filter(None, (seen.result, seen.counted)):
        found = dram_bytes(one) if name == "dram_bytes" else value(one, name)
        launched = value(one, "launches")
        if found is None:
            continue
        if launched is not None and launched != seen.plan.launches:
            return absent(f"counted in {launched:.0f} launches, today's plan makes {seen.plan.launches}")
        return Figure(found, f"counters of {one.profile.get('tool', 'a profiler')}")
    known = seen.result or seen.counted
    return absent("no record holds counters of it; 'prism-bench profile' reads them" if known else seen.missing)


def _energy(seen: Seen) -> Figure:
    if seen.result is None:
        return absent(seen.missing)
    energies = [one.energy for one in seen.result.measurements if one.subject == "kernel" and one.energy]
    known = next((one for one in energies if one.joules is not None), None)
    if known:
        return Figure(known.joules, "the board's counter over a hot replay")
    alone = "energy is reported for launches that are long enough to count alone"
    return absent(next((one.reason for one in energies), alone))


def _error(seen: Seen) -> Figure:
    if seen.result is None:
        return absent(seen.missing)
    errors = [number(check.get("max_relative")) for check in seen.result.verification]
    known = [error for error in errors if error is not None]
    if not known:
        return absent(seen.result.reason or "the record holds no verification of it")
    return Figure(max(known), "largest relative error against the float64 reference")
