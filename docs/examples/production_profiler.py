"""Keep account of every kernel that a program launches, and print which one to look at first.

A production program cannot run under a profiler. What it can do is to record how long each call took and whether it
failed, in a ring that never grows, and to print the account from time to time. On a GPU the times are those of device
events around each call.
"""

from prism_bench.api.kernels import stopwatch_of
from prism_bench.backends import open_backend
from prism_bench.backends.base import Backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.monitor.executions import Executions
from prism_bench.units import share_text, time_text

KERNELS = ("vector_add", "softmax", "dot_product")
ROUNDS = 5


def opened() -> Backend:
    """Open the GPU if there is one, else the emulator."""
    try:
        return open_backend("cuda")
    except BackendUnavailable:
        return open_backend("emulator")


class Profiler:
    """Account of calls: how often each was made, how long it took, whether it failed."""

    def __init__(self, stopwatch):
        self._stopwatch, self.executions = stopwatch, Executions()

    def call(self, name, function):
        """Call the function once; count a failure and raise it."""
        try:
            self.executions.record(name, self._stopwatch(function))
        except Exception:
            self.executions.record(name, None)
            raise

    def report(self):
        """Yield a line for each kernel, the one with the most time in all first."""
        found = sorted(self.executions.statistics(), key=lambda one: -one.total)
        total = sum(one.total for one in found)
        for one in found:
            yield (
                f"{one.kernel:12} {one.calls:3} calls, {share_text(one.total / total):>6} of the time, "
                f"mean {time_text(one.mean)}, longest {time_text(one.most)}"
            )


def main() -> None:
    """Run the example."""
    backend, catalogue = opened(), discover()
    profiler = Profiler(stopwatch_of(backend))
    for name in KERNELS:
        case = catalogue.cases([name], ["S0"])[0]
        with backend.prepare(case, case.inputs()) as kernel:
            kernel()  # compiles and loads: no call of the program's
            for _ in range(ROUNDS):
                profiler.call(name, kernel)
    print(backend.facts()["device"])
    print("\n".join(profiler.report()))


if __name__ == "__main__":
    main()
