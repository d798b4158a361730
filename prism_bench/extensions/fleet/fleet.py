"""A fleet while it is used: its workers, the GPU of each, and their jobs."""

import os
import platform
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from getpass import getuser
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import gettempdir
from typing import Any, TypedDict

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fleet.cluster import FleetSpec, connected, described
from prism_bench.io.files import lock, path_part
from prism_bench.monitor.nvml import VISIBLE, devices, visible
from prism_bench.monitor.nvml import opened as nvml_opened
from prism_bench.spec.case import Device

# Boards of a fleet: a worker and the GPU that is its own, and what must be the same on all of them.

SETTINGS: Mapping[str, tuple[str, str, float]] = {  # how a board is set, in words, with its unit
    "power_limit": ("power limit", "W", 1.0),
    "application_sm_clock": ("application SM clock", "MHz", 1e-6),
    "application_memory_clock": ("application memory clock", "MHz", 1e-6),
    "boost_sm_clock": ("highest SM clock that it may boost to", "MHz", 1e-6),
}
_KIND = ("device", "compute_capability", "sm_count", "memory_bytes")  # of the machine's facts: what is one series


@dataclass(frozen=True)
class SeenWorker:
    """A worker of the scheduler: its `address`, `host`, and the UUIDs of the GPUs that it sees."""

    address: str
    host: str
    name: str
    gpus: tuple[str, ...]
    cores: tuple[int, ...]


@dataclass(frozen=True)
class BoardClaim:
    """What one worker has for itself: a GPU by UUID (None without one), and cores of its host."""

    worker: SeenWorker
    gpu: str | None
    cores: tuple[int, ...]


