"""How the windows of window_entropy.cuh are launched, and their entropies in float64."""

import numpy as np

from prism_bench import Launch, Zero
from prism_bench.spec import AnyArray, ArrayModule, Device


def counters_of(levels: int) -> int:
    """Bytes of a warp: a word for each level, or none, and lane."""
    return (levels + 1) * 128


COUNTERS = counters_of(256)


def warps_that_fit(window: int, device: Device) -> int:
    """The warps of a block: each needs counters for 256 levels and for no level, next to the table."""
    return min(7, (device.max_shared_bytes - table_bytes(window)) // COUNTERS)


def table_bytes(window: int) -> int:
    return 4 * ((window**2 + 32) // 32 * 32)


def launch_naive(rows: int, cols: int, pixel: str = "float", image: str = "x") -> Launch:
    return Launch(
        grid=(-(-cols // 32), -(-rows // 8)), block=(32, 8), entry=f"pixel_entropy_naive<{pixel}>",
        arguments=(image, "entropy", "lo", "hi", "bins", "window", "unit", "rows", "cols"),
    )  # fmt: skip


def slide(
    rows: int, cols: int, window: int, pitch: int, pixel: str, device: Device, image: str = "x"
) -> Launch | tuple[Launch | Zero, ...]:
    """Codes of the levels; then a warp slides 128 windows (64 if they are wider than 16) down its strip of rows.

    `image` names the argument whose pixels these are.
    """
    warps = warps_that_fit(window, device) if window <= 64 else 0
    if warps < 1 or rows * cols == 0:
        return launch_naive(rows, cols, pixel, image)
    across = -(-cols // (128 if window <= 16 else 64))
    strips = max(1, min(warps * device.sm_count // across, -(-rows // 4)))
    warps = min(warps, -(-across * strips // device.sm_count))
    return (
        Launch(
            grid=(-(-pitch // 256), min(-(-(rows + window - 1) // 4), 65_535)), block=(64, 4),
            entry=f"pixel_entropy_codes<{window}, {pixel}>",
            arguments=(image, "codes", "table", "lo", "hi", "bins", "rows", "cols", "pitch"),
        ),
        Launch(
            grid=-(-across * strips // warps), block=32 * warps, shared=table_bytes(window) + warps * COUNTERS,
            entry=f"pixel_entropy<{window}>", arguments=("codes", "table", "entropy", "unit", "rows", "cols", "pitch"),
        ),
    )  # fmt: skip


def window_sums(mask: AnyArray, window: int, xp: ArrayModule) -> AnyArray:
    """How many pixels of the mask each window holds: along one axis after the other, runs of doubling length."""
    before, after = window // 2, window - 1 - window // 2
    counts = xp.pad(mask.astype("uint16" if window < 256 else "int32"), ((before, after), (before, after)))
    for axis in (0, 1):
        counts = run_sums(counts, window, axis, xp)
    return counts


def run_sums(values: AnyArray, length: int, axis: int, xp: ArrayModule) -> AnyArray:
    """Sums of every `length` neighbours along `axis`, put together from runs of 1, 2, 4 ..."""
    runs, total, at, run = xp.moveaxis(values, axis, 0), 0, 0, 1
    outputs = len(runs) - length + 1
    while run <= length:
        if length & run:
            total = total + runs[at : at + outputs]
            at += run
        runs = runs[:-run] + runs[run:] if len(runs) > run else runs
        run *= 2
    return xp.moveaxis(total, 0, axis)


def times_log2(count: AnyArray, xp: ArrayModule) -> AnyArray:
    return count * xp.log2(xp.maximum(count, 1).astype("float64"))


def entropies(x: AnyArray, window: int, bins: int, lo: float, hi: float, normalised: bool, xp: ArrayModule) -> AnyArray:
    """log2 n - (1/n) sum of c log2 c, one level after the other."""
    lo, hi = float(np.float32(lo)), float(np.float32(hi))
    level = xp.clip(xp.floor(bins * (x - lo) / (hi - lo)), 0, bins - 1)
    n = window_sums(level >= 0, window, xp)
    total = times_log2(n, xp)
    for b in range(bins):
        members = level == b
        if members.any():
            total -= times_log2(window_sums(members, window, xp), xp)
    return total / xp.maximum(n, 1) / (np.log2(bins) if normalised else 1)
