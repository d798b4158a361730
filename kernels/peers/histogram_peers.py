"""Histograms of two arrays by libraries: peers of histogram_2d."""

from types import ModuleType
from typing import Any

from prism_bench.spec import AnyArray

from . import cub_peers


def cupy_histogram(
    cupy: ModuleType, x: AnyArray, y: AnyArray, columns: int, rows: int, x_lo: float, x_hi: float, y_lo: float,
    y_hi: float,
) -> Any:  # fmt: skip
    """Bins by arithmetic, then atomic additions: the host waits in `histogram2d` and `bincount`."""
    column = cupy.minimum(cupy.floor((x.astype("float64") - x_lo) * (columns / (x_hi - x_lo))), columns - 1)
    row = cupy.minimum(cupy.floor((y.astype("float64") - y_lo) * (rows / (y_hi - y_lo))), rows - 1)
    kept = (x >= x_lo) & (x <= x_hi) & (y >= y_lo) & (y <= y_hi)
    counts = cupy.zeros(rows * columns + 1, "int32")
    cupy.add.at(counts, cupy.where(kept, row * columns + column, rows * columns).astype("int32"), 1)
    return counts[:-1]


def torch_bins(
    torch: ModuleType, x: AnyArray, y: AnyArray, columns: int, rows: int, x_lo: float, x_hi: float, y_lo: float,
    y_hi: float,
) -> Any:  # fmt: skip
    """The bin of every pair as a float, by arithmetic; the one after the last for pairs outside of the bounds."""
    column = ((x.double() - x_lo) * (columns / (x_hi - x_lo))).floor().clamp(max=columns - 1)
    row = ((y.double() - y_lo) * (rows / (y_hi - y_lo))).floor().clamp(max=rows - 1)
    kept = (x >= x_lo) & (x <= x_hi) & (y >= y_lo) & (y <= y_hi)
    return torch.where(kept, row * columns + column, float(rows * columns))


def torch_scatter(
    torch: ModuleType, x: AnyArray, y: AnyArray, columns: int, rows: int, x_lo: float, x_hi: float, y_lo: float,
    y_hi: float,
) -> Any:  # fmt: skip
    """Bins by arithmetic, then atomic additions: the host waits for `bincount`, which is no peer."""
    bins = torch_bins(torch, x, y, columns, rows, x_lo, x_hi, y_lo, y_hi).long()
    counts = torch.zeros(rows * columns + 1, dtype=torch.int32, device=x.device)
    return counts.scatter_add_(0, bins, torch.ones_like(bins, dtype=torch.int32))[:-1]


def cub_histogram(
    cub: ModuleType, x: AnyArray, y: AnyArray, columns: int, rows: int, x_lo: float, x_hi: float, y_lo: float,
    y_hi: float,
) -> Any:  # fmt: skip
    """One histogram of bin numbers, which are made where both arrays are read."""

    def bin_in(value: str, low: float, high: float, bins: int) -> str:
        place = f"int(floor(((double){value} - {low!r}) * {bins / (high - low)!r}))"
        return f"min({place}, {bins - 1})"

    inside = f"v[0] >= {x_lo!r} && v[0] <= {x_hi!r} && v[1] >= {y_lo!r} && v[1] <= {y_hi!r}"
    place = f"{bin_in('v[1]', y_lo, y_hi, rows)} * {columns} + {bin_in('v[0]', x_lo, x_hi, columns)}"
    return cub_peers.bin_counts(cub, (x, y), f"{inside} ? {place} : -1", rows * columns)
