"""Worker that compiles peers: reads its order and then tasks, one a line, and answers each when it is compiled.

Its messages are those of the measuring worker, without results. A form is prepared exactly as it is where it is timed,
on the case's own inputs, so that Inductor finds there what was compiled here.
"""

import gc
import json
import sys
from contextlib import suppress

from prism_bench.backends import Backend, open_backend
from prism_bench.backends.cuda.peers.library_state import import_ahead
from prism_bench.catalogue import discover
from prism_bench.io.workers import end_with
from prism_bench.run.measuring import is_sticky
from prism_bench.run.pool import MeasuringOrder
from prism_bench.run.precompile import task_parts
from prism_bench.run.worker import private_output
from prism_bench.spec.case import Case


def main() -> None:
    """Work through the tasks on standard input."""
    end_with(sys.stdin.fileno())
    order: MeasuringOrder = json.loads(sys.stdin.readline())
    write = private_output()
    backend, catalogue = open_backend(order["backend"]), discover(order["catalogue"])
    with suppress(Exception):  # its tasks report why
        import_ahead("torch")
    gc.freeze()  # what was imported would be collected over and over while much is compiled
    for line in iter(sys.stdin.readline, ""):
        task = line.strip()
        write({"begin": task})
        name, case = task_parts(task)
        compile_peer(backend, catalogue.anywhere(case), name)
        write({"results": []})


def compile_peer(backend: Backend, case: Case, name: str) -> None:
    """Compile that form of a peer, if the case has it; what fails is reported where it is timed.

    An error after which the device answers no more ends this process, so that another one goes on.
    """
    if name not in backend.peers(case):
        return
    try:
        with backend.prepare(case, case.inputs(0)) as runnable, backend.prepare_peer(case, name, runnable):
            pass
    except Exception as error:
        if is_sticky(backend, error):
            raise


if __name__ == "__main__":
    main()
