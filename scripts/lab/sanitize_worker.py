"""Program that compute-sanitizer watches: launches every edge of some kernels once.

    python -m lab.sanitize_worker ORDER

ORDER is a JSON file with a `SanitizeOrder`. Memory comes from the driver, allocation by allocation, so that an access
outside a buffer is one outside an allocation; without poison nothing is written to outputs beforehand, so that reading
uninitialised memory is found.
"""

import json
import sys
import time
from functools import cache
from pathlib import Path
from typing import TypedDict

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.profilers.tools import BEGIN, END, FAILED
from prism_bench.run.measuring import is_sticky
from prism_bench.spec.case import Case


class SanitizeOrder(TypedDict):
    """The kernels to launch, for how many seconds, and whether their outputs are poisoned before."""

    backend: str
    catalogue: str
    kernels: list[str]
    seconds: float
    poison: bool


def main() -> None:
    """Launch the edges of the order's kernels, until its time is over; exit status 3 when the device became useless."""
    order: SanitizeOrder = json.loads(Path(sys.argv[1]).read_text())
    backend, catalogue = open_backend(order["backend"]), discover(order["catalogue"])
    allocate_each_buffer(backend, order["poison"])
    deadline = time.monotonic() + order["seconds"]
    for kernel in order["kernels"]:
        for case in swept_cases(catalogue, kernel):
            if time.monotonic() > deadline:
                return
            print(f"{BEGIN}{case.name}", flush=True)
            print(f"{END if _launched(backend, case) else FAILED}{case.name}", flush=True)


def swept_cases(catalogue: Catalogue, kernel: str) -> list[Case]:
    """Return the kernel's edges and golden cases: regimes launch the same with other values."""
    return [case for case in catalogue.edges_of(kernel) if not case.is_regime]


def allocate_each_buffer(backend: Backend, poison: bool) -> None:
    """Make every buffer an allocation, and load every library once: instrumenting libraries takes most of the time."""
    cuda = getattr(backend.xp, "cuda", None)
    if cuda is not None:
        cuda.set_allocator(None)
        setattr(backend.xp, "RawModule", cache(backend.xp.RawModule))  # noqa: B010 - of CuPy alone
        getattr(backend, "harness").poison = poison  # noqa: B009 - of the CUDA backend alone


def _launched(backend: Backend, case: Case) -> bool:
    try:
        with backend.prepare(case, case.inputs()) as runnable:
            runnable()
            runnable.arrays(())  # waits for the device
    except Exception as error:  # the check reports more than the error that it causes
        print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
        if is_sticky(backend, error):
            sys.exit(3)
        return False
    return True


if __name__ == "__main__":
    main()
