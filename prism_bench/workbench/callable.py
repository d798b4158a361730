"""`prism_bench.benchmark`: the workbench's clock for any CuPy or PyTorch callable, in one line."""

from collections.abc import Callable
from dataclasses import dataclass

from prism_bench.errors import MeasurementInvalid, UsageError
from prism_bench.measurement import Measurement
from prism_bench.units import bytes_text, rate_text

MODES = {"cold": "cold_time", "hot": "hot_time"}


@dataclass(frozen=True)
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

    def __str__(self):
        rates = [rate_text(self.bandwidth, "B/s")] if self.bandwidth else []
        rates += [rate_text(self.flop_rate, "FLOP/s")] if self.flop_rate else []
        return super().__str__() + "".join(f", {rate}" for rate in rates)


def benchmark(
    function: Callable[[], object],
    *,
    mode: str = "cold",
    stream=None,
    bytes: int | None = None,
    flops: int | None = None,
    name: str | None = None,
) -> Benchmark:
    """Time a callable without arguments that works on the current CUDA stream of CuPy or PyTorch.

    `mode` is `cold` (caches cleared before each call) or `hot` (replay of a CUDA graph of many calls). `stream` is
    a CuPy or PyTorch stream to time on; by default one of ours is made current while the callable runs. `bytes` and
    `flops` of one call, where given, make rates. Seconds inside. Raises UsageError for a bad mode,
    BackendUnavailable without a GPU, MeasurementInvalid where the call cannot be timed honestly (it waits for the
    device, works on another stream, or reads less bytes than it says).
    """
    if mode not in MODES:
        raise UsageError(f"mode is '{mode}'; it is one of {', '.join(MODES)}")
    if not callable(function):
        raise UsageError(f"benchmark takes a callable without arguments, not {type(function).__name__}")
    from prism_bench.backends.cuda.borrowed import borrowed_backend

    metric, subject = MODES[mode], name or getattr(function, "__name__", "callable")
    with borrowed_backend(stream) as (backend, library):
        measured = _measure(backend, library, function, metric, subject)
    _refuse_impossible_bytes(backend, measured, bytes, mode)
    return Benchmark(**{**vars(measured), "bytes": bytes, "flops": flops})


def _measure(backend, library, function, metric, subject):
    from prism_bench.measure import ClockGate
    from prism_bench.workbench.measuring import measure_metric
    from prism_bench.workbench.settings import Settings

    function()
    once = backend.callable_timers(function, library)[metric]()
    return measure_metric(metric, subject, once, Settings().criteria[metric], ClockGate())[0]


def _refuse_impossible_bytes(backend, measured, bytes, mode):
    """No memory moves faster than this device's clock and bus allow: the stated bytes are wrong, or were not moved."""
    peak = backend.peak_bandwidth()
    if mode == "cold" and bytes and peak and measured.median and bytes / measured.median > peak:
        raise MeasurementInvalid(
            f"{bytes_text(bytes)} in {measured.median:.3g} s is {rate_text(bytes / measured.median, 'B/s')}; "
            f"this device's memory moves {rate_text(peak, 'B/s')} at most"
        )
