"""A measuring process: reads its order, one JSON line, from standard input, writes one per event to standard output.

An order that is `open` is followed by tasks, one a line, as whoever listens has them. Standard input stays open until
the end; where it closes before, the parent is gone, and the process ends too.

Events: {"facts", "protocol"}, {"compiled"} for each library made ahead for the tasks listed so, then per task
{"begin": name}, {"case": name} before each edge where the task is a kernel's edges, and {"results": [...]}, at the end
{"end": true}, with it {"monitor"} where a device was watched. A kernel that crashes or hangs takes this process with it
and nothing else.
"""

import json
import os
import sys

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.monitor import watched
from prism_bench.run.ahead import compile_ahead
from prism_bench.run.session import Session
from prism_bench.run.settings import PROTOCOL, from_plain
from prism_bench.run_record import encode_case
from prism_bench.strict_json import json_line
from prism_bench.workers.child import end_with


def main() -> None:
    """Work through the order on standard input."""
    end_with(sys.stdin.fileno())
    order = json.loads(sys.stdin.readline())
    tell = private_output()
    backend = open_backend(order["backend"])
    backend.report_crashes()
    facts = backend.facts()
    tell({"facts": facts, "protocol": {"version": PROTOCOL}})
    settings, catalogue = from_plain(order["settings"]), discover(order["catalogue"])
    if backend.name == "cuda" and order.get("ahead"):
        compile_ahead(_cases(catalogue, order["ahead"]), backend.device, lambda: tell({"compiled": 1}))
    process, verifies = order["process"], order.get("verifies")
    device = facts.get("uuid") if order["timed"] else None
    with watched(device, settings.watching.hertz) as sampler:
        session = Session(backend, catalogue, settings, process, order["timed"], verifies=verifies, sampler=sampler)
        session.begun = lambda case: tell({"case": case})
        for task in _tasks(order):
            tell({"begin": task})
            tell({"results": [encode_case(result) for result in session.task(task)]})
    tell({"end": True, **({"monitor": sampler.told()} if device else {})})


def _tasks(order):
    yield from order["tasks"]
    if order.get("open"):
        yield from (line.strip() for line in iter(sys.stdin.readline, ""))


def _cases(catalogue, tasks):
    """Every case behind the tasks."""
    kernels = [task.removeprefix("edges:") for task in tasks if task.startswith("edges:")]
    edges = [case for kernel in kernels for case in catalogue.edges_of(kernel)]
    return edges + [catalogue.anywhere(task) for task in tasks if not task.startswith("edges:")]


def private_output():
    """A function that writes events; whatever libraries print goes to standard error instead."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def tell(event):
        channel.write(json_line(event) + "\n")
        channel.flush()

    return tell


if __name__ == "__main__":
    main()
