"""Clocks for functions: rounds of honest times on the GPU, or scripted ones for trials of the plugin itself."""

import os
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from prism_bench.api.inspected import CRITERION, TimedCallable, measured
from prism_bench.api.versus import alternated
from prism_bench.backends import open_backend
from prism_bench.errors import UsageError
from prism_bench.io.files import lock
from prism_bench.measure import ClockGate
from prism_bench.record.measurement import Measurement, merged
from prism_bench.run.measuring import measure_metric

_Side = Callable[[], Measurement]


class FunctionClock(Protocol):
    """Times functions on one backend."""

    name: str

    def facts(self) -> Mapping[str, Any]:
        """Return the machine and software behind the times."""
        ...

    def settle(self) -> None:
        """Wait until the device has done all its work."""
        ...

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return the times of one or two functions, each with a group of samples per round.

        Rounds alternate which function is first. Raises MeasurementInvalid where one cannot be timed honestly.
        """
        ...


class CudaClock:
    """The clock of `prism_bench.benchmark`, with all of its checks."""

    name = "cuda"

    def __init__(self) -> None:
        self._backend = open_backend("cuda")

    def facts(self) -> Mapping[str, Any]:
        """Return the GPU, its limits, and the software."""
        return self._backend.facts()

    def settle(self) -> None:
        """Wait for every stream of the device."""
        from prism_bench.backends.cuda.device import open_cupy

        open_cupy().cuda.runtime.deviceSynchronize()

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return cold or hot times, measured on a separate stream."""
        from prism_bench.backends.cuda.borrowed import borrowed_backend

        with _alone(), borrowed_backend() as (backend, library):
            return _rounds([partial(measured, backend, library, one) for one in subjects], count)


class NullClock:
    """The times that PRISM_BENCH_NULL scripts for the name of a case, or for `peer:<name>`."""

    name = "null"

    def __init__(self) -> None:
        from prism_bench.backends.null import open_backend as open_null

        self._backend = open_null()

    def facts(self) -> Mapping[str, Any]:
        """Return facts of no device."""
        return self._backend.facts()

    def settle(self) -> None:
        """Return at once."""

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return scripted times."""
        return _rounds([self._side(one) for one in subjects], count)

    def _side(self, subject: TimedCallable) -> _Side:
        once = self._backend.scripted_timer(subject.name)
        return lambda: measure_metric(subject.metric, subject.name, once, CRITERION, ClockGate())[0]


def open_clock(backend: str) -> FunctionClock:
    """Return the clock of a backend; BackendUnavailable without a GPU, UsageError where it times no functions."""
    if backend == "cuda":
        return CudaClock()
    if backend == "null":
        return NullClock()
    raise UsageError(f"--prism-backend {backend}: functions are timed on cuda, and on null for trials")


def _rounds(sides: Sequence[_Side], count: int) -> list[Measurement]:
    if len(sides) == 2:
        return list(alternated(sides[0], sides[1], count))
    return [merged([side() for _ in range(count)]) for side in sides]


@contextmanager
def _alone() -> Generator[None]:
    """Keep other workers of pytest-xdist off the device meanwhile: two that time at once time each other."""
    if "PYTEST_XDIST_WORKER" not in os.environ or sys.platform == "win32":
        yield
        return
    with (Path(tempfile.gettempdir()) / f"prism-bench-pytest-{os.getuid()}.lock").open("w") as file:
        lock(file.fileno())
        yield
