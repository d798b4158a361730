"""What compute-sanitizer watches: every edge of some kernels launched once; a program of its own.

    python -m prism_bench.studies.sanitize_worker ORDER

ORDER is a JSON file with backend, catalogue, kernels, seconds, poison. Memory comes from the driver, allocation by
allocation, so that an access beside a buffer is an access beside an allocation; without poison nothing is written to
outputs beforehand, so that reading what nobody wrote is seen.
"""

import json
import sys
import time
from functools import cache
from pathlib import Path

from prism_bench.backends import open_backend
from prism_bench.case import Case
from prism_bench.catalogue import discover
from prism_bench.profilers.sanitizer import BEGIN, END, FAILED
from prism_bench.run.measuring import is_sticky


def main() -> None:
    """Launch the edges of the order's kernels, until its time is over; exit status 3 when the device became useless."""
    order = json.loads(Path(sys.argv[1]).read_text())
    backend, catalogue = open_backend(order["backend"]), discover(order["catalogue"])
    _every_buffer_an_allocation(backend, order["poison"])
    deadline = time.monotonic() + order["seconds"]
    for kernel in order["kernels"]:
        for case in looked_at(catalogue, kernel):
            if time.monotonic() > deadline:
                return
            print(f"{BEGIN}{case.name}", flush=True)
            print(f"{END if _launched(backend, case) else FAILED}{case.name}", flush=True)


def looked_at(catalogue, kernel) -> list[Case]:
    """The kernel's edges and golden cases: regimes launch what they launch, with other values."""
    return [case for case in catalogue.edges_of(kernel) if not case.is_regime]


def _every_buffer_an_allocation(backend, poison):
    """And every library loaded once: instrumenting one is what takes a check's time."""
    cuda = getattr(backend.xp, "cuda", None)
    if cuda is not None:
        cuda.set_allocator(None)
        backend.xp.RawModule = cache(backend.xp.RawModule)
        backend.harness.poison = poison


def _launched(backend, case):
    try:
        with backend.prepare(case, case.inputs()) as runnable:
            runnable()
            runnable.arrays(())  # waits for the device
    except Exception as error:  # the check's own words say more than what it makes of the program
        print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
        if is_sticky(backend, error):
            sys.exit(3)
        return False
    return True


if __name__ == "__main__":
    main()
