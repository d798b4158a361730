"""Description of a board: what its backend reports, and the versions that must be equal on all boards."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prism_bench import __version__
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fleet.board import (
    BoardClaim,
    FleetBoard,
    SeenWorker,
    claims,
    differing,
    of_one_kind,
    require_equal,
    set_alike,
)
from prism_bench.extensions.fleet.fleet import Fleet, is_loss
from prism_bench.extensions.fleet.job import JobChannel
from prism_bench.io.files import default_folder
from prism_bench.io.saving import warn
from prism_bench.io.workers.handle import START_SECONDS
from prism_bench.io.workers.process import WorkerDied, died_at_start, work
from prism_bench.record import identity
from prism_bench.run.orders import MeasuringOrder
from prism_bench.run.places import HERE
from prism_bench.run.settings import Settings, to_plain
from prism_bench.spec.case import Device

CALL = f"{__name__}:described"
PACKAGE = Path(__file__).parents[2]
_OWN = ("uuid", "software", "board")  # of the facts: what may differ from board to board, and what is listed apart


def place_of(catalogue: Path) -> str | None:
    """Return how workers find the catalogue: None for that of the package, which may be elsewhere on another host."""
    return None if catalogue.resolve() == default_folder().resolve() else str(catalogue.resolve())


def folder_of(place: str | None) -> Path:
    """Return the catalogue's folder on this worker; a UsageError where it has none."""
    folder = default_folder() if place is None else Path(place)
    if not folder.is_dir():
        raise UsageError(f"{folder}: this worker of the fleet has no such catalogue; give it a folder that all share")
    return folder


def digest(folder: Path) -> str:
    """Return a hash of every file of the catalogue or package, by path and content."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(folder)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:12]


def described(request: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Return the facts of the worker's board, read by a child that opens the backend and measures nothing."""
    folder = folder_of(request["catalogue"])
    order: MeasuringOrder = {
        "backend": request["backend"], "catalogue": str(folder.resolve()), "settings": to_plain(Settings()),
        "process": 1, "timed": False, "tasks": [],
    }  # fmt: skip
    found: dict[str, Any] = {}
    try:
        for event in work(order, START_SECONDS, HERE):
            found |= event
    except WorkerDied as death:
        raise died_at_start(death, request["backend"]) from None
    facts = found["facts"]
    return {
        "facts": facts, "device": found["device"], "host": identity.machine(facts)["host"],
        "software": identity.software(facts.get("software", {})), "files": _own_files(folder),
    }  # fmt: skip


def describe(fleet: Fleet, claims: Sequence[BoardClaim], backend: str, catalogue: Path) -> list[FleetBoard]:
    """Return the boards of the claims, described side by side; the error of the first that cannot be."""
    request = {"backend": backend, "catalogue": place_of(catalogue)}
    answers = fleet.answers(claims, CALL, request)
    return [_board(claim, answer) for claim, answer in zip(claims, answers, strict=True)]


def _board(claim: BoardClaim, answer: Mapping[str, Any] | BaseException) -> FleetBoard:
    worker = f"worker {claim.worker.host} ({claim.worker.address})"
    if isinstance(answer, BackendUnavailable | UsageError):
        raise type(answer)(f"{worker}: {answer}")
    if is_loss(answer):
        raise BackendUnavailable(f"{worker} was lost while it opened its backend; start it again")
    if isinstance(answer, BaseException):  # it has another version of this package
        raise BackendUnavailable(f"{worker} does not describe itself: {type(answer).__name__}: {answer}")
    facts = answer["facts"]
    machine = {f"machine.{name}": str(value) for name, value in facts.items() if name not in _OWN}
    host = {f"host.{name}": str(value) for name, value in answer["host"].items()}
    software = {name: str(value) for name, value in answer["software"].items()}
    versions = {**software, **answer["files"], **host, **machine}
    device = Device(**answer["device"])
    return FleetBoard(claim, facts, answer["host"], answer["software"], device, versions)


def boards_of(fleet: Fleet, backend: str, catalogue: Path) -> tuple[list[FleetBoard], list[str]]:
    """Return the boards that measure, all of one kind and alike, and remarks on workers that measure nothing."""
    fleet.wait()
    found, remarks = claims(fleet.seen(sorted(fleet.addresses())), needs_gpu=backend == "cuda")
    boards, others = of_one_kind(describe(fleet, found, backend, catalogue))
    require_equal(boards)
    _require_files_of_here(boards, catalogue)
    boards, different = set_alike(boards)
    return boards, remarks + others + different


def _own_files(catalogue: Path) -> dict[str, str]:
    return {"prism-bench": __version__, "prism-bench's code": digest(PACKAGE), "catalogue": digest(catalogue)}


def _require_files_of_here(boards: Sequence[FleetBoard], catalogue: Path) -> None:
    """Raise a UsageError where the boards, which are alike, have other files than this process."""
    here, there = _own_files(catalogue), boards[0].versions
    lines = [
        f"{name}: {here[name]} here; {there.get(name)} on all workers" for name in here if here[name] != there[name]
    ]
    if lines:
        raise UsageError(
            "the workers of the fleet have other files than this command, whose record would name the wrong ones:\n  "
            + "\n  ".join(lines)
        )


def replacements(
    fleet: Fleet, new: Iterable[str], gone: Sequence[FleetBoard], backend: str, catalogue: Path
) -> list[FleetBoard]:
    """Return the boards of lost workers on which new ones have started; one that differs is left out with a remark."""
    left, found = list(gone), list[FleetBoard]()
    try:
        for worker in fleet.seen(sorted(new)):
            board = next((one for one in left if _fits(one.claim, worker)), None)
            if board is None:
                continue
            left.remove(board)
            (again,) = describe(fleet, [replace(board.claim, worker=worker)], backend, catalogue)
            require_equal([board, again])
            if again.settings != board.settings:
                raise UsageError(f"{board.title}: {differing(again.settings, board.settings)} when it was lost")
            found.append(replace(again, name=board.key))
    except (BackendUnavailable, UsageError) as error:  # it may be gone again: the next look finds it, or does not
        warn(f"a worker that came back is not used: {error}")
    return found


def _fits(claim: BoardClaim, worker: SeenWorker) -> bool:
    return claim.worker.host == worker.host and (claim.gpu is None or claim.gpu in worker.gpus)
