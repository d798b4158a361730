"""Sampler of devices: a thread that reads them regularly, keeps the last readings, and measures its own cost."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from time import perf_counter, thread_time

from prism_bench.monitor.nvml import DeviceLost
from prism_bench.monitor.probe import Probe
from prism_bench.monitor.reading import DeviceReading
from prism_bench.monitor.window import COMPARED, evidence_in
from prism_bench.monitor.xid import XidWatch
from prism_bench.record.measurement import Evidence

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


class _WatchedDevice:
    """Device behind one probe: a bounded ring of its last readings, and why it is `lost`, where it is.

    Devices read one after the other under the same `lock`: a short window reads in its own thread. A lost one may be
    looked for again at the moment `retry` of the clock.
    """

    def __init__(self, probe: Probe, kept: int, lock: Lock, clock: Callable[[], float]) -> None:
        self.probe, self.ring = probe, deque[DeviceReading](maxlen=kept)
        self._lock, self._clock = lock, clock
        self.lost: str | None = None
        self.retry, self.cpu_seconds = 0.0, 0.0

    def take(self, read: Callable[[Probe, float], DeviceReading | None]) -> None:
        """Keep what `read` gives for the probe and this moment, unless the device is lost."""
        if self.lost:
            return
        if not self._lock.acquire(timeout=PATIENCE):
            self.lose(f"the driver did not answer within {PATIENCE:g} s")
            return
        spent = thread_time()
        try:
            found = read(self.probe, self._clock())
            if found:
                self.ring.append(found)
        except DeviceLost as error:
            self.lose(error)
        except Exception as error:  # whatever a driver in trouble makes of a call must not end a run
            self.lose(f"{type(error).__name__}: {error}")
        finally:
            self.cpu_seconds += thread_time() - spent
            self._lock.release()

    def lose(self, why: object) -> None:
        """Read the device no more, for that reason, until it is found again."""
        self.lost = f"lost at {datetime.now(UTC):%H:%M:%S} UTC: {why}"
        self.retry = self._clock() + _RETRY_SECONDS

    def between(self, begin: float, end: float) -> list[DeviceReading]:
        """Return the kept readings from that stretch of the clock."""
        return [reading for reading in list(self.ring) if begin <= reading.at <= end]


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
        kept, self._reading = max(2, round(hertz * kept_seconds)), Lock()
        self._devices = [_WatchedDevice(probe, kept, self._reading, clock) for probe in prepare()]
        self._ending, self._thread = Event(), Thread(target=self._work, name="prism-bench-sampler", daemon=True)
        self._beats, self._longest, self._started, self._stopped = 0, 0.0, clock(), None
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
        if any(device.lost and began >= device.retry for device in self._devices):
            self._look_again(began)
        for device in self._devices:
            device.take(lambda probe, now: probe.read(now))
        self._beats += 1
        self._last.append(thread_time() - spent)
        self._longest = max(self._longest, self._clock() - began)

    @property
    def probes(self) -> list[Probe]:
        """The probes of the devices, in the order of their places."""
        return [device.probe for device in self._devices]

    def latest(self, place: int = 0) -> DeviceReading | None:
        """Return the last reading of a device; None before the first."""
        ring = self._devices[place].ring
        return ring[-1] if ring else None

    def readings(self, begin: float, end: float, place: int = 0) -> list[DeviceReading]:
        """Return those kept from that stretch of the clock."""
        return self._devices[place].between(begin, end)

    def lost(self, place: int = 0) -> str | None:
        """Since when and why the device does not answer; None while it does."""
        return self._devices[place].lost

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
        read = sum(device.cpu_seconds for device in self._devices)
        return Cost(self._beats, ended - self._started, read + xids, self._longest, xids)

    def summary(self) -> dict:
        """Return what a run record keeps of the sampler: its beat and its cost."""
        cost = self.cost()
        return {
            "hertz": float(f"{cost.beats / cost.seconds:.3g}") if cost.seconds else None,
            "beats": cost.beats,
            "cpu_share": float(f"{cost.share:.3g}"),
            "longest_beat": float(f"{cost.longest:.3g}"),
            "lost": [device.lost for device in self._devices if device.lost],
        }

    @contextmanager
    def window(self, place: int = 0) -> Iterator[Watch]:
        """Yield a window whose evidence is in `.evidence` afterwards.

        What it compares with the state ahead of it is read when it opens, what no beat in it read when it closes.
        """
        device = self._devices[place]
        device.take(lambda probe, now: probe.completed(now, now - _FRESH, COMPARED))
        watch, begin, lost_before = Watch(), self._clock(), device.lost
        try:
            yield watch
        finally:
            watch.evidence = self._evidence(begin, device, lost_before)

    def _evidence(self, begin: float, device: _WatchedDevice, lost_before: str | None) -> Evidence:
        seconds = self._clock() - begin
        device.take(lambda probe, now: probe.completed(now, begin))
        end = self._clock()
        earlier = [reading for reading in list(device.ring) if reading.at < begin]
        xids = [number for whose, number in self.xids(begin, end) if whose == device.probe.device.uuid]
        before, lost = earlier[-1] if earlier else None, device.lost or lost_before
        return evidence_in(device.between(begin, end), before, seconds, xids=xids, lost=lost)

    def _work(self) -> None:
        due = self._clock()
        while not self._ending.is_set():
            self.beat()
            due = max(due + pace(self._last, self._period), self._clock())
            self._ending.wait(max(0.0, due - self._clock()))

    def _look_again(self, now: float) -> None:
        lost = [device for device in self._devices if device.lost]
        for device in lost:
            device.retry = now + _RETRY_SECONDS
        try:
            fresh = {probe.device.uuid: probe for probe in self._prepare()}
        except Exception:  # still no device; the reason why it was lost remains
            return
        for device in lost:
            if device.probe.device.uuid in fresh:
                device.probe, device.lost = fresh[device.probe.device.uuid], None


def pace(costs: deque[float], period: float) -> float:
    """Seconds to the next beat: the period, or more where beats of that cost (CPU seconds) would exceed the budget.

    The first beat reads everything, and some later ones more than others: two seconds' worth of them is waited for.
    """
    if len(costs) < (costs.maxlen or 1):
        return period
    return max(period, sum(costs) / len(costs) / BUDGET)
