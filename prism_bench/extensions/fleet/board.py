"""Boards of a fleet: a worker and the GPU that is its own, and what must be the same on all of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.spec.case import Device

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
            for name, (words, unit, factor) in SETTINGS.items() if name in known
        }  # fmt: skip

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
        for board, own in zip(boards, settings, strict=True) if own != chosen
    ]  # fmt: skip
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
