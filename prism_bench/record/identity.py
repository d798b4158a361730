"""Identity of a measurement: its machine, its boards, its commit and its software.

Boards are the single GPUs behind a record: which one measured what, and what sets them apart from others of their kind.
A record has one entry for each board:

    uuid          of the GPU, or of its slice
    vbios         version of its firmware
    power_limit   the enforced one, in watts
    host          a short digest of the name of the host that it is in: records name no computer
    application_sm_clock, application_memory_clock, boost_sm_clock
                  what its clocks are set to, in hertz, and the highest that an administrator lets them boost to

What nothing could read is absent.
"""

import hashlib
import os
import platform
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import prism_bench
from prism_bench.io import project
from prism_bench.io.installation import git_output

MACHINE = "PRISM_BENCH_MACHINE"
COMMIT = "PRISM_BENCH_COMMIT"  # for a tree that was exported from a clean checkout and has no history
_PACKAGES = ("numpy", "scipy", "torch", "triton", "cupy-cuda12x", "cupy-cuda13x")


def machine(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the machine's facts and its `id`: its name by PRISM_BENCH_MACHINE, the project, its GPU or its host."""
    device, configuration = facts.get("device", ""), project.current()
    stated = os.environ.get(MACHINE) or (configuration.machine if configuration else None)
    name = stated or (device if facts.get("uuid") else platform.node()) or "unknown"
    host = {"system": platform.system(), "release": platform.release(), "processor": platform.machine()}
    rest = {key: value for key, value in facts.items() if key not in ("software", "board")}
    return {"id": slug(name), "host": {**host, "cores": os.cpu_count()}, **rest}


def timestamp(moment: datetime) -> str:
    """Return the time as records keep it: ISO 8601 in UTC, to the second, without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def slug(name: str) -> str:
    """Return the name in letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unknown"


def software(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions of Python and of every package that can change a number, with the backend's own."""
    versions = {"prism-bench": prism_bench.__version__}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {"python": platform.python_version(), **versions, **facts}


Owner = tuple[str, str, str]  # machine, backend and environment of the records that make series


def environment_of(backend: str, software: Mapping[str, Any]) -> str:
    """Return the environment that keeps asv's series apart: its name, else its software; empty for other records.

    What changes around our own records is the cause of a step, and ends no series.
    """
    if backend != "asv" or software.get("env_name"):
        return str(software.get("env_name") or "")
    return ", ".join(f"{package} {version}" for package, version in software.items())


def committed_at(folder: Path, commit: str | None) -> str | None:
    """Return the time of the commit (see `timestamp`); None where the folder's checkout does not know it."""
    seconds = git_output(folder, "rev-list", "-1", "--timestamp", commit, "--") if commit else None
    return timestamp(datetime.fromtimestamp(int(seconds.split()[0]), UTC)) if seconds else None


def commit_of(folder: Path) -> tuple[str | None, bool]:
    """Return the commit of the folder's checkout, and whether the checkout has changes.

    Outside a checkout the commit is the value of PRISM_BENCH_COMMIT, else None.
    """
    commit = git_output(folder, "rev-parse", "HEAD")
    if not commit:
        return os.environ.get(COMMIT) or None, False
    return commit, bool(git_output(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":!/reports"))


BoardTable = dict[str, Any]


def host_digest() -> str:
    """Return the digest that sets this host apart from others in records."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def boards_in(facts: Mapping[str, Any]) -> tuple[BoardTable, ...]:
    """Return the entry of the board that a backend's facts describe; none where it has no UUID."""
    uuid = facts.get("uuid")
    return ({"uuid": uuid, **facts.get("board", {})},) if uuid else ()


def boards_together(tables: Iterable[Iterable[BoardTable]]) -> tuple[BoardTable, ...]:
    """Return every board of several records once, in the order of their UUIDs; its first value of a key counts."""
    known: dict[str, BoardTable] = {}
    for board in (board for boards in tables for board in boards):
        known[str(board.get("uuid"))] = {**board, **known.get(str(board.get("uuid")), {})}
    return tuple(known[uuid] for uuid in sorted(known))


def uuids_of(machine: Mapping[str, object], parts: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the known UUIDs of all devices that measured a record of this machine and these parts, sorted."""
    uuids = {machine.get("uuid"), *(part.get("uuid") for part in parts)}
    return tuple(sorted(str(uuid) for uuid in uuids if uuid))
