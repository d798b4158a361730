"""Boards: the single GPUs behind a record, which one measured what, and what sets them apart from others of their kind.

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
import platform
from collections.abc import Iterable, Mapping
from typing import Any

BoardTable = dict[str, Any]


def host_digest() -> str:
    """Return the digest that sets this host apart from others in records."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def boards_in(facts: Mapping[str, Any]) -> tuple[BoardTable, ...]:
    """Return the entry of the board that a backend's facts describe; none where it has no UUID."""
    uuid = facts.get("uuid")
    return ({"uuid": uuid, **facts.get("board", {})},) if uuid else ()


def boards_together(tables: Iterable[Iterable[BoardTable]]) -> tuple[BoardTable, ...]:
    """Return every board of several records once, in the order of their UUIDs; the first word on each counts."""
    found: dict[str, BoardTable] = {}
    for one in (board for boards in tables for board in boards):
        found[str(one.get("uuid"))] = {**one, **found.get(str(one.get("uuid")), {})}
    return tuple(found[uuid] for uuid in sorted(found))


def uuids_of(machine: Mapping[str, object], parts: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the known UUIDs of all devices that measured a record of this machine and these parts, sorted."""
    found = {machine.get("uuid"), *(part.get("uuid") for part in parts)}
    return tuple(sorted(str(uuid) for uuid in found if uuid))
