"""The functions that the CUDA clock calls, bound when CuPy is opened, which is before a spec is imported."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from prism_bench.measure.clock_guard import distrust, keep
from prism_bench.record.measurement import Measurement, Sample

_CUDA = ("Event", "Stream", "get_elapsed_time", "get_current_stream", "alloc_pinned_memory")
_RUNTIME = ("deviceSynchronize", "streamSynchronize", "eventRecord", "eventSynchronize", "eventElapsedTime")


@dataclass(frozen=True)
class ClockFunctions:
    """CuPy's functions as they were when the device was opened."""

    event: Callable[..., Any]
    elapsed: Callable[[Any, Any], float]
    synchronize: Callable[[], None]
    current_stream: Callable[[], Any]


_BOUND: dict[int, tuple[Any, ClockFunctions]] = {}  # by the id of the CuPy that is kept next to them


def bound(cupy: Any) -> ClockFunctions:
    """Return the functions of this CuPy as they were at the first call."""
    if id(cupy) not in _BOUND:
        _BOUND[id(cupy)] = cupy, _bind(cupy)
    return _BOUND[id(cupy)][1]


def _bind(cupy: Any) -> ClockFunctions:
    cuda = cupy.cuda
    runtime = getattr(cuda, "runtime", None)
    if isinstance(cupy, ModuleType):
        _keep_all(cupy)
    return ClockFunctions(
        cast(Any, getattr(cuda, "Event", None)), cast(Any, getattr(cuda, "get_elapsed_time", None)),
        cast(Any, getattr(runtime, "deviceSynchronize", None)), cast(Any, getattr(cuda, "get_current_stream", None)),
    )  # fmt: skip


def _keep_all(cupy: Any) -> None:
    cuda = cupy.cuda
    keep("cupy", cupy, ("RawModule",))
    keep("cupy.cuda", cuda, _CUDA)
    keep("cupy.cuda.runtime", cuda.runtime, _RUNTIME)
    for name in ("Event", "Stream"):
        for owner in getattr(getattr(cuda, name), "__mro__", (object,))[:-1]:
            keep(f"cupy.cuda.{name}", owner)
    for name in _CUDA:
        if _is_strange(getattr(cuda, name)):
            distrust(f"cupy.cuda.{name}")


def _is_strange(value: Any) -> bool:
    """Whether it is not CuPy's own: those are compiled, and a function of Python is not."""
    return isinstance(value, FunctionType) or not (getattr(value, "__module__", None) or "cupy").startswith("cupy")


def _keep_own() -> None:
    keep("time", time, ("perf_counter",))
    keep("statistics", statistics, ("median",))
    keep("numpy", np, ("median", "frombuffer"))
    for owner in (Measurement, Sample):
        keep(f"prism_bench.record.measurement.{owner.__name__}", owner)
    if not isinstance(time.perf_counter, BuiltinFunctionType):
        distrust("time.perf_counter")


_keep_own()
