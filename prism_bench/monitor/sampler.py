"""Sampler of devices in a thread, the evidence of a window, and the rules that judge it."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from threading import Event, Lock, Thread
from time import perf_counter, thread_time

from prism_bench.errors import BackendUnavailable
from prism_bench.monitor import nvml
from prism_bench.monitor.nvml import DeviceLost, NvmlDevice, close, library
from prism_bench.monitor.probe import HARMFUL, DeviceReading, Probe, XidWatch, family, reasons_in
from prism_bench.record.measurement import CLOCK_SHARE, Evidence
from prism_bench.units import rate_text, share_text

# Evidence of a window.

_SPANS = ("sm_clock", "memory_clock", "power", "power_average", "temperature", "utilization")
_THROTTLED = {"power_throttled": "power", "thermal_throttled": "thermal", "board_throttled": "board"}
_ERRORS = {"ecc_uncorrected": "uncorrected memory error", "ecc_corrected": "corrected memory error"}
# Quantities that a window compares with the state before it, and therefore reads when it opens.
_COMPARED = (*_THROTTLED, *_ERRORS, "processes")


def evidence_in(
    readings: Sequence[DeviceReading],
    before: DeviceReading | None,
    seconds: float,
    *,
    xids: Iterable[int] = (),
    lost: str | None = None,
) -> Evidence:
    """Return the evidence of a window of `seconds`; `before` is the last reading before it, for counters.

    `xids` are the Xids in the window; `lost` is the reason if the device does not answer, with the time.
    """
    spans = {name: span for name in _SPANS if (span := _span(readings, name))}
    if "power" in spans:
        spans.pop("power_average", None)
    others = [process for reading in readings for process in reading.processes or () if process.ours is False]
    chain = [before, *readings] if before else list(readings)
    # A reason's share of the readings; a clock at its highest has no reason.
    known = [reading for reading in readings if "clock_reasons" in reading.values]
    counts = Counter(reason for reading in known for reason in reasons_in(reading.values["clock_reasons"]))
    return Evidence(
        seconds=seconds,
        readings=len(readings),
        spans=spans,
        reasons={reason: count / len(known) for reason, count in counts.items()},
        throttled={word: grown for name, word in _THROTTLED.items() if (grown := _growth(chain, name)) > 0},
        neighbours=tuple(dict.fromkeys(map(str, others))),
        busy_neighbours=any(process.busy is not False for process in others),  # unknown counts as busy
        events=(*(f"Xid {number}" for number in xids), *_memory_errors(chain)),
        missing=_missing(readings, spans),
        lost=lost,
    )


def _span(readings: Sequence[DeviceReading], name: str) -> tuple[float, float, float] | None:
    values = [reading.values[name] for reading in readings if name in reading.values]
    return (min(values), float(median(values)), max(values)) if values else None


def _growth(chain: Sequence[DeviceReading], name: str) -> float:
    values = [reading.values[name] for reading in chain if name in reading.values]
    return values[-1] - values[0] if len(values) > 1 else 0.0


def _memory_errors(chain: Sequence[DeviceReading]) -> Iterator[str]:
    for name, error in _ERRORS.items():
        grown = _growth(chain, name)
        if grown > 0:
            yield f"{grown:.0f} {error}{'s' if grown > 1 else ''}"


def _missing(readings: Sequence[DeviceReading], spans: Mapping[str, object]) -> dict[str, str]:
    if not readings:
        return {"readings": "none fell into the window"}
    missing = {}
    for reading in readings:
        missing |= {name: reason for name, reason in reading.missing.items() if name in (*_SPANS, "clock_reasons")}
        missing |= {"neighbours": reading.missing["processes"]} if "processes" in reading.missing else {}
    known = {*spans, *(["power_average"] if "power" in spans else [])}
    return {name: reason for name, reason in missing.items() if name not in known}


# The sampler.

HERTZ = 20.0
_KEPT_SECONDS = 120.0
PATIENCE = 2.0  # seconds for a call that hangs in the driver; then its thread is left behind
_BUDGET = 0.01  # of one core: calls and beats that would cost more come less often
_RETRY_SECONDS = 1.0
_FRESH = 0.2  # seconds: a reading no older than this when a window opens is its beginning
_PACED_SECONDS = 2.0  # of beats, over which their cost is averaged


@dataclass(frozen=True)
class Cost:
    """Cost of `beats` beats in `seconds`: `cpu_seconds` of one core, and the `longest` beat in wall seconds.

    The CPU seconds include the readings at the ends of windows and the `xid_seconds` of the thread that waits for Xids.
    """

    beats: int
    seconds: float
    cpu_seconds: float
    longest: float
    xid_seconds: float = 0.0

    @property
    def share(self) -> float:
        """Return the share of one core."""
        return self.cpu_seconds / self.seconds if self.seconds else 0.0


class Watch:
    """A window, which has `evidence` after it closed."""

    evidence: Evidence | None = None


class _WatchedDevice:
    """Device behind one probe: a bounded ring of its last readings, and the reason if it is `lost`.

    All devices share one `lock`, because a short window reads in its own thread. A lost device is looked for again at
    the time `retry` of the clock.
    """

    def __init__(self, probe: Probe, kept: int, lock: Lock, clock: Callable[[], float]) -> None:
        self.probe, self.ring = probe, deque[DeviceReading](maxlen=kept)
        self._lock, self._clock = lock, clock
        self.lost: str | None = None
        self.retry, self.cpu_seconds = 0.0, 0.0

    def take(self, read: Callable[[Probe, float], DeviceReading | None]) -> None:
        """Keep the result of `read` for the probe and this moment, unless the device is lost."""
        if self.lost:
            return
        if not self._lock.acquire(timeout=PATIENCE):
            self.lose(f"the driver did not answer within {PATIENCE:g} s")
            return
        spent = thread_time()
        try:
            reading = read(self.probe, self._clock())
            if reading:
                self.ring.append(reading)
        except DeviceLost as error:
            self.lose(error)
        except Exception as error:  # no error of a driver in trouble may end a run
            self.lose(f"{type(error).__name__}: {error}")
        finally:
            self.cpu_seconds += thread_time() - spent
            self._lock.release()

    def lose(self, why: object) -> None:
        """Stop reading the device, for that reason, until it is found again."""
        self.lost = f"lost at {datetime.now(UTC):%H:%M:%S} UTC: {why}"
        self.retry = self._clock() + _RETRY_SECONDS

    def between(self, begin: float, end: float) -> list[DeviceReading]:
        """Return the kept readings between two times of the clock."""
        return [reading for reading in list(self.ring) if begin <= reading.at <= end]


class Sampler:
    """A bounded ring of readings per probe, filled `hertz` times a second inside a `with` block; measures its own cost.

    `prepare` returns new probes after a device was lost, as a restarted driver requires; it raises while there is
    nothing to read. Errors are not raised: `lost` has the reason.
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
        """Read every device that answers; look for lost devices once a second."""
        began, spent = self._clock(), thread_time()
        if any(device.lost and began >= device.retry for device in self._devices):
            self._look_for_lost(began)
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
        """Return the last reading of a device; None before the first reading."""
        ring = self._devices[place].ring
        return ring[-1] if ring else None

    def readings(self, begin: float, end: float, place: int = 0) -> list[DeviceReading]:
        """Return the kept readings of a device between two times of the clock."""
        return self._devices[place].between(begin, end)

    def lost(self, place: int = 0) -> str | None:
        """Return since when and why the device does not answer; None while it does."""
        return self._devices[place].lost

    def xids(self, begin: float, end: float) -> list[tuple[str, int]]:
        """Return (UUID, Xid) of the events between two times of the clock."""
        return self._xids.between(begin, end) if self._xids else []

    @property
    def xids_missing(self) -> str | None:
        """Return why Xids are not reported; None if they are."""
        return self._xids.missing if self._xids else "a single look waits for no events"

    @property
    def beats_by_itself(self) -> bool:
        """Return whether the thread was started; without it, readings are made only by `beat`."""
        return self._thread.ident is not None

    def cost(self) -> Cost:
        """Return the sampler's cost so far."""
        ended = self._stopped if self._stopped is not None else self._clock()
        xids = self._xids.cpu_seconds if self._xids else 0.0
        read = sum(device.cpu_seconds for device in self._devices)
        return Cost(self._beats, ended - self._started, read + xids, self._longest, xids)

    def summary(self) -> dict:
        """Return the sampler's entry in a run record: its beat and its cost."""
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
        """Yield a window whose evidence is in `.evidence` after the block.

        Opening reads the quantities that are compared with the state before the window; closing reads those that no
        beat in the window has read.
        """
        device = self._devices[place]
        device.take(lambda probe, now: probe.completed(now, now - _FRESH, _COMPARED))
        watch, begin, lost_before = Watch(), self._clock(), device.lost
        try:
            yield watch
        finally:
            seconds = self._clock() - begin
            device.take(lambda probe, now: probe.completed(now, begin))
            end = self._clock()
            earlier = [reading for reading in list(device.ring) if reading.at < begin]
            xids = [number for uuid, number in self.xids(begin, end) if uuid == device.probe.device.uuid]
            before, lost = earlier[-1] if earlier else None, device.lost or lost_before
            watch.evidence = evidence_in(device.between(begin, end), before, seconds, xids=xids, lost=lost)

    def _work(self) -> None:
        due = self._clock()
        while not self._ending.is_set():
            self.beat()
            due = max(due + pace(self._last, self._period), self._clock())
            self._ending.wait(max(0.0, due - self._clock()))

    def _look_for_lost(self, now: float) -> None:
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
    """Return the seconds to the next beat: the period, or more if beats of that cost (CPU s) would exceed the budget.

    Beats differ, since the first reads everything, so the cost is averaged over two seconds of beats.
    """
    if len(costs) < (costs.maxlen or 1):
        return period
    return max(period, sum(costs) / len(costs) / _BUDGET)


