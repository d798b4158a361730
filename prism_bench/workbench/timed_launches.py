"""Timed launches held against the verified one: a kernel that stops working once it is timed is wrong, and has no time.

Before each of them some places of the outputs are spoiled; now and then all is overwritten at random; scratch is as the
last launch left it or as it was when the case was prepared; and sometimes an input differs in one bit. So no launch
knows what it will be asked. What differs afterwards from the verified launch is left to the reference and the kernel's
own tolerance.
"""

from collections.abc import Callable
from random import Random, SystemRandom
from statistics import median
from time import perf_counter

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.guard import StrayElement
from prism_bench.errors import VerificationFailed
from prism_bench.kernel import InOut
from prism_bench.measurement import Sample
from prism_bench.metric import MEASURED
from prism_bench.units import time_text
from prism_bench.workbench.verification import compare_outputs

FIRST_WHOLE, BETWEEN_WHOLE = (1, 5), (6, 10)  # after how many samples all of the outputs is looked at, from and to
FRESH = 1 / 3  # the share of samples of one launch with an input that no launch has seen, and with cleared scratch
JUDGED = 2  # how often a kernel whose bits differ from launch to launch is compared with the reference in one series
SEEN_GAIN = 1.2  # a launch that is quicker by more where it knows its inputs keeps results
SEEN_SECONDS = 0.5e-6
LEAST_FRESH = 4


class TimedLaunchWrong(VerificationFailed):
    """A timed launch left what the verified one did not; `entry` says where, as records keep it."""

    def __init__(self, entry: dict):
        super().__init__(entry.get("error") or f"{entry['output']} is wrong")
        self.entry = entry


class TimedLaunches:
    """The launches of one prepared case that are timed; made when its outputs are those of a verified launch."""

    def __init__(self, backend: Backend, runnable: Runnable, seed: int, random: Random | None = None):
        self._backend, self.runnable, self._seed = backend, runnable, seed
        self.random = random or SystemRandom()
        self.seconds = 0.0  # what all of it took
        before = perf_counter()
        self.guard = runnable.guard(self.key())
        self._verified = self.guard.digests() if self.guard else {}
        self.repeatable = True
        self.in_place = any(isinstance(array, InOut) for array in runnable.case.spec.inputs)
        self.seconds += perf_counter() - before

    def watched(self, metric: str, once: Callable[[], Sample]) -> "WatchedTimer":
        """The timer of `metric` with every launch that it times looked at."""
        return WatchedTimer(self, metric, once)

    def key(self) -> int:
        """A random number that nobody can foresee."""
        return self.random.getrandbits(63)

    def judge_whole(self, metric: str, sample: int) -> bool:
        """Whether all outputs are bit for bit those of the verified launch; TimedLaunchWrong where they are wrong."""
        if self.guard.digests() == self._verified:
            return True
        self._judge(metric, sample)
        return False

    def judge_strays(self, metric: str) -> None:
        """TimedLaunchWrong where something that timed launches left is wrong by the reference and the tolerance."""
        strays = self.guard.strays()
        if not strays:
            return
        self.runnable.restore()
        self.runnable()
        self._plant(strays)
        self._judge(metric, min(stray.sample for stray in strays))

    def _plant(self, strays: list[StrayElement]) -> None:
        """Put what launches left into the outputs, so that it is judged as an output is."""
        arrays = self.runnable.arrays(dict.fromkeys(stray.name for stray in strays))
        for stray in strays:
            array = arrays[stray.name]
            size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
            array.reshape(-1).view(f"u{size}")[stray.index] = np.uint64(stray.bits).astype(f"u{size}")

    def _judge(self, metric: str, sample: int) -> None:
        """By the reference; what passes is right all the same, and the kernel not bitwise repeatable."""
        case = self.runnable.case
        outputs = self.runnable.arrays([output.name for output in case.spec.outputs])
        for entry in compare_outputs(self._backend, case, self.runnable.inputs, outputs, self._seed):
            if not entry["passed"]:
                raise TimedLaunchWrong(entry | {"metric": metric, "sample": sample})
        self.repeatable = False


class WatchedTimer:
    """One series of samples; `finish` when it is over."""

    def __init__(self, launches: TimedLaunches, metric: str, once: Callable[[], Sample]):
        self._launches, self._metric, self._once = launches, metric, once
        self._guard, self._random = launches.guard, launches.random
        self._number, self._judged = 0, 0
        self._next_whole = self._random.randint(*FIRST_WHOLE)
        self._chained = metric == "hot_time" and launches.in_place  # each launch works on what the last one left
        self._times: dict[bool, list[float]] = {True: [], False: []}

    def __call__(self) -> Sample:
        if self._guard is None or self._chained:
            return self._once()
        self._number += 1
        whole, key = self._number == self._next_whole, self._launches.key()
        before = perf_counter()
        fresh = not whole and self._metric != "hot_time" and self._random.random() < FRESH
        nudged = self._prepare(key, whole, fresh)
        between = perf_counter()
        sample = self._once()
        after = perf_counter()
        self._look(key, whole, nudged)
        self._launches.seconds += between - before + perf_counter() - after
        self._times[fresh].append(sample.seconds)
        return sample

    def finish(self) -> str | None:
        """Why the times cannot be trusted, or None; TimedLaunchWrong where a launch was wrong."""
        if self._guard is None or self._chained:
            return None
        before = perf_counter()
        self._launches.judge_strays(self._metric)
        self._launches.seconds += perf_counter() - before
        return self._keeps_results()

    def _prepare(self, key, whole, fresh):
        """Spoil what the launch has to write; whether an input was changed."""
        if self._metric not in ("cold_time", "hot_time"):  # the cold timer does it for itself
            self._launches.runnable.restore()
        if whole:
            self._guard.overwrite(key)
            return False
        self._guard.spoil(key)
        if fresh:
            self._guard.clear_scratch()
        return fresh and self._guard.nudge(key)

    def _look(self, key, whole, nudged):
        if nudged:
            self._guard.mend()
        if not whole:
            self._guard.compare(self._number, key, rewritten=nudged or not self._launches.repeatable)
            return
        if not self._launches.judge_whole(self._metric, self._number):
            self._judged += 1
        again = self._judged < JUDGED
        self._next_whole = self._number + self._random.randint(*BETWEEN_WHOLE) if again else 0

    def _keeps_results(self):
        """Every launch that had to begin anew took longer than the usual one: the kernel knows what it has seen."""
        new, seen = self._times[True], self._times[False]
        if MEASURED[self._metric].clock != "events" or len(new) < LEAST_FRESH or len(seen) < LEAST_FRESH:
            return None
        usual = median(seen)
        if min(new) <= usual * SEEN_GAIN + SEEN_SECONDS:
            return None
        return (
            f"it keeps results: a launch on inputs that it has seen takes {time_text(usual)}, "
            f"one on inputs that differ in one bit, with cleared scratch, {time_text(median(new))}"
        )
