"""Two-dimensional cross-correlation of one image with k x k taps: any stride and padding, zero outside.

This is the single-channel form; images of several channels belong to a kernel of their own.
"""

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Launch, Out, Rule, Size, Variant, Workload, reduction

# Floors of S1 on an H200: 537 MB / 4.29 TB/s = 125 us; 3.3 G FMA + 17 % other instructions at 1.9 GHz = 121 us.
# Bursts of rows in the grid's order: 146 us, 0.86 of a copy's rate (separable 0.92, S2 0.98); rows one by one or
# through cp.async stay at 0.76 to 0.86. Tiles short enough for 0.92 cost 7 x 7 more in products than they bring.
BURST, BURSTS_OF_A_TILE = 10, {3: 1, 5: 2, 7: 2}


def launch_any(out_rows, out_cols):
    """One thread per output; rows beyond the grid are reached by striding."""
    return Launch(grid=(-(-out_cols // 32), min(-(-out_rows // 8), 65_535)), block=(32, 8), entry="conv2d_any")


def tiles(name, k, cols, padding, out_rows, out_cols, height):
    """A warp for 128 columns; 16-byte accesses where the window is centred and rows are fours."""
    block = min(128, -(-out_cols // 128) * 32)
    grid = (-(-out_cols // (4 * block)), max(1, min(-(-out_rows // height), 65_535)))
    aligned = cols % 4 == 0 and 2 * padding == k - 1
    return Launch(grid=grid, block=block, entry=f"{name}<{k}, {str(aligned).lower()}>")


def short(k):
    """Output rows of a tile that is read in few bursts: what is read twice comes from the L2 cache."""
    return BURST * BURSTS_OF_A_TILE[k] - (k - 1)


def launch(k, stride, cols, padding, out_rows, out_cols, device):
    """7 x 7 taps keep the FMA pipe busy: rows shared by two tiles cost more than order brings; so one wave of tiles."""
    if stride != 1 or k not in BURSTS_OF_A_TILE:
        return launch_any(out_rows, out_cols)
    wave = 3 * device.sm_count // -(-out_cols // 512)
    height = max(24, -(-out_rows // max(1, wave))) if k == 7 else short(k)
    return tiles("conv2d", k, cols, padding, out_rows, out_cols, height)


def reference(x, taps, k, stride, padding, out_rows, out_cols, xp):
    """The image shifted under every tap in turn."""
    padded = xp.pad(x, padding)
    y = xp.zeros((out_rows, out_cols))
    for u in range(k):
        for v in range(k):
            window = padded[u : u + (out_rows - 1) * stride + 1 : stride, v : v + (out_cols - 1) * stride + 1 : stride]
            y += taps[u, v] * window
    return y


def magnitude(x, taps, k, stride, padding, out_rows, out_cols, xp):
    return reference(xp.abs(x), xp.abs(taps), k, stride, padding, out_rows, out_cols, xp)


def outer(function):
    """The same function for taps that are a column times a row."""

    def separable(x, column, row, k, stride, padding, out_rows, out_cols, xp):
        return function(x, column[:, None] * row, k, stride, padding, out_rows, out_cols, xp)

    return separable


def torch_conv2d(torch, x, taps, stride, padding):
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        return torch.nn.functional.conv2d(x[None, None], taps[None, None], stride=stride, padding=padding)[0, 0]


def cupy_correlate(cupy, x, taps, k, stride, padding):
    """SciPy's filter on the device; it knows centred windows alone."""
    from cupyx.scipy.ndimage import correlate

    if 2 * padding != k - 1:
        raise ValueError("cupyx.scipy.ndimage.correlate gives an output of the input's size")
    return correlate(x, taps, mode="constant")[::stride, ::stride]


def sobel_response(rows, cols):
    """Sobel-x on an image whose pixels are their column modulo 256: 8 inside, less where zeros come in."""
    image = np.pad(np.tile(np.arange(cols) % 256, (rows, 1)), 1).astype(float)
    slope = image[:, 2:] - image[:, :-2]
    return slope[:-2] + 2 * slope[1:-1] + slope[2:]


SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
guide = Workload(rows=256, cols=256, k=3)
columns = {"x": lambda cols: np.arange(cols) % 256}

spec = KernelSpec(
    entry="conv2d<3, true>",
    arguments=(
        In("x", "rows cols"), In("taps", "k k"), Out("y", "out_rows out_cols"), Size("rows"), Size("cols"),
        Size("out_rows"), Size("out_cols"), Size("k"), Size("stride"), Size("padding"),
    ),
    parameters={"stride": 1, "padding": 1},
    derived={
        "out_rows": lambda rows, k, stride, padding: (rows + 2 * padding - k) // stride + 1,
        "out_cols": lambda cols, k, stride, padding: (cols + 2 * padding - k) // stride + 1,
    },
    rules=(
        Rule("k >= 1, stride >= 1 and padding >= 0", lambda k, stride, padding: min(k, stride, padding + 1) >= 1),
        Rule("k <= rows + 2 padding", lambda rows, k, padding: k <= rows + 2 * padding),
        Rule("k <= cols + 2 padding", lambda cols, k, padding: k <= cols + 2 * padding),
    ),
    launch=launch,
    reference=reference,
    tolerance=reduction(magnitude=magnitude),
    peers={"torch": torch_conv2d, "cupy": cupy_correlate},
    flops=lambda k, out_rows, out_cols: 2 * k * k * out_rows * out_cols,
    workloads={
        "S0": guide,
        "S1": Workload(rows=8192, cols=8192, k=7, padding=3),
        "S2": Workload(rows=16_384, cols=16_384, k=3, padding=1),
    },
    edges=(
        *(Workload(rows=1, cols=1, k=k, padding=p) for k, p in ((1, 0), (3, 1), (7, 3), (2, 1))),
        *(Workload(rows=k, cols=k, k=k, padding=0) for k in (3, 4, 5, 7)),  # a single output
        *(Workload(rows=61, cols=c, k=k, padding=k // 2) for k in (3, 5, 7) for c in (4, 131, 516)),
        *(Workload(rows=37, cols=40, k=k, padding=p) for k, p in ((3, 0), (3, 3), (5, 7), (7, 2), (7, 12))),
        *(Workload(rows=30, cols=29, k=k, padding=p) for k, p in ((2, 0), (4, 2), (6, 6), (9, 4), (1, 2))),
        *(Workload(rows=23, cols=41, k=k, stride=s, padding=p) for k, s, p in ((3, 2, 1), (3, 4, 0), (5, 7, 5))),
        Workload(rows=20, cols=22, k=2, stride=3, padding=1),
        Workload(rows=0, cols=5, k=3, padding=2),
    ),
    golden=(
        Golden(guide, {**columns, "taps": SOBEL}, {"y": sobel_response}, source="profiling guide: interior value 8"),
    ),
    variants={
        "naive": Variant(
            "one thread per output", launch=launch_any, only_labels=("S0", "S1"), traffic_factor=None
        ),
        "separable": Variant(
            "taps that are a column times a row, in one pass",
            arguments=(
                In("x", "rows cols"), In("column", "k"), In("row", "k"), Out("y", "out_rows out_cols"), Size("rows"),
                Size("cols"), Size("out_rows"), Size("out_cols"), Size("padding"),
            ),
            rules=(Rule("k to be 3, 5 or 7 and stride 1", lambda k, stride: k in BURSTS_OF_A_TILE and stride == 1),),
            launch=lambda k, cols, padding, out_rows, out_cols: tiles(
                "conv2d_separable", k, cols, padding, out_rows, out_cols, short(k)
            ),
            reference=outer(reference),
            tolerance=reduction(magnitude=outer(magnitude)),
            flops=lambda k, out_rows, out_cols: 4 * k * out_rows * out_cols,
            edges=(
                *(Workload(rows=61, cols=132, k=k, padding=k // 2) for k in (3, 5, 7)),
                *(Workload(rows=61, cols=29, k=k, padding=2) for k in (3, 5, 7)),
            ),
            golden=(
                Golden(
                    guide, {**columns, "column": [1, 2, 1], "row": [-1, 0, 1]}, {"y": sobel_response},
                    source="profiling guide: interior value 8",
                ),
            ),
        ),
    },
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),
             Budget("bandwidth_share", at_least=0.85, label="S2")),
)  # fmt: skip
