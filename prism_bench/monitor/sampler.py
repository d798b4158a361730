"""Sampler of devices in a thread, the evidence of a window, and the rules that decide from it."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from threading import Event, Lock, Thread
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any

from prism_bench.errors import BackendUnavailable
from prism_bench.monitor import nvml as listing
from prism_bench.monitor.nvml import DeviceLost, NvmlDevice, close, library
from prism_bench.monitor.probe import HARMFUL, DeviceReading, Probe, XidWatch, family, reasons_in
from prism_bench.record.measurement import CLOCK_SHARE, Energy, Evidence
from prism_bench.units import rate_text, share_text

# From the readings that fell into a window to its evidence.

_SPANS = ("sm_clock", "memory_clock", "power", "power_average", "temperature", "utilization")
_THROTTLED = {"power_throttled": "power", "thermal_throttled": "thermal", "board_throttled": "board"}
_ERRORS = {"ecc_uncorrected": "uncorrected memory error", "ecc_corrected": "corrected memory error"}
# What a window compares with the state ahead of it, and therefore wants read when it opens.
_COMPARED = (*_THROTTLED, *_ERRORS, "processes")


def evidence_in(
    readings: Sequence[DeviceReading],
    before: DeviceReading | None,
    seconds: float,
    *,
    xids: Iterable[int] = (),
    lost: str | None = None,
) -> Evidence:
    """Return the evidence of a window of `seconds`; `before` is the last reading ahead of it, for counters.

    `xids` are the Xids that fell into it; `lost` has the time since which the device does not answer.
    """
    spans = {name: span for name in _SPANS if (span := _span(readings, name))}
    if "power" in spans:
        spans.pop("power_average", None)
    neighbours, busy = _neighbours(readings)
    chain = [before, *readings] if before else list(readings)
    return Evidence(
        seconds=seconds,
        readings=len(readings),
        spans=spans,
        reasons=_reasons(readings),
        throttled={word: grown for name, word in _THROTTLED.items() if (grown := _growth(chain, name)) > 0},
        neighbours=neighbours,
        busy_neighbours=busy,
        events=(*(f"Xid {number}" for number in xids), *_memory_errors(chain)),
        missing=_missing(readings, spans),
        lost=lost,
    )


def _span(readings: Sequence[DeviceReading], name: str) -> tuple[float, float, float] | None:
    values = [reading.values[name] for reading in readings if name in reading.values]
    return (min(values), float(median(values)), max(values)) if values else None


def _reasons(readings: Sequence[DeviceReading]) -> dict[str, float]:
    """Return the share of the readings in which each reason was given; a clock at its highest has none."""
    known = [reading for reading in readings if "clock_reasons" in reading.values]
    counts = Counter(word for reading in known for word in reasons_in(reading.values["clock_reasons"]))
    return {word: count / len(known) for word, count in counts.items()}


def _neighbours(readings: Sequence[DeviceReading]) -> tuple[tuple[str, ...], bool]:
    """Other processes, and whether one of them worked; who does not say is taken to work."""
    others = [process for reading in readings for process in reading.processes or () if process.ours is False]
    return tuple(dict.fromkeys(map(str, others))), any(process.busy is not False for process in others)


def _growth(chain: Sequence[DeviceReading], name: str) -> float:
    values = [reading.values[name] for reading in chain if name in reading.values]
    return values[-1] - values[0] if len(values) > 1 else 0.0


def _memory_errors(chain: Sequence[DeviceReading]) -> Iterator[str]:
    for name, words in _ERRORS.items():
        grown = _growth(chain, name)
        if grown > 0:
            yield f"{grown:.0f} {words}{'s' if grown > 1 else ''}"


def _missing(readings: Sequence[DeviceReading], spans: Mapping[str, object]) -> dict[str, str]:
    if not readings:
        return {"readings": "none fell into the window"}
    found = {}
    for reading in readings:
        found |= {name: reason for name, reason in reading.missing.items() if name in (*_SPANS, "clock_reasons")}
        found |= {"neighbours": reading.missing["processes"]} if "processes" in reading.missing else {}
    known = {*spans, *(["power_average"] if "power" in spans else [])}
    return {name: reason for name, reason in found.items() if name not in known}


# Sampler of devices: a thread that reads them regularly, keeps the last readings, and measures its own cost.

HERTZ = 20.0
_KEPT_SECONDS = 120.0
PATIENCE = 2.0  # seconds for a call that hangs in the driver; its thread is left behind then
_BUDGET = 0.01  # of one core: what would cost more comes less often
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
        kept_seconds: float = _KEPT_SECONDS,
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
        device.take(lambda probe, now: probe.completed(now, now - _FRESH, _COMPARED))
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
    return max(period, sum(costs) / len(costs) / _BUDGET)


# A sampler for a device, or its substitute where there is nothing to watch.

_UNHURRIED = 2.0  # hertz: so slow a beat reads everything, for somebody who looks at it


class Blind:
    """Substitute for a sampler: every window has the reason why nothing was seen, if there is one."""

    def __init__(self, reason: str | None = None) -> None:
        self._reason = reason
        self.probes: list[Probe] = []

    def summary(self) -> dict:
        """As `Sampler.summary`."""
        return {"missing": self._reason or "nobody watched"}

    @contextmanager
    def window(self) -> Iterator[Watch]:
        """As `Sampler.window`."""
        watch, begin = Watch(), perf_counter()
        try:
            yield watch
        finally:
            if self._reason:
                watch.evidence = Evidence(perf_counter() - begin, 0, missing={"readings": self._reason})


@contextmanager
def watched(uuid: str | None, hertz: float = HERTZ) -> Iterator[Sampler | Blind]:
    """Yield a sampler of the device with that UUID while the block runs, made for a measuring process.

    It reads what evidence needs, and nothing that blocks. Without a UUID, or at 0 hertz, nothing is seen.
    """
    if not uuid or not hertz:
        yield Blind()
        return
    with ExitStack() as stack:
        try:
            sampler = stack.enter_context(sampling(lambda found: [_found(found, uuid)], hertz=hertz, full=False))
        except BackendUnavailable as error:
            sampler = Blind(str(error))
        yield sampler


@contextmanager
def sampling(
    choose: Callable[[list[NvmlDevice]], Sequence[NvmlDevice]], *, hertz: float, full: bool, threaded: bool = True
) -> Iterator[Sampler]:
    """Yield a sampler of the devices that `choose` picks out of all; BackendUnavailable where NVML cannot be opened.

    With `threaded` it beats by itself, else when `beat` is called.
    """
    pynvml = library()
    try:
        xids = XidWatch(pynvml, list(choose(listing.devices(pynvml)))) if threaded else None
        prepare = _Preparing(pynvml, choose, full=full, budget=_BUDGET if threaded and hertz > _UNHURRIED else None)
        sampler = Sampler(prepare, hertz=hertz, xids=xids)
        with sampler if threaded else nullcontext():
            yield sampler
    finally:
        close(pynvml)


class _Preparing:
    """Probes of the chosen devices; by a library opened anew where the one that was open outlived its driver."""

    def __init__(
        self, pynvml: ModuleType, choose: Callable[[list[NvmlDevice]], Sequence[NvmlDevice]], **options: Any
    ) -> None:
        self._pynvml, self._choose, self._options, self._ours = pynvml, choose, options, family()

    def __call__(self) -> list[Probe]:
        try:
            found = listing.devices(self._pynvml)
        except BackendUnavailable:
            close(self._pynvml)
            self._pynvml.nvmlInit()
            found = listing.devices(self._pynvml)
        return [Probe(self._pynvml, one, ours=self._ours, **self._options) for one in self._choose(found)]


def _found(found: Sequence[NvmlDevice], uuid: str) -> NvmlDevice:
    device = listing.by_uuid(found, uuid)
    if device is None:
        raise BackendUnavailable(f"NVML lists no device {uuid}; its measurements carry no evidence")
    return device


# Rules that decide from evidence whether a measurement is worth keeping.


@dataclass(frozen=True)
class Rules:
    """What makes a measurement invalid, and how often it may be tried again.

    An active power limit is reported and does not count as throttling: a board that works hard runs that way, the
    same in every run. A clock below `clock_share` of the session's best does, whatever held it down. A case is measured
    again up to `repeats` times after a `rest` in seconds, as long as a process has not spent `patience` seconds so.
    """

    clock_share: float = CLOCK_SHARE
    repeats: int = 2
    rest: float = 0.5
    patience: float = 60.0

    def doubts(self, evidence: Evidence, best_clock: float | None = None) -> tuple[str, ...]:
        """Why what was measured meanwhile cannot be trusted; nothing where it can.

        `best_clock` is the highest SM clock of the session in hertz, for measurements whose clock counts.
        """
        return (
            *_throttled(evidence),
            *self._slow(evidence, best_clock),
            *_rules_neighbours(evidence),
            *_errors(evidence),
        )

    def _slow(self, evidence: Evidence, best: float | None) -> Iterator[str]:
        highest = evidence.highest("sm_clock")
        if best and highest and highest < self.clock_share * best:
            yield (
                f"the SM clock was {rate_text(highest, 'Hz')} at most, below {share_text(self.clock_share)} of this "
                f"session's best, {rate_text(best, 'Hz')}"
            )


def _throttled(evidence: Evidence) -> Iterator[str]:
    throughout = [word for word in HARMFUL if evidence.reasons.get(word, 0.0) >= 1.0]
    if throughout:
        yield f"throttled throughout: {', '.join(throughout)}"


def _rules_neighbours(evidence: Evidence) -> Iterator[str]:
    if evidence.busy_neighbours:
        yield f"another process worked on the GPU: {', '.join(evidence.neighbours)}"


def _errors(evidence: Evidence) -> Iterator[str]:
    """Yield what ECC corrected cost no value and hardly any time; the rest casts doubt on both."""
    grave = [event for event in evidence.events if " corrected " not in event]
    if grave:
        yield f"{', '.join(grave)} during the measurement"


def remarks(evidence: Evidence) -> Iterator[str]:
    """Yield what a reader should know although it makes nothing invalid."""
    if evidence.lost:
        yield f"evidence {evidence.lost}"
    if evidence.neighbours and not evidence.busy_neighbours:
        yield f"idle on the same GPU: {', '.join(evidence.neighbours)}"
    for event in evidence.events:
        if " corrected " in event:
            yield event


# Energy of one launch, by watching the driver's energy counter move while the kernel runs without a pause.
#
# The counter does not change for tens of milliseconds and then jumps, so a window is only worth its whole steps: it
# opens at one jump and closes at a later one, and the launches in it follow from the time between. The reported
# uncertainty is that of the counter. The sensor behind it is another matter: on some boards it looks only a quarter of
# the time (Z. Yang, K. Adamek, W. Armour, "Part-time power measurements", SC 2024).

_RESOLUTION = 1e-3  # joules: the counter is in millijoules


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
    share = gaps / window + _RESOLUTION / joules
    each = joules / launches
    return Energy(joules=each, uncertainty=each * share, window=window, launches=round(launches))


def _is_within(found: Energy, share: float) -> bool:
    """Return whether the uncertainty is at most that share of the energy."""
    if found.joules is None or found.uncertainty is None:
        return False
    return found.uncertainty <= share * found.joules
