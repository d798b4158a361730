"""Measuring worker: reads its order, one JSON line, from standard input, and writes events to standard output.

A line with `libraries` may come before the order: they are imported until it arrives, and a `catalogue` is read. An
order that is `open` is followed by tasks, one a line; among them may be another order for the rest, of which only the
peers to avoid, to check and to leave out count. Standard input stays open until the end; where it closes before, the
parent is gone, and the worker ends too. The events are `io.workers.WorkerEvent`. A kernel that crashes or hangs ends
this process and nothing else.
"""

import gc
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache

from prism_bench.backends import open_backend
from prism_bench.backends.cuda.device import open_cupy
from prism_bench.backends.cuda.peers.library_state import import_ahead
from prism_bench.catalogue import Catalogue, discover
from prism_bench.io.documents import json_line
from prism_bench.io.workers import WorkerEvent, end_with
from prism_bench.monitor import watched
from prism_bench.record.run_record import encode_case
from prism_bench.run.peers import PeerSpoiled
from prism_bench.run.pool import MeasuringOrder
from prism_bench.run.precompile import compile_ahead
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import PROTOCOL, from_plain
from prism_bench.spec.case import Case, Device

_SETTING_UP = 3  # times as long as another step of a peer


def main() -> None:
    """Work through the order on standard input."""
    end_with(sys.stdin.fileno())
    write = private_output()
    order = _order(write)
    backend = open_backend(order["backend"])
    backend.report_crashes()
    facts, device = backend.facts(), backend.device
    limits = {limit.name: getattr(device, limit.name) for limit in fields(Device)}
    write({"facts": facts, "protocol": {"version": PROTOCOL}, "device": limits})
    settings, catalogue = from_plain(order["settings"]), _catalogue(order["catalogue"])
    ahead = order.get("ahead")
    if backend.name == "cuda" and ahead:
        compile_ahead(_cases(catalogue, ahead), device, lambda: write({"compiled": 1}))
    uuid = facts.get("uuid") if order["timed"] else None
    with watched(uuid, settings.watching.hertz) as sampler:
        session = MeasuringSession(
            backend,
            catalogue,
            settings,
            order["process"],
            order["timed"],
            verifies=order.get("verifies"),
            sampler=sampler,
        )
        session.begun = lambda case: write({"case": case})
        session.peer_begun = PeerSteps(write, settings.peer_timeout)
        _instruct(session, order)
        for task in _tasks(order, session):
            write({"begin": task})
            try:
                results = session.task(task)
            except PeerSpoiled as spoiled:
                write({"spoiled": str(spoiled)})
                os._exit(0)  # nothing of this process is of use: another one does the task again
            write({"results": [encode_case(result) for result in results]})
    write({"end": True, "monitor": sampler.summary()} if uuid else {"end": True})


def _order(write: Callable[[WorkerEvent], None]) -> MeasuringOrder:
    """Return the order; libraries that are named before it are imported meanwhile, as far as they can be."""
    order = json.loads(sys.stdin.readline())
    while "libraries" in order:
        for name in order["libraries"]:
            with suppress(Exception):  # it is imported again by its peers, which report why they have no time
                import_ahead(name)
        if order.get("catalogue"):
            with suppress(Exception):  # the order names it again, and what is wrong is reported then
                if "cupy" in order["libraries"]:
                    open_cupy()  # binds what CuPy's clock calls before a spec could replace it; opens no device
                _catalogue(order["catalogue"])
        gc.freeze()  # a collection of all that was imported takes half a second, also between timed calls
        write({"imported": len(order["libraries"])})
        order = json.loads(sys.stdin.readline())
    return order


@cache
def _catalogue(folder: str) -> Catalogue:
    return discover(folder)


def _tasks(order: MeasuringOrder, session: MeasuringSession) -> Iterator[str]:
    """Yield the order's tasks, and those on standard input; another order there counts for the tasks after it."""
    yield from order.get("tasks", ())
    if order.get("open"):
        for line in iter(sys.stdin.readline, ""):
            if line.startswith("{"):
                _instruct(session, json.loads(line))
            else:
                yield line.strip()


def _instruct(session: MeasuringSession, order: MeasuringOrder) -> None:
    """Set what may differ between the orders of one process."""
    session.avoided, session.check_compiled = order.get("avoid", {}), order.get("check_compiled")
    session.settled, session.peerless = order.get("settled", {}), order.get("peerless", ())


def _cases(catalogue: Catalogue, tasks: Sequence[str]) -> list[Case]:
    """Return every case of the tasks."""
    kernels = [task.removeprefix("edges:") for task in tasks if task.startswith("edges:")]
    edges = [case for kernel in kernels for case in catalogue.edges_of(kernel)]
    return edges + [catalogue.anywhere(task) for task in tasks if not task.startswith("edges:")]


class PeerSteps:
    """Reports the steps of peers, each with its limit of `timeout` seconds; a call without a name ends the last peer.

    The first step of a peer is its set-up, which may import and compile: its limit is three times as long.
    """

    def __init__(self, write: Callable[[WorkerEvent], None], timeout: float) -> None:
        self._write, self._timeout, self._at = write, timeout, ""

    def __call__(self, name: str) -> None:
        limit = self._timeout if name == self._at else _SETTING_UP * self._timeout
        self._write({"peer": name, "within": limit} if name else {"peer": ""})
        self._at = name


def private_output() -> Callable[[WorkerEvent], None]:
    """Return a function that writes events; text that libraries print goes to standard error instead."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def write(event: WorkerEvent) -> None:
        channel.write(json_line(event) + "\n")
        channel.flush()

    return write


if __name__ == "__main__":
    main()
