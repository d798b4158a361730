"""Device watcher: samples clocks, power and other processes during a measurement and repeats disturbed ones."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from time import perf_counter, sleep
from typing import Any

from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import ClockGate
from prism_bench.monitor import Blind, Rules, Sampler, energy_per_launch, remarks
from prism_bench.monitor.nvml import DeviceLost
from prism_bench.record.measurement import Energy, Evidence, Measurement
from prism_bench.spec.metric import MEASURED
from prism_bench.units import time_text

LONGEST_REPLAY = 0.05  # seconds; three of them are enqueued when the counter is first read
# What the host spends does not depend on the device's clock.
_OF_THE_HOST = ("launch_time",)


class DeviceWatcher:
    """Watches the device for one process: `gate` knows the fastest clock of the samples, the sampler the rest."""

    def __init__(
        self, sampler: Sampler | Blind | None = None, rules: Rules | None = None,
        *, pause: Callable[[float], None] = sleep, clock: Callable[[], float] = perf_counter,
    ) -> None:  # fmt: skip
        self._sampler, self._rules = sampler or Blind(), rules or Rules()
        self._pause, self._clock, self._spent = pause, clock, 0.0
        self.gate = ClockGate(self._rules.clock_share, pause=pause)
        self._best = 0.0

    def watched(self, measure: Callable[[], list[Measurement]]) -> list[Measurement]:
        """Return what `measure` returns, with its evidence; measure again, within the rules' limits, while in doubt.

        What stays in doubt is invalid and has the reason. A note names the reason of each earlier measurement.
        """
        found, before = self._once(measure), []
        while self._again(found, len(before)):
            before.append(next(one.reason for one in found if one.samples and not one.valid))
            began = self._clock()
            self._pause(self._rules.rest)
            found = self._once(measure)
            self._spent += self._clock() - began
        notes = tuple(f"measured again, because {reason}" for reason in before)
        return [replace(one, notes=(*one.notes, *notes)) for one in found]

    def energy(self, once: Any) -> Energy | None:
        """Return the energy of one launch of a hot timer that can repeat it; None without a sampler."""
        if not self._sampler.probes or not hasattr(once, "repeated"):
            return None
        probe = self._sampler.probes[0]
        if probe.device.is_slice:
            return Energy(reason="the energy counter is the whole GPU's, and this is a slice of it")
        if once.replay_seconds > LONGEST_REPLAY:
            replay = time_text(once.replay_seconds)
            return Energy(reason=f"a replay of its graph takes {replay}, longer than a step of the energy counter")
        try:
            with closing(once.repeated()) as replays:
                return energy_per_launch(replays, probe.energy)
        except DeviceLost as error:
            return Energy(reason=f"lost: {error}")
        except MeasurementInvalid as error:
            return Energy(reason=str(error))

    def _once(self, measure: Callable[[], list[Measurement]]) -> list[Measurement]:
        with self._sampler.window() as window:
            found = measure()
        seen = window.evidence
        if seen is None:
            return found
        self._best = max(self._best, seen.highest("sm_clock") or 0.0)
        return [self._judged(one, seen) for one in found]

    def _judged(self, one: Measurement, seen: Evidence) -> Measurement:
        one = replace(one, evidence=(seen,), notes=(*one.notes, *remarks(seen)))
        if not one.valid or one.metric in _OF_THE_HOST:
            return one
        # Samples that carry their own clock were judged by it, one by one; the driver's clock judges the others.
        of_the_clock = MEASURED[one.metric].clock in ("events", "graph") and not one.clocks
        doubts = self._rules.doubts(seen, self._best if of_the_clock else None)
        return replace(one, valid=False, reason="; ".join(doubts)) if doubts else one

    def _again(self, found: list[Measurement], times: int) -> bool:
        doubtful = any(one.samples and not one.valid for one in found)
        return doubtful and times < self._rules.repeats and self._spent < self._rules.patience
