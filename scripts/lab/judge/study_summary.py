"""Summary of a study of the judge, next to its table: the commit, the devices, and how often each answer came."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from prism_bench.errors import BackendUnavailable, ProfilerError
from prism_bench.extensions.judge.referee.sanitizer import TOOL
from prism_bench.io.documents import json_text
from prism_bench.io.files import write_atomically
from prism_bench.monitor.nvml import DeviceLost, devices, opened, visible
from prism_bench.profilers.tools import find
from prism_bench.record.identity import commit_of, software, timestamp

HERE = Path(__file__).parent


class StudySummary(msgspec.Struct, frozen=True):
    """When and where a study ended; `counts` are of all rows of its table, those that were kept among them.

    `seconds` are those of the last call alone. `sanitizer` is the version of compute-sanitizer, empty without one. Of
    tables that were put together, commit, devices and software are those of the parts that have a summary.
    """

    study: str
    ended: str
    commit: str
    changed: bool
    devices: tuple[str, ...]
    sanitizer: str
    software: dict[str, str]
    counts: dict[str, int]
    seconds: float


def write_summary(
    table: Path, study: str, counts: Mapping[str, int], seconds: float, parts: Sequence[Path] = ()
) -> None:
    """Write the summary of the rows in a table to a JSON file of the same name; `parts` are tables they come from."""
    commit, changed = commit_of(HERE)
    found = StudySummary(
        study,
        timestamp(datetime.now(UTC)),
        commit or "",
        changed,
        _devices(),
        _sanitizer(),
        software({}),
        dict(counts),
        round(seconds, 1),
    )
    known = [_read(path) for part in parts if (path := part.with_suffix(".json")).is_file()]
    if known:
        found = _of_parts(found, known)
    write_atomically(table.with_suffix(".json"), json_text(msgspec.to_builtins(found)).encode())


def _read(path: Path) -> StudySummary:
    return msgspec.json.decode(path.read_bytes(), type=StudySummary)


def _of_parts(found: StudySummary, parts: Sequence[StudySummary]) -> StudySummary:
    """Return the summary with what the parts say of themselves: the newest one's, and the devices of all."""
    newest, commits = max(parts, key=lambda one: one.ended), {one.commit for one in parts}
    return msgspec.structs.replace(
        newest,
        counts=found.counts,
        seconds=round(sum(one.seconds for one in parts), 1),
        devices=tuple(sorted({name for one in parts for name in one.devices})),
        changed=len(commits) > 1 or any(one.changed for one in parts),
    )


def _devices() -> tuple[str, ...]:
    try:
        with opened() as nvml:
            return tuple(one.name for one in visible(devices(nvml)))
    except (BackendUnavailable, DeviceLost):
        return ()


def _sanitizer() -> str:
    try:
        return find(TOOL).version or "unknown"
    except ProfilerError:
        return ""
