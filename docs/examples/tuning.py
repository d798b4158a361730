"""A kernel that tunes itself while it is used: each call is timed, and the quickest configuration is launched.

On the emulator times are those of the emulation, so what wins there may lose on a GPU. `prism-bench tune` searches
beforehand, verifies every configuration, and adopts one only beyond the noise.
"""

import prism_bench
from prism_bench.backends import open_backend
from prism_bench.backends.base import Backend
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.workload import written
from prism_bench.units import time_text
from prism_bench.workflows.tuning.search import Habits, OnlineTuner

KERNEL, CALLS = "layer_norm", 12


def opened() -> Backend:
    """Open the GPU if there is one, else the emulator."""
    try:
        return open_backend("cuda")
    except BackendUnavailable:
        return open_backend("emulator")


def main() -> None:
    """Run the example."""
    backend, tuner = opened(), OnlineTuner(Habits(least=3, most=3))
    with prism_bench.prepare(KERNEL, backend=backend.name, online=tuner) as kernel:
        for _ in range(CALLS):
            kernel()
        case = kernel.case
    for one in case.configurations(backend.device):
        seconds = tuner.seconds(KERNEL, case.workload, one.configuration)
        print(f"{written(one.configuration):12} {time_text(seconds) if seconds else 'not tried'}")
    print(f"launched from now on: {written(tuner.best(KERNEL, case.workload) or {})}")
    counts = tuner.statistics()
    print(f"{counts['executions']} executions, {counts['measurements']} configurations measured")


if __name__ == "__main__":
    main()
