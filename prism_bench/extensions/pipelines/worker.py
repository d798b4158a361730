"""A process that measures pipelines, or replays traces, with one allocator; spoken to as the workbench's own worker.

The order holds backend, catalogue, label, process (0 verifies and traces), timed, tasks, and where one is asked for the
allocator. Tasks are `pipeline:form`, `replay:PATH`, `record:pipelines=FOLDER` and `record:catalogue=FOLDER`.
"""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.extensions.pipelines.known import KNOWN
from prism_bench.extensions.pipelines.pipeline import placed
from prism_bench.extensions.pipelines.session import Session
from prism_bench.run.ahead import compile_ahead
from prism_bench.run.settings import PROTOCOL
from prism_bench.run.worker import private_output
from prism_bench.run_record import encode_case
from prism_bench.workers.child import end_with


def main() -> None:
    """Work through the order on standard input."""
    end_with(sys.stdin.fileno())
    order = json.loads(sys.stdin.readline())
    tell = private_output()
    opened = _install(order.get("allocator"))
    catalogue = replace(discover(order["catalogue"]), choices=order.get("choices", {}))
    hall = _Hall(order, open_backend(order["backend"]), catalogue)
    tell({"facts": hall.backend.facts(), "protocol": {"version": PROTOCOL}})
    if hall.backend.name == "cuda" and hall.first:
        compile_ahead(_cases(order, hall.catalogue), hall.backend.device)
    session = Session(hall.backend, hall.catalogue, order["label"], first=hall.first, timed=order["timed"])
    for task in order["tasks"]:
        tell({"begin": task})
        tell(_done(task, hall, session))
    tell({"end": True, **({"allocator": opened.facts()} if opened else {})})


@dataclass(frozen=True)
class _Hall:
    """What tasks need: the order, and the backend and catalogue it names."""

    order: dict
    backend: Backend
    catalogue: Catalogue

    @property
    def first(self) -> bool:
        return self.order["process"] == 0


def _cases(order, catalogue):
    """Everything that the tasks will launch, as far as it is known beforehand."""
    recorded = [task for task in order["tasks"] if task.startswith("record:")]
    measured = [task.partition(":")[0] for task in order["tasks"] if task.partition(":")[0] in KNOWN]
    found = [one.case for name in {*measured, *(KNOWN if recorded else ())}
             for one in placed(KNOWN[name], order["label"], catalogue)]  # fmt: skip
    return found + (catalogue.cases(labels=(order["label"],)) if recorded else [])


def _install(name):
    """CuPy's allocator is from now on the one of that name; without a name it stays what it was."""
    if not name:
        return None
    from prism_bench.extensions.memory.allocators import install

    return install(name)


def _done(task, hall, session):
    kind, _, rest = task.partition(":")
    if kind == "replay":
        from prism_bench.extensions.memory.allocators import open_allocator
        from prism_bench.extensions.pipelines.replays import replayed

        fresh = open_allocator(hall.order["allocator"])  # the backend's own buffers are in the one that is installed
        return {"results": [encode_case(replayed(Path(rest), fresh, hall.backend, hall.first))]}
    if kind == "record":
        from prism_bench.extensions.pipelines import replays

        what, _, folder = rest.partition("=")
        make = {"pipelines": replays.record_pipelines, "catalogue": replays.record_catalogue}[what]
        return {"recorded": str(make(hall.catalogue, hall.backend, hall.order["label"], Path(folder)))}
    return {"results": [encode_case(session.task(task))]}


if __name__ == "__main__":
    main()
