"""`prism_bench.benchmark`: time any CuPy or PyTorch callable in one line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prism_bench.errors import UsageError
from prism_bench.record.measurement import Measurement
from prism_bench.units import rate_text

MODES = {"cold": "cold_time", "hot": "hot_time"}


@dataclass(frozen=True, repr=False)
class Benchmark(Measurement):
    """A measurement that knows the bytes and operations behind it."""

    bytes: int | None = None
    flops: int | None = None

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second, where the bytes were given."""
        return self.bytes / self.median if self.bytes and self.median else None

    @property
    def flop_rate(self) -> float | None:
        """Operations per second, where they were given."""
        return self.flops / self.median if self.flops and self.median else None

    def __str__(self) -> str:
        rates = [rate_text(self.bandwidth, "B/s")] if self.bandwidth else []
        rates += [rate_text(self.flop_rate, "FLOP/s")] if self.flop_rate else []
        return super().__str__() + "".join(f", {rate}" for rate in rates) + "".join(f"; {note}" for note in self.notes)


def benchmark(
    function: Callable[[], object],
    *,
    mode: str = "cold",
    stream: Any = None,
    bytes: int | None = None,
    flops: int | None = None,
    name: str | None = None,
) -> Benchmark:
    """Time a callable without arguments that works on the current CUDA stream of CuPy or PyTorch.

    `mode` is `cold` (caches cleared before each call) or `hot` (replay of a CUDA graph of many calls). `stream` is
    a CuPy or PyTorch stream to time on; by default a new one is made current while the callable runs. `bytes` and
    `flops` of one call, where given, make rates. Seconds inside.

    The callable runs about a hundred times. A part of L2 that is set aside is given back meanwhile, and set aside
    again at the end. Raises UsageError for a bad mode, BackendUnavailable without a GPU, and MeasurementInvalid where
    the call cannot be timed honestly: it enqueues nothing, waits for the device, works on another stream or after it
    has returned, does less work in some calls than in others (one of ten, in a graph, or with cold caches), claims
    more bytes or operations than the device can do, or a function of the clock was replaced. `notes` of the result
    name what else was seen.
    """
    if mode not in MODES:
        raise UsageError(f"mode is '{mode}'; it is one of {', '.join(MODES)}")
    if not callable(function):
        raise UsageError(f"benchmark takes a callable without arguments, not {type(function).__name__}")
    from prism_bench.api.inspected import STEPS, TimedCallable, measured
    from prism_bench.api.progress import shown_progress
    from prism_bench.backends.cuda.borrowed import borrowed_backend

    subject = TimedCallable(function, MODES[mode], name or getattr(function, "__name__", "callable"), bytes, flops)
    with borrowed_backend(stream) as (backend, library), shown_progress("benchmark", STEPS) as step:
        found = measured(backend, library, subject, step)
    return Benchmark(**{**vars(found), "bytes": bytes, "flops": flops})
