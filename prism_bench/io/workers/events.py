"""What a measuring worker reports: one event a line, as JSON, in which infinities and NaN are allowed."""

import json
from typing import Any, TypedDict

import msgspec

JsonObject = dict[str, Any]


class WorkerEvent(TypedDict, total=False):
    """One event; its keys say what happened, and keys of other versions are ignored.

    In the order in which they come: `imported`, how many libraries were named before the order, `facts` and `protocol`
    once the backend is open, with `device`, what launches may ask of it, `compiled` for each library that was compiled
    ahead, for each task `begin`, a `case` for each edge where the task is a kernel's edges, then `results` or
    `recorded`, and at the end `end` with `monitor` or `allocator`. `task` is added where several workers report.
    `peer` is the peer that the worker is at from here on, empty after the last one; `within` is in how many seconds
    the next event will come; `spoiled` is why the worker ends because of that peer.
    """

    imported: int
    facts: JsonObject
    protocol: JsonObject
    device: dict[str, int]
    compiled: int
    begin: str
    case: str
    peer: str
    within: float
    spoiled: str
    results: list[JsonObject]
    recorded: str
    task: str
    end: bool
    monitor: JsonObject
    allocator: JsonObject


class NoEvent(Exception):
    """A worker wrote a line that is no event."""


def decode_event(line: bytes) -> WorkerEvent:
    """Return the event of a line; NoEvent where a key has a value of another type, or the line is no JSON object."""
    try:
        return msgspec.convert(json.loads(line), WorkerEvent)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise NoEvent(f"{error}: {line[:100].decode(errors='replace')}") from error
