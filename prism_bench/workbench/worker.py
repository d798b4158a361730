"""A measuring process: reads its task list from standard input, writes one JSON line per event to standard output.

Events: {"facts", "protocol"}, then per task {"begin": name} and {"results": [...]}, at the end {"end": true}. A kernel
that crashes or hangs takes this process with it and nothing else.
"""

import json
import os
import sys

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.run_record import encode_case
from prism_bench.workbench.session import Session
from prism_bench.workbench.settings import PROTOCOL, from_plain


def main() -> None:
    """Work through the order on standard input."""
    order = json.load(sys.stdin)
    tell = _private_output()
    backend = open_backend(order["backend"])
    tell({"facts": backend.facts(), "protocol": {"version": PROTOCOL}})
    settings = from_plain(order["settings"])
    session = Session(backend, discover(order["catalogue"]), settings, order["process"], order["timed"])
    for task in order["tasks"]:
        tell({"begin": task})
        tell({"results": [encode_case(result) for result in session.task(task)]})
    tell({"end": True})


def _private_output():
    """A function that writes events; whatever libraries print goes to standard error instead."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def tell(event):
        channel.write(json.dumps(event, default=str) + "\n")
        channel.flush()

    return tell


if __name__ == "__main__":
    main()