@dataclass(frozen=True)
class FleetBoard:
    """A board that measures: its claim and what the backend reports there.

    `facts` are the backend's, `host` and `software` as in a record, `device` what launches may ask of it, `versions`
    everything that must be equal on all boards.
    """

    claim: BoardClaim
    facts: Mapping[str, Any]
    host: Mapping[str, Any]
    software: Mapping[str, Any]
    device: Device
    versions: Mapping[str, str]
    name: str | None = None  # of a board without a GPU: that of the worker that it had first

    @property
    def key(self) -> str:
        """The name of the board in the run: the GPU's UUID, without one the worker's."""
        return str(
            self.facts.get("uuid")
            or self.claim.gpu
            or self.name
            or f"{self.claim.worker.host}/{self.claim.worker.name}"
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """What makes its times a series: boards of another kind have another one."""
        return tuple(self.facts.get(name) for name in _KIND)

    @property
    def settings(self) -> dict[str, str]:
        """Its power limit and clocks as they are set, in words; what nothing could read is absent."""
        known: Mapping[str, Any] = self.facts.get("board", {})
        return {
            words: f"{known[name] * factor:.0f} {unit}"
            for name, (words, unit, factor) in SETTINGS.items()
            if name in known
        }

    @property
    def title(self) -> str:
        """Its short name for people: host and worker or the beginning of the UUID."""
        uuid = str(self.facts.get("uuid") or "").removeprefix("GPU-")[:8]
        return f"{self.claim.worker.host} {uuid or self.claim.worker.name}"


def claims(workers: Sequence[SeenWorker], needs_gpu: bool) -> tuple[list[BoardClaim], list[str]]:
    """Return a claim for each worker that gets an own GPU, and a remark on each that gets none.

    Each worker gets a GPU that it sees and no other has; the cores of a host are divided among its claims. A
    BackendUnavailable lists the workers that see no GPU where one is needed.
    """
    blind = [worker for worker in workers if needs_gpu and not worker.gpus]
    if blind:
        listed = ", ".join(f"{worker.host} ({worker.address})" for worker in blind)
        raise BackendUnavailable(f"no GPU on {listed}; stop these workers, or start them where NVML lists a GPU")
    taken: set[str] = set()
    pairs: list[tuple[SeenWorker, str | None]] = []
    remarks: list[str] = []
    for worker in workers:
        free = next((gpu for gpu in worker.gpus if gpu not in taken), None) if needs_gpu else None
        if needs_gpu and free is None:
            remarks.append(f"{worker.host} ({worker.address}) measures nothing: its GPUs are other workers' already")
            continue
        taken |= {free} if free else set()
        pairs.append((worker, free))
    return [BoardClaim(worker, gpu, _cores(worker, [one for one, _ in pairs])) for worker, gpu in pairs], remarks


def _cores(worker: SeenWorker, workers: Sequence[SeenWorker]) -> tuple[int, ...]:
    """Return the worker's share of its host's cores; all of them where there is less than one for each."""
    here = [one for one in workers if one.host == worker.host]
    share, place = len(worker.cores) // len(here), here.index(worker)
    return worker.cores[place * share : (place + 1) * share] if share else worker.cores


def of_one_kind(boards: Sequence[FleetBoard]) -> tuple[list[FleetBoard], list[str]]:
    """Return the boards of the kind that most are, the first such kind, and a remark on each other board."""
    kinds = [board.kind for board in boards]
    chosen = max(dict.fromkeys(kinds), key=kinds.count)
    others = [board for board in boards if board.kind != chosen]
    name = boards[kinds.index(chosen)].facts.get("device")
    remarks = [
        f"{board.title} is another kind ({board.facts.get('device')}, not {name}) and measures nothing: its times are "
        "another series; run it as another fleet"
        for board in others
    ]
    return [board for board in boards if board.kind == chosen], remarks


def set_alike(boards: Sequence[FleetBoard]) -> tuple[list[FleetBoard], list[str]]:
    """Return the boards that are set as most are, the first such setting, and a remark on each other board."""
    settings = [tuple(board.settings.items()) for board in boards]
    chosen = max(dict.fromkeys(settings), key=settings.count)
    remarks = [
        f"{board.title} is set differently and measures nothing: {differing(board.settings, dict(chosen))}; set it "
        "like the others with nvidia-smi as root, or run it as another fleet: its times are another series"
        for board, own in zip(boards, settings, strict=True)
        if own != chosen
    ]
    return [board for board, own in zip(boards, settings, strict=True) if own == chosen], remarks


def differing(own: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """Return in words the settings in which a board differs from what is usual."""
    names = [name for name in {**own, **usual} if own.get(name) != usual.get(name)]
    return ", ".join(f"{name} {own.get(name, 'unknown')}, not {usual.get(name, 'unknown')}" for name in names)


def require_equal(boards: Sequence[FleetBoard]) -> None:
    """Raise a UsageError with a list of everything in which the boards differ, by host."""
    differing = [line for name in _names(boards) if (line := _difference(name, boards))]
    if differing:
        raise UsageError("the workers of the fleet differ, so their times are no one run:\n  " + "\n  ".join(differing))


def _names(boards: Iterable[FleetBoard]) -> list[str]:
    return list(dict.fromkeys(name for board in boards for name in board.versions))


def _difference(name: str, boards: Sequence[FleetBoard]) -> str:
    values: dict[str, list[str]] = {}
    for board in boards:
        values.setdefault(board.versions.get(name, "absent"), []).append(board.title)
    if len(values) < 2:
        return ""
    return f"{name}: " + "; ".join(f"{value} on {', '.join(titles)}" for value, titles in values.items())


@dataclass(frozen=True)
class BoardBackend:
    """The backend of a fleet as its first board describes it: boards that measure together are alike."""

    name: str
    board: FleetBoard

    @property
    def device(self) -> Device:
        """What launches may ask of the device."""
        return self.board.device

    def facts(self) -> dict[str, Any]:
        """Return what the backend reports of the board."""
        return dict(self.board.facts)


# Jobs of a fleet's workers: one at a time on a GPU, in its cores, with events on the way and an end when asked.
#
# What measures is a child of the worker, so that a fault or a hang costs one case, and the worker stays as it was.

_TOPIC = "prism-bench-fleet"
_stopped: set[str] = set()  # names of runs that were ended: their jobs end at the next event


class JobOrder(TypedDict):
    """What a worker does: `call` is `module:function`, which gets the `work` and the job's channel.

    `run` is the name of the run and `number` that of the job in it; `gpu` and `cores` are the claim of the worker.
    """

    run: str
    number: int
    call: str
    gpu: str | None
    cores: list[int]
    work: dict[str, Any]


class JobStopped(Exception):
    """The run that the job belongs to was ended."""


class JobChannel:
    """Events from a job to the run; each call ends the job where the run was ended."""

    def __init__(self, order: JobOrder, write: Callable[[str, dict[str, Any]], object]) -> None:
        self._order, self._write = order, write

    def send(self, event: Mapping[str, Any]) -> None:
        """Send an event; JobStopped where nobody wants the job any more."""
        if self._order["run"] in _stopped:
            raise JobStopped(self._order["run"])
        self._write(f"{_TOPIC}-{self._order['run']}", {"number": self._order["number"], **event})


def _carry_out(order: JobOrder) -> None:
    """Carry the order out in this worker of the fleet; send what its function returns as `result`.

    Dask would keep a returned value in the worker, and who fetches it from a worker that was lost since waits for ever.
    """
    from distributed import get_worker

    module, _, name = order["call"].partition(":")
    channel = JobChannel(order, get_worker().log_event)
    with _alone_on(order["gpu"]), _within(order["cores"]):
        channel.send({"result": getattr(import_module(module), name)(order["work"], channel)})


def stop(run: str) -> None:
    """Let every job of the run end at its next event."""
    _stopped.add(run)


def look(dask_worker: Any) -> dict[str, Any]:
    """Return what this worker is and sees: host, GPUs in CUDA's order and cores."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = sorted(affinity(0)) if affinity else list(range(os.cpu_count() or 1))
    return {"host": platform.node(), "name": str(dask_worker.name), "gpus": _gpus(), "cores": cores}


def _gpus() -> list[str]:
    try:
        with nvml_opened() as nvml:
            return [device.uuid for device in visible(devices(nvml))]
    except BackendUnavailable:
        return []


@contextmanager
def _alone_on(gpu: str | None) -> Generator[None]:
    """Let children see this GPU alone, and wait until no other fleet of this user measures on it."""
    if gpu is None:
        yield
        return
    os.environ[VISIBLE] = gpu
    path = Path(gettempdir()) / f"prism-bench-{getuser()}-{path_part(gpu)}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _within(cores: list[int]) -> Generator[None]:
    """Let this thread, and the children that it starts, run on these cores alone."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before.intersection(cores) or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# A fleet while it is used: its workers, the jobs that they have, and the events that come from them.

LOOK_SECONDS = 0.5  # between two looks at which workers there are
_WAIT_SECONDS = 120  # for the first worker


@dataclass(frozen=True)
class JobMessage:
    """What arrived of a job: an `event` on the way, or that its `future` is over."""

    number: int
    event: dict[str, Any] = field(default_factory=dict[str, Any])
    future: Any = None


def is_loss(error: object) -> bool:
    """Return whether a job failed since its worker is gone: Dask's own errors, under any name, and cancelled jobs."""
    return isinstance(error, CancelledError) or type(error).__module__.partition(".")[0] in ("dask", "distributed")


def failure(future: Any) -> BaseException | None:
    """Return the error of a job that is over; a scheduler that is gone cannot hand it out, and that is the error."""
    try:
        return future.exception()
    except Exception as error:
        return error


class Fleet:
    """Workers of one scheduler, used by one run."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._messages: SimpleQueue[JobMessage] = SimpleQueue()
        self._numbers = 0
        with self._answering("the scheduler of the fleet takes no messages"):
            self._begin()

    def addresses(self) -> set[str]:
        """Return the addresses of the workers that the scheduler has now; BackendUnavailable where it is gone."""
        with self._answering("the scheduler of the fleet does not answer any more"):
            return set(self._client.nthreads())

    def wait(self) -> None:
        """Wait for the first worker; a BackendUnavailable where none comes."""
        with self._answering("the scheduler of the fleet was lost before it had a worker"):
            try:
                self._client.wait_for_workers(1, timeout=_WAIT_SECONDS)
            except TimeoutError:
                raise BackendUnavailable(
                    f"the scheduler has no worker after {_WAIT_SECONDS} s; start one for each GPU: "
                    "'dask worker ADDRESS --nthreads 1'"
                ) from None

    def seen(self, addresses: Sequence[str]) -> list[SeenWorker]:
        """Return what the workers at the addresses are and see, in the order of hosts and names."""
        with self._answering("the workers cannot be asked what they are"):
            found = self._client.run(look, workers=list(addresses), on_error="return")
        wrong = {address: one for address, one in found.items() if isinstance(one, BaseException)}
        if wrong:
            listed = "; ".join(f"{address}: {type(one).__name__}: {one}" for address, one in wrong.items())
            raise BackendUnavailable(f"workers that cannot run prism-bench: {listed}; install this version of it there")
        seen = [
            SeenWorker(address, one["host"], one["name"], tuple(one["gpus"]), tuple(one["cores"]))
            for address, one in found.items()
        ]
        return sorted(seen, key=lambda one: (one.host, len(one.name), one.name))

    def submit(self, claim: BoardClaim, call: str, work: dict[str, Any]) -> tuple[int, Any]:
        """Give a job to the worker of the claim; return its number and its future."""
        self._numbers += 1
        number = self._numbers
        order: JobOrder = {
            "run": self.run,
            "number": number,
            "call": call,
            "gpu": claim.gpu,
            "cores": list(claim.cores),
            "work": work,
        }
        with self._answering("the scheduler of the fleet takes no job any more"):
            future = self._client.submit(
                _carry_out,
                order,
                workers=[claim.worker.address],
                key=f"prism-bench-{self.run}-{number}",
                pure=False,
                retries=0,
            )
        future.add_done_callback(lambda done: self._messages.put(JobMessage(number, future=done)))
        return number, future

    def answers(
        self, claims: Sequence[BoardClaim], call: str, work: dict[str, Any]
    ) -> list[dict[str, Any] | BaseException]:
        """Give the same job to all workers; return what each answers, or how it failed."""
        numbers = [self.submit(claim, call, work) for claim in claims]
        found: dict[int, dict[str, Any] | BaseException] = {}
        aside: list[JobMessage] = []
        while len(found) < len(numbers):
            live = self.addresses()
            for (number, _), claim in zip(numbers, claims, strict=True):
                if claim.worker.address not in live:
                    found.setdefault(number, BackendUnavailable("the worker was lost"))
            for message in self.messages(LOOK_SECONDS):
                if message.number not in dict(numbers):
                    aside.append(message)
                elif "result" in message.event:
                    found.setdefault(message.number, message.event["result"])
                elif message.future is not None and not message.future.cancelled():
                    error = failure(message.future)
                    if error is not None:
                        found.setdefault(message.number, error)
        for message in aside:
            self._messages.put(message)
        for _, future in numbers:
            future.cancel()
        return [found[number] for number, _ in numbers]

    def messages(self, seconds: float) -> list[JobMessage]:
        """Return what has arrived, after waiting so many seconds for the first message."""
        found: list[JobMessage] = []
        try:
            found.append(self._messages.get(timeout=seconds))
            while True:
                found.append(self._messages.get_nowait())
        except Empty:
            return found

    def stop(self) -> None:
        """Let the jobs so far end at their next event; workers that are gone need not be asked."""
        with suppress(BackendUnavailable), self._answering("the fleet cannot be stopped"):  # gone: it has no jobs
            self._client.run(stop, self.run, on_error="ignore")
            self._begin()

    @contextmanager
    def _answering(self, words: str) -> Generator[None]:
        """Turn every error of the client into a BackendUnavailable with these words."""
        try:
            yield
        except BackendUnavailable:
            raise
        except Exception as error:
            raise BackendUnavailable(f"{words}: {described(error)}") from error

    def _begin(self) -> None:
        """Give the jobs from here on a name, by which they can be ended together."""
        self.run = uuid.uuid4().hex
        self._client.subscribe_topic(f"{_TOPIC}-{self.run}", self._take)

    def _take(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        self._messages.put(JobMessage(message["number"], event=message))


@contextmanager
def opened(spec: FleetSpec, needs_gpu: bool) -> Generator[Fleet]:
    """Yield the fleet, which has a worker at least."""
    with connected(spec, needs_gpu) as client:
        fleet = Fleet(client)
        fleet.wait()
        yield fleet
