"""Sampler of devices: a thread that reads them regularly, keeps the last readings, and measures its own cost."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from time import perf_counter, thread_time

from prism_bench.evidence import Evidence
from prism_bench.monitor.nvml import DeviceLost
from prism_bench.monitor.probe import Probe
from prism_bench.monitor.reading import DeviceReading
from prism_bench.monitor.window import COMPARED, evidence_in
from prism_bench.monitor.xid import XidWatch

HERTZ = 20.0
KEPT_SECONDS = 120.0
PATIENCE = 2.0  # seconds for a call that hangs in the driver; its thread is left behind then
BUDGET = 0.01  # of one core: what would cost more comes less often
_RETRY_SECONDS = 1.0
_FRESH = 0.2  # seconds: what is no older when a window opens is its beginning
_PACED_SECONDS = 2.0  # of beats, over which their cost is averaged


@dataclass(frozen=True)
class Cost:
    """What reading took of `seconds`: `cpu_seconds` of one core, over `beats` beats, the `longest` in wall seconds.

    What windows read at their ends is among the CPU seconds, and so are the `xid_seconds` of who waits for Xids.
    """

    beats: int
    seconds: float
    cpu_seconds: float
    longest: float
    xid_seconds: float = 0.0

    @property
    def share(self) -> float:
        """Of one core."""
        return self.cpu_seconds / self.seconds if self.seconds else 0.0


class Watch:
    """What happened to be known when a window closed."""

    evidence: Evidence | None = None


class Sampler:
    """A bounded ring of readings per probe, filled `hertz` times a second between `start` and `stop`.

    `prepare` gives the probes anew after a device was lost, as a driver that restarts wants it; it raises while there
    is nothing to read. Nothing that goes wrong here is raised: `lost` has the reason.
    """

    def __init__(
        self,
        prepare: Callable[[], Sequence[Probe]],
        *,
        hertz: float = HERTZ,
        kept_seconds: float = KEPT_SECONDS,
        xids: XidWatch | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._prepare, self._period, self._clock, self._xids = prepare, 1 / hertz, clock, xids
        self.probes = list(prepare())
        self._rings = [deque(maxlen=max(2, round(hertz * kept_seconds))) for _ in self.probes]
        self._reading = Lock()  # a short window reads in its own thread
        self._ending, self._thread = Event(), Thread(target=self._work, name="prism-bench-sampler", daemon=True)
        self._lost: list[str | None] = [None] * len(self.probes)
        self._retry = 0.0
        self._beats, self._cpu, self._longest, self._started, self._stopped = 0, 0.0, 0.0, clock(), None
        self._last: deque[float] = deque(maxlen=max(1, round(hertz * _PACED_SECONDS)))

    def __enter__(self) -> "Sampler":
        self._started = self._clock()
        if self._xids:
            self._xids.start()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        self._thread.join(PATIENCE)
        self._stopped = self._clock()
        if self._xids:
            self._xids.stop()

    def beat(self) -> None:
        """One reading of every device that answers; a lost one is looked for again once a second."""
        began, spent = self._clock(), thread_time()
        if any(self._lost) and began >= self._retry:
            self._look_again(began)
        for place in range(len(self.probes)):
            if not self._lost[place]:
                self._take(place, lambda probe, now: probe.read(now))
        self._beats += 1
        self._last.append(thread_time() - spent)
        self._longest = max(self._longest, self._clock() - began)

    def _take(self, place: int, read: Callable[[Probe, float], DeviceReading | None]) -> None:
        """Add what `read` gives for a probe and a moment; `lost` has the reason of a failure."""
        if not self._reading.acquire(timeout=PATIENCE):
            self._lose(place, f"the driver did not answer within {PATIENCE:g} s")
            return
        spent = thread_time()
        try:
            reading = read(self.probes[place], self._clock())
            if reading:
                self._rings[place].append(reading)
        except DeviceLost as error:
            self._lose(place, error)
        except Exception as error:  # whatever a driver in trouble makes of a call must not end a run
            self._lose(place, f"{type(error).__name__}: {error}")
        finally:
            self._cpu += thread_time() - spent
            self._reading.release()

    def latest(self, place: int = 0) -> DeviceReading | None:
        """Return the last reading of a device; None before the first."""
        ring = self._rings[place]
        return ring[-1] if ring else None

    def readings(self, begin: float, end: float, place: int = 0) -> list[DeviceReading]:
        """Those kept from that stretch of the clock."""
        return [reading for reading in list(self._rings[place]) if begin <= reading.at <= end]

    def lost(self, place: int = 0) -> str | None:
        """Since when and why the device does not answer; None while it does."""
        return self._lost[place]

    def xids(self, begin: float, end: float) -> list[tuple[str, int]]:
        """(UUID, Xid) of the events in that stretch."""
        return self._xids.between(begin, end) if self._xids else []

    @property
    def xids_missing(self) -> str | None:
        """Return why Xids are not reported; None if they are."""
        return self._xids.missing if self._xids else "a single look waits for no events"

    @property
    def beats_by_itself(self) -> bool:
        """Whether there is a steady beat, or only looks when somebody asks."""
        return self._thread.ident is not None

    def cost(self) -> Cost:
        """Return what the sampler has cost so far."""
        ended = self._stopped if self._stopped is not None else self._clock()
        xids = self._xids.cpu_seconds if self._xids else 0.0
        return Cost(self._beats, ended - self._started, self._cpu + xids, self._longest, xids)

    def told(self) -> dict:
        """Return what a run record keeps of the sampler: its beat and its cost."""
        cost = self.cost()
        return {
            "hertz": float(f"{cost.beats / cost.seconds:.3g}") if cost.seconds else None,
            "beats": cost.beats,
            "cpu_share": float(f"{cost.share:.3g}"),
            "longest_beat": float(f"{cost.longest:.3g}"),
            "lost": [one for one in self._lost if one],
        }

    @contextmanager
    def window(self, place: int = 0) -> Iterator[Watch]:
        """Yield a window whose evidence is in `.evidence` afterwards.

        What it compares with the state ahead of it is read when it opens, what no beat in it read when it closes.
        """
        if not self._lost[place]:
            self._take(place, lambda probe, now: probe.completed(now, now - _FRESH, COMPARED))
        watch, begin, lost_before = Watch(), self._clock(), self._lost[place]
        try:
            yield watch
        finally:
            watch.evidence = self._evidence(begin, place, lost_before)

    def _evidence(self, begin: float, place: int, lost_before: str | None) -> Evidence:
        seconds = self._clock() - begin
        if not self._lost[place]:
            self._take(place, lambda probe, now: probe.completed(now, begin))
        end = self._clock()
        readings = self.readings(begin, end, place)
        earlier = [reading for reading in list(self._rings[place]) if reading.at < begin]
        uuid = self.probes[place].device.uuid if place < len(self.probes) else ""
        xids = [number for whose, number in self.xids(begin, end) if whose == uuid]
        lost = self._lost[place] or lost_before
        return evidence_in(readings, earlier[-1] if earlier else None, seconds, xids=xids, lost=lost)

    def _work(self) -> None:
        due = self._clock()
        while not self._ending.is_set():
            self.beat()
            due = max(due + pace(self._last, self._period), self._clock())
            self._ending.wait(max(0.0, due - self._clock()))

    def _lose(self, place: int, why: object) -> None:
        self._lost[place] = f"lost at {datetime.now(UTC):%H:%M:%S} UTC: {why}"
        self._retry = self._clock() + _RETRY_SECONDS

    def _look_again(self, now: float) -> None:
        self._retry = now + _RETRY_SECONDS
        try:
            fresh = {probe.device.uuid: probe for probe in self._prepare()}
        except Exception:  # still no device; the reason why it was lost remains
            return
        for place, probe in enumerate(self.probes):
            if self._lost[place] and probe.device.uuid in fresh:
                self.probes[place], self._lost[place] = fresh[probe.device.uuid], None


def pace(costs: deque[float], period: float) -> float:
    """Seconds to the next beat: the period, or more where beats of that cost (CPU seconds) would exceed the budget.

    The first beat reads everything, and some later ones more than others: two seconds' worth of them is waited for.
    """
    if len(costs) < (costs.maxlen or 1):
        return period
    return max(period, sum(costs) / len(costs) / BUDGET)
