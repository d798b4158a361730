"""Published rules of choice: form of a matrix product, entropy window and LSTM batch, with what they cost in time.

The rules for products are those of three design documents and of the benchmark's advice; they contradict one another.
Neither window nor batch is free: another window is another result, and a larger batch is a longer wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prism_bench.workflows.tuning.crossover import (
    TARGETS,
    Batch,
    CrossoverCost,
    Measured,
    Rule,
    Window,
    costs,
    largest_within,
)


def by_volume(m: int, k: int, n: int) -> str:
    """Return the form by the technical description's rule."""
    volume = m * k * n
    return "fp32" if volume < 256**3 else "f16" if volume < 1024**3 else "wmma"


def by_smallest_dimension(m: int, k: int, n: int) -> str:
    """Return the form by the profiling guide's rule."""
    return "fp32" if min(m, k, n) < 512 else "wmma"


def by_low_volume(m: int, k: int, n: int) -> str:
    """Return the form by the published code's rule: wmma above 100^3."""
    return "fp32" if m * k * n <= 10**6 else "wmma"


def by_benchmark(m: int, k: int, n: int) -> str:
    """Return the form by the published benchmark's advice: wmma above 256, fp32 below 64 and where it has no advice."""
    return "wmma" if min(m, k, n) > 256 else "fp32"


POLICIES: Mapping[str, Rule] = {
    "volume": by_volume,
    "smallest dimension": by_smallest_dimension,
    "low volume": by_low_volume,
    "benchmark": by_benchmark,
}


def window_of(pixels: int) -> int:
    """Return the guide's window for an image of so many pixels."""
    return 8 if pixels > 200_000 else 16 if pixels > 50_000 else 32


def batch_of(latency: float) -> int:
    """Return the guide's batch for an answer that may take `latency` seconds."""
    return 8 if latency < 5e-3 else 32 if latency < 10e-3 else 64


@dataclass(frozen=True)
class BatchChoice:
    """The guide's batch just below the target of `seconds` with its time, and the largest measured one within it."""

    seconds: float
    guide: int
    guide_seconds: float
    measured: int | None


def costs_of(measured: Measured) -> list[CrossoverCost]:
    """Return what each published rule costs over the measured shapes of a product; none where none was measured."""
    return costs(measured.matmul, POLICIES) if measured.matmul else []


def window_choices(measured: Measured) -> list[Window]:
    """Return the measured rows that the guide chooses."""
    return [row for row in measured.windows if window_of(row.rows * row.cols) == row.window]


def batch_choices(rows: tuple[Batch, ...]) -> list[BatchChoice]:
    """Return the choice for each target whose batch has a time."""
    seconds = {row.batch: row.seconds for row in rows}
    guide = {target: batch_of(target * 0.999) for target in TARGETS}
    return [
        BatchChoice(target, batch, seconds[batch], largest_within(seconds, target))
        for target, batch in guide.items()
        if batch in seconds
    ]
