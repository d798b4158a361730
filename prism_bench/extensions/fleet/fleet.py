"""Fleet in use: its boards (a worker and its GPU each), their jobs, and messages from the jobs."""

import os
import platform
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
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
from prism_bench.run.pool import Progress
from prism_bench.spec.case import Device

SETTINGS: Mapping[str, tuple[str, str, float]] = {  # settings of a board: title, unit and factor
    "power_limit": ("power limit", "W", 1.0),
    "application_sm_clock": ("application SM clock", "MHz", 1e-6),
    "application_memory_clock": ("application memory clock", "MHz", 1e-6),
    "boost_sm_clock": ("highest SM clock that it may boost to", "MHz", 1e-6),
}
_KIND = ("device", "compute_capability", "sm_count", "memory_bytes")  # facts of the machine that define a series


@dataclass(frozen=True)
class SeenWorker:
    """Worker of the scheduler: its `address`, `host`, and the UUIDs of the GPUs that it sees."""

    address: str
    host: str
    name: str
    gpus: tuple[str, ...]
    cores: tuple[int, ...]


@dataclass(frozen=True)
class BoardClaim:
    """Exclusive resources of a worker: a GPU by UUID (None without a GPU), and cores of its host."""

    worker: SeenWorker
    gpu: str | None
    cores: tuple[int, ...]


