"""Orders of workers: what a driver sends them before the tasks, as one JSON line."""

from typing import Any, NotRequired, TypedDict


class MeasuringOrder(TypedDict):
    """The order of a measuring worker.

    `process` 0 verifies, unless `verifies` decides that. The code of the tasks in `ahead` is compiled first. After an
    order that is `open` come further tasks, one a line. `avoid` names by task the peers that have no time, each with
    its reason: they ended an earlier worker, or had no time there. `check_compiled` has the labels of the cases whose
    compiled peers are checked, whoever verifies; without it whoever verifies checks them all. `settled` names by task
    the peers that an earlier process has measured well enough. The tasks in `peerless` are measured without peers.
    """

    backend: str
    catalogue: str
    settings: dict[str, Any]
    process: int
    timed: bool
    verifies: NotRequired[bool]
    tasks: NotRequired[list[str]]
    ahead: NotRequired[list[str]]
    open: NotRequired[bool]
    avoid: NotRequired[dict[str, dict[str, str]]]
    check_compiled: NotRequired[list[str]]
    settled: NotRequired[dict[str, list[str]]]
    peerless: NotRequired[list[str]]


class TaskOrder(TypedDict):
    """The order of a worker for tasks of an extension; `process` 0 verifies, the others time."""

    backend: str
    catalogue: str
    label: str
    process: int
    timed: bool
    tasks: list[str]
    allocator: str | None
    choices: dict[str, dict[str, Any]]
