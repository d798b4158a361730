"""A process that measures pipelines, or replays traces, with one allocator; spoken to as the workbench's own worker.

The order holds backend, catalogue, label, process (0 verifies and traces), timed, tasks, and where one is asked for the
allocator. Tasks are `pipeline:form`, `replay:PATH`, `record:pipelines=FOLDER` and `record:catalogue=FOLDER`.
"""

import json
import sys
from pathlib import Path

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.pipelines.known import KNOWN
from prism_bench.pipelines.pipeline import placed
from prism_bench.pipelines.session import Session
from prism_bench.run_record import encode_case
from prism_bench.workbench.ahead import compile_ahead
from prism_bench.workbench.settings import PROTOCOL
from prism_bench.workbench.worker import private_output


def main() -> None:
    """Work through the order on standard input."""
    order = json.load(sys.stdin)
    tell = private_output()
    opened = _install(order.get("allocator"))
    backend, catalogue = open_backend(order["backend"]), discover(order["catalogue"])
    tell({"facts": backend.facts(), "protocol": {"version": PROTOCOL}})
    if backend.name == "cuda" and order["process"] == 0:
        compile_ahead(_cases(order, catalogue), backend.device)
    session = Session(backend, catalogue, order["label"], first=order["process"] == 0, timed=order["timed"])
    for task in order["tasks"]:
        tell({"begin": task})
        tell(_done(task, order, session, opened, backend, catalogue))
    tell({"end": True, **({"allocator": opened.facts()} if opened else {})})


def _cases(order, catalogue):
    """Everything that the tasks will launch, as far as it is known beforehand."""
    recorded = [task for task in order["tasks"] if task.startswith("record:")]
    measured = [task.partition(":")[0] for task in order["tasks"] if task.partition(":")[0] in KNOWN]
    found = [one.case for name in {*measured, *(KNOWN if recorded else ())}
             for one in placed(KNOWN[name], order["label"], catalogue)]  # fmt: skip
    return found + (catalogue.cases(labels=(order["label"],)) if recorded else [])


def _install(name):
    """CuPy's allocator is from now on the one of that name."""
    if not name:
        return None
    import cupy

    from prism_bench.memory.allocators import open_allocator

    opened = open_allocator(name)
    cupy.cuda.set_allocator(opened.allocate)
    return opened


def _done(task, order, session, opened, backend, catalogue):
    kind, _, rest = task.partition(":")
    if kind == "replay":
        from prism_bench.pipelines.replays import replayed

        return {"results": [encode_case(replayed(Path(rest), opened, backend, order["process"] == 0))]}
    if kind == "record":
        from prism_bench.pipelines import replays

        what, _, folder = rest.partition("=")
        make = {"pipelines": replays.record_pipelines, "catalogue": replays.record_catalogue}[what]
        return {"recorded": str(make(catalogue, backend, order["label"], Path(folder)))}
    return {"results": [encode_case(session.task(task))]}


if __name__ == "__main__":
    main()
