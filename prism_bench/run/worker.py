"""Measuring worker: reads its order, one JSON line, from standard input, and writes events to standard output.

An order that is `open` is followed by tasks, one a line. Standard input stays open until the end; where it closes
before, the parent is gone, and the worker ends too. The events are `workers.events.WorkerEvent`. A kernel that crashes
or hangs ends this process and nothing else.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from prism_bench.backends import open_backend
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue, discover
from prism_bench.monitor import watched
from prism_bench.run.ahead import compile_ahead
from prism_bench.run.orders import MeasuringOrder
from prism_bench.run.peers import PeerSpoiled
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import PROTOCOL, Settings, from_plain
from prism_bench.run_record import encode_case
from prism_bench.strict_json import json_line
from prism_bench.workers.child import end_with
from prism_bench.workers.events import WorkerEvent


def main() -> None:
    """Work through the order on standard input."""
    end_with(sys.stdin.fileno())
    order: MeasuringOrder = json.loads(sys.stdin.readline())
    write = private_output()
    backend = open_backend(order["backend"])
    backend.report_crashes()
    facts = backend.facts()
    write({"facts": facts, "protocol": {"version": PROTOCOL}})
    settings, catalogue = from_plain(order["settings"]), discover(order["catalogue"])
    ahead = order.get("ahead")
    if backend.name == "cuda" and ahead:
        compile_ahead(_cases(catalogue, ahead), backend.device, lambda: write({"compiled": 1}))
    process, timed, verifies = order["process"], order["timed"], order.get("verifies")
    device = facts.get("uuid") if timed else None
    with watched(device, settings.watching.hertz) as sampler:
        session = MeasuringSession(
            backend, catalogue, settings, process, order["timed"], verifies=verifies, sampler=sampler
        )
        session.begun = lambda case: write({"case": case})
        session.peer_begun = lambda peer: write(_at_peer(peer, settings))
        session.avoided = order.get("avoid", {})
        session.check_compiled = order.get("check_compiled")
        for task in _tasks(order):
            write({"begin": task})
            try:
                results = session.task(task)
            except PeerSpoiled as spoiled:
                write({"spoiled": str(spoiled)})
                os._exit(0)  # nothing of this process is of use: another one does the task again
            write({"results": [encode_case(result) for result in results]})
    write({"end": True, "monitor": sampler.summary()} if device else {"end": True})


def _at_peer(name: str, settings: Settings) -> WorkerEvent:
    """Return the event of a peer's next step, which has its limit; without a name, of the end of all peers."""
    return {"peer": name, "within": settings.peer_timeout} if name else {"peer": ""}


def _tasks(order: MeasuringOrder) -> Iterator[str]:
    yield from order.get("tasks", ())
    if order.get("open"):
        yield from (line.strip() for line in iter(sys.stdin.readline, ""))


def _cases(catalogue: Catalogue, tasks: Sequence[str]) -> list[Case]:
    """Return every case of the tasks."""
    kernels = [task.removeprefix("edges:") for task in tasks if task.startswith("edges:")]
    edges = [case for kernel in kernels for case in catalogue.edges_of(kernel)]
    return edges + [catalogue.anywhere(task) for task in tasks if not task.startswith("edges:")]


def private_output() -> Callable[[WorkerEvent], None]:
    """Return a function that writes events; whatever libraries print goes to standard error instead."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def write(event: WorkerEvent) -> None:
        channel.write(json_line(event) + "\n")
        channel.flush()

    return write


if __name__ == "__main__":
    main()