@dataclass(frozen=True)
class FleetBoard:
    """Board that measures: its claim and the facts that the backend reports there.

    `host` and `software` are as in a record, `device` has the limits of launches, and `versions` must be equal on all
    boards.
    """

    claim: BoardClaim
    facts: Mapping[str, Any]
    host: Mapping[str, Any]
    software: Mapping[str, Any]
    device: Device
    versions: Mapping[str, str]
    name: str | None = None  # of a board without a GPU: the key with its original worker

    @property
    def key(self) -> str:
        """Name of the board in the run: the UUID of its GPU, else the worker's name."""
        return str(
            self.facts.get("uuid")
            or self.claim.gpu
            or self.name
            or f"{self.claim.worker.host}/{self.claim.worker.name}"
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """Facts that define a series of times: boards of another kind are another series."""
        return tuple(self.facts.get(name) for name in _KIND)

    @property
    def settings(self) -> dict[str, str]:
        """Power limit and clocks as texts by title; settings that cannot be read are absent."""
        known: Mapping[str, Any] = self.facts.get("board", {})
        return {
            title: f"{known[name] * factor:.0f} {unit}"
            for name, (title, unit, factor) in SETTINGS.items()
            if name in known
        }

    @property
    def title(self) -> str:
        """Short name for people: host, and worker or the beginning of the UUID."""
        uuid = str(self.facts.get("uuid") or "").removeprefix("GPU-")[:8]
        return f"{self.claim.worker.host} {uuid or self.claim.worker.name}"


def claims(workers: Sequence[SeenWorker], needs_gpu: bool) -> tuple[list[BoardClaim], list[str]]:
    """Return a claim for each worker that gets a GPU, and a remark on each worker that gets none.

    Each worker gets a GPU that it sees and no other worker has; the cores of a host are divided among its claims. A
    BackendUnavailable lists the workers that see no GPU if GPUs are needed.
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
    measuring = [worker for worker, _ in pairs]
    return [BoardClaim(worker, gpu, _cores(worker, measuring)) for worker, gpu in pairs], remarks


def _cores(worker: SeenWorker, workers: Sequence[SeenWorker]) -> tuple[int, ...]:
    """Return the worker's share of its host's cores, or all cores if there are fewer than workers."""
    here = [other for other in workers if other.host == worker.host]
    share, place = len(worker.cores) // len(here), here.index(worker)
    return worker.cores[place * share : (place + 1) * share] if share else worker.cores


def of_one_kind(boards: Sequence[FleetBoard]) -> tuple[list[FleetBoard], list[str]]:
    """Return the boards of the most frequent kind, the first of several, and a remark on each other board."""
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
    """Return the boards with the most frequent settings, the first of several, and a remark on each other board."""
    settings = [tuple(board.settings.items()) for board in boards]
    chosen = max(dict.fromkeys(settings), key=settings.count)
    remarks = [
        f"{board.title} is set differently and measures nothing: {differing(board.settings, dict(chosen))}; set it "
        "like the others with nvidia-smi as root, or run it as another fleet: its times are another series"
        for board, values in zip(boards, settings, strict=True)
        if values != chosen
    ]
    return [board for board, values in zip(boards, settings, strict=True) if values == chosen], remarks


def differing(settings: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """Return a text about the settings in which a board differs from the usual settings."""
    names = [name for name in {**settings, **usual} if settings.get(name) != usual.get(name)]
    return ", ".join(f"{name} {settings.get(name, 'unknown')}, not {usual.get(name, 'unknown')}" for name in names)


def require_equal(boards: Sequence[FleetBoard]) -> None:
    """Raise a UsageError with a list of all differences between the boards, by host."""
    lines: list[str] = []
    for name in dict.fromkeys(name for board in boards for name in board.versions):
        titles: dict[str, list[str]] = {}
        for board in boards:
            titles.setdefault(board.versions.get(name, "absent"), []).append(board.title)
        if len(titles) > 1:
            values = "; ".join(f"{value} on {', '.join(owners)}" for value, owners in titles.items())
            lines.append(f"{name}: {values}")
    if lines:
        raise UsageError("the workers of the fleet differ, so their times are no one run:\n  " + "\n  ".join(lines))


@dataclass(frozen=True)
class BoardBackend:
    """Backend of a fleet as its first board describes it: boards that measure together are alike."""

    name: str
    board: FleetBoard

    @property
    def device(self) -> Device:
        """Device with the limits of launches."""
        return self.board.device

    def facts(self) -> dict[str, Any]:
        """Return the facts that the backend reports about the board."""
        return dict(self.board.facts)


# Jobs in the workers: one at a time on a GPU, within the cores of its claim
#
# A child of the worker measures, so that a fault or a hang costs only one case and leaves the worker as it was.

_TOPIC = "prism-bench-fleet"
_stopped: set[str] = set()  # names of stopped runs: their jobs end at the next event


class JobOrder(TypedDict):
    """Order for a worker: `call` is `module:function`, which gets the `work` and the job's channel.

    `run` is the name of the run and `number` the job's number in it; `gpu` and `cores` are the claim of the worker.
    """

    run: str
    number: int
    call: str
    gpu: str | None
    cores: list[int]
    work: dict[str, Any]


class JobStopped(Exception):
    """End of a job whose run was stopped."""


class JobChannel:
    """Channel of events from a job to the run."""

    def __init__(self, order: JobOrder, write: Callable[[str, dict[str, Any]], object]) -> None:
        self._order, self._write = order, write

    def send(self, event: Mapping[str, Any]) -> None:
        """Send an event; raise JobStopped if the run was stopped."""
        if self._order["run"] in _stopped:
            raise JobStopped(self._order["run"])
        self._write(f"{_TOPIC}-{self._order['run']}", {"number": self._order["number"], **event})

    def report(self, progress: Progress) -> None:
        """Send the progress of the job."""
        self.send({"task": progress.task, "done": progress.done, "total": progress.total})


def _carry_out(order: JobOrder) -> None:
    """Carry out the order in this worker of the fleet; send the result of its function as the event `result`.

    Dask would keep a returned value in the worker, and fetching it from a lost worker waits for ever.
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
    """Return host, name, GPUs in CUDA's order, and cores of this worker."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = sorted(affinity(0)) if affinity else list(range(os.cpu_count() or 1))
    gpus: list[str] = []
    with suppress(BackendUnavailable), nvml_opened() as nvml:
        gpus = [device.uuid for device in visible(devices(nvml))]
    return {"host": platform.node(), "name": str(dask_worker.name), "gpus": gpus, "cores": cores}


@contextmanager
def _alone_on(gpu: str | None) -> Generator[None]:
    """Let children see only this GPU, and wait until no other fleet of this user measures on it."""
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
    """Let this thread, and the children that it starts, run only on these cores."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before.intersection(cores) or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# The fleet

LOOK_SECONDS = 0.5  # between two looks at the list of workers
_WAIT_SECONDS = 120  # for the first worker


@dataclass(frozen=True)
class JobMessage:
    """Message about a job: an `event` from it, or its `future` that is done."""

    number: int
    event: dict[str, Any] = field(default_factory=dict[str, Any])
    future: Any = None


def is_loss(error: object) -> bool:
    """Return whether a job failed because its worker is gone: an error of Dask, under any name, or a cancellation."""
    return isinstance(error, CancelledError) or type(error).__module__.partition(".")[0] in ("dask", "distributed")


def failure(future: Any) -> BaseException | None:
    """Return the error of a finished job, or the error of fetching it from a lost scheduler."""
    try:
        return future.exception()
    except Exception as error:
        return error


class Fleet:
    """Workers of a scheduler, used by one run."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._messages: SimpleQueue[JobMessage] = SimpleQueue()
        self._numbers = 0
        with self._answering("the scheduler of the fleet takes no messages"):
            self._begin()

    def addresses(self) -> set[str]:
        """Return the addresses of the scheduler's present workers; raise BackendUnavailable if it is lost."""
        with self._answering("the scheduler of the fleet does not answer any more"):
            return set(self._client.nthreads())

    def wait(self) -> None:
        """Wait for the first worker; raise BackendUnavailable after a time limit."""
        with self._answering("the scheduler of the fleet was lost before it had a worker"):
            try:
                self._client.wait_for_workers(1, timeout=_WAIT_SECONDS)
            except TimeoutError:
                raise BackendUnavailable(
                    f"the scheduler has no worker after {_WAIT_SECONDS} s; start one for each GPU: "
                    "'dask worker ADDRESS --nthreads 1'"
                ) from None

    def seen(self, addresses: Sequence[str]) -> list[SeenWorker]:
        """Return the workers at the addresses, in the order of hosts and names."""
        with self._answering("the workers cannot be asked what they are"):
            answers = self._client.run(look, workers=list(addresses), on_error="return")
        errors = {address: answer for address, answer in answers.items() if isinstance(answer, BaseException)}
        if errors:
            listed = "; ".join(f"{address}: {type(error).__name__}: {error}" for address, error in errors.items())
            raise BackendUnavailable(f"workers that cannot run prism-bench: {listed}; install this version of it there")
        seen = [
            SeenWorker(address, answer["host"], answer["name"], tuple(answer["gpus"]), tuple(answer["cores"]))
            for address, answer in answers.items()
        ]
        return sorted(seen, key=lambda worker: (worker.host, len(worker.name), worker.name))

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
        """Give the same job to all workers; return each answer or error."""
        numbers = [self.submit(claim, call, work) for claim in claims]
        answers: dict[int, dict[str, Any] | BaseException] = {}
        of_others: list[JobMessage] = []
        while len(answers) < len(numbers):
            live = self.addresses()
            for (number, _), claim in zip(numbers, claims, strict=True):
                if claim.worker.address not in live:
                    answers.setdefault(number, BackendUnavailable("the worker was lost"))
            for message in self.messages(LOOK_SECONDS):
                if message.number not in dict(numbers):
                    of_others.append(message)
                elif "result" in message.event:
                    answers.setdefault(message.number, message.event["result"])
                elif message.future is not None and not message.future.cancelled():
                    error = failure(message.future)
                    if error is not None:
                        answers.setdefault(message.number, error)
        for message in of_others:
            self._messages.put(message)
        for _, future in numbers:
            future.cancel()
        return [answers[number] for number, _ in numbers]

    def messages(self, seconds: float) -> list[JobMessage]:
        """Return all messages that have arrived, after waiting at most `seconds` for the first."""
        messages: list[JobMessage] = []
        try:
            messages.append(self._messages.get(timeout=seconds))
            while True:
                messages.append(self._messages.get_nowait())
        except Empty:
            return messages

    def stop(self) -> None:
        """Let the present jobs end at their next event; lost workers do not matter."""
        with suppress(BackendUnavailable), self._answering("the fleet cannot be stopped"):  # gone: it has no jobs
            self._client.run(stop, self.run, on_error="ignore")
            self._begin()

    @contextmanager
    def _answering(self, failing: str) -> Generator[None]:
        """Turn every error of the client into a BackendUnavailable with the text `failing`."""
        try:
            yield
        except BackendUnavailable:
            raise
        except Exception as error:
            raise BackendUnavailable(f"{failing}: {described(error)}") from error

    def _begin(self) -> None:
        """Give the following jobs a common name, by which they can be stopped together."""
        self.run = uuid.uuid4().hex
        self._client.subscribe_topic(f"{_TOPIC}-{self.run}", self._take)

    def _take(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        self._messages.put(JobMessage(message["number"], event=message))


@contextmanager
def opened(spec: FleetSpec, needs_gpu: bool) -> Generator[Fleet]:
    """Yield the fleet once it has a worker."""
    with connected(spec, needs_gpu) as client:
        fleet = Fleet(client)
        fleet.wait()
        yield fleet