# Opening a sampler.

_UNHURRIED = 2.0  # hertz: a beat no faster than this reads everything


class Blind:
    """Substitute for a sampler if there is nothing to watch: the evidence of every window is the reason, if any."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        self.probes: list[Probe] = []

    def summary(self) -> dict:
        """Return the entry in a run record, as `Sampler.summary` does."""
        return {"missing": self.reason or "nobody watched"}

    @contextmanager
    def window(self) -> Iterator[Watch]:
        """Yield a window, as `Sampler.window` does."""
        watch, begin = Watch(), perf_counter()
        try:
            yield watch
        finally:
            if self.reason:
                watch.evidence = Evidence(perf_counter() - begin, 0, missing={"readings": self.reason})


@contextmanager
def watched(uuid: str | None, hertz: float = HERTZ) -> Iterator[Sampler | Blind]:
    """Yield a sampler of the device with that UUID, for a measuring process.

    It reads the quantities that evidence needs and makes no call that blocks. Without a UUID, or at 0 hertz, it is
    blind.
    """
    if not uuid or not hertz:
        yield Blind()
        return

    def choose(devices: list[NvmlDevice]) -> list[NvmlDevice]:
        device = nvml.by_uuid(devices, uuid)
        if device is None:
            raise BackendUnavailable(f"NVML lists no device {uuid}; its measurements carry no evidence")
        return [device]

    with ExitStack() as stack:
        try:
            sampler = stack.enter_context(sampling(choose, hertz=hertz, full=False))
        except BackendUnavailable as error:
            sampler = Blind(str(error))
        yield sampler


@contextmanager
def sampling(
    choose: Callable[[list[NvmlDevice]], Sequence[NvmlDevice]], *, hertz: float, full: bool, threaded: bool = True
) -> Iterator[Sampler]:
    """Yield a sampler of the devices that `choose` picks from all; raise BackendUnavailable if NVML cannot be opened.

    With `threaded` it reads regularly in a thread, else whenever `beat` is called.
    """
    pynvml = library()
    ours, budget = family(), _BUDGET if threaded and hertz > _UNHURRIED else None

    def prepare() -> list[Probe]:
        try:
            devices = nvml.devices(pynvml)
        except BackendUnavailable:  # the driver was restarted: open the library again
            close(pynvml)
            pynvml.nvmlInit()
            devices = nvml.devices(pynvml)
        return [Probe(pynvml, device, ours=ours, full=full, budget=budget) for device in choose(devices)]

    try:
        xids = XidWatch(pynvml, list(choose(nvml.devices(pynvml)))) if threaded else None
        sampler = Sampler(prepare, hertz=hertz, xids=xids)
        with sampler if threaded else nullcontext():
            yield sampler
    finally:
        close(pynvml)


# Rules that decide from evidence whether a measurement is valid.


@dataclass(frozen=True)
class Rules:
    """Conditions that make a measurement invalid, and limits of its repetition.

    An active power limit is reported and does not count as throttling: a board under load runs that way, the same in
    every run. A clock below `clock_share` of the session's best does count, whatever its cause. A case is measured
    again up to `repeats` times after a `rest` in seconds, until a process has spent `patience` seconds on repetitions.
    """

    clock_share: float = CLOCK_SHARE
    repeats: int = 2
    rest: float = 0.5
    patience: float = 60.0

    def doubts(self, evidence: Evidence, best_clock: float | None = None) -> tuple[str, ...]:
        """Return the reasons why a measurement with this evidence is invalid; an empty tuple if it is valid.

        `best_clock` is the highest SM clock of the session in hertz, for measurements whose clock counts.
        """
        reasons = []
        throughout = [reason for reason in HARMFUL if evidence.reasons.get(reason, 0.0) >= 1.0]
        if throughout:
            reasons.append(f"throttled throughout: {', '.join(throughout)}")
        highest = evidence.highest("sm_clock")
        if best_clock and highest and highest < self.clock_share * best_clock:
            reasons.append(
                f"the SM clock was {rate_text(highest, 'Hz')} at most, below {share_text(self.clock_share)} of this "
                f"session's best, {rate_text(best_clock, 'Hz')}"
            )
        if evidence.busy_neighbours:
            reasons.append(f"another process worked on the GPU: {', '.join(evidence.neighbours)}")
        # An error that ECC corrected changes no value and takes hardly any time; other events can change both.
        grave = [event for event in evidence.events if " corrected " not in event]
        if grave:
            reasons.append(f"{', '.join(grave)} during the measurement")
        return tuple(reasons)


def remarks(evidence: Evidence) -> Iterator[str]:
    """Yield notes on the evidence that do not make the measurement invalid."""
    if evidence.lost:
        yield f"evidence {evidence.lost}"
    if evidence.neighbours and not evidence.busy_neighbours:
        yield f"idle on the same GPU: {', '.join(evidence.neighbours)}"
    for event in evidence.events:
        if " corrected " in event:
            yield event
