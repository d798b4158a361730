"""A measuring process: reads its task list from standard input, writes one JSON line per event to standard output.

Events: {"facts", "protocol"}, then per task {"begin": name} and {"results": [...]}, at the end {"end": true}, with it
{"monitor"} where a device was watched. A kernel that crashes or hangs takes this process with it and nothing else.
"""

import json
import os
import sys

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.monitor import watched
from prism_bench.run_record import encode_case
from prism_bench.workbench.session import Session
from prism_bench.workbench.settings import PROTOCOL, from_plain


def main() -> None:
    """Work through the order on standard input."""
    order = json.load(sys.stdin)
    tell = _private_output()
    backend = open_backend(order["backend"])
    facts = backend.facts()
    tell({"facts": facts, "protocol": {"version": PROTOCOL}})
    settings, catalogue = from_plain(order["settings"]), discover(order["catalogue"])
    device = facts.get("uuid") if order["timed"] else None
    with watched(device, settings.watching.hertz) as sampler:
        session = Session(backend, catalogue, settings, order["process"], order["timed"], sampler=sampler)
        for task in order["tasks"]:
            tell({"begin": task})
            tell({"results": [encode_case(result) for result in session.task(task)]})
    tell({"end": True, **({"monitor": sampler.told()} if device else {})})


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
