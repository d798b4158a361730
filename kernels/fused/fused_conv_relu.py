"""max(W * X, 0): the cross-correlation of `conv2d` on one image, rectified in registers; NaN stays.

Floors of S1 on an H200: 537 MB / 4.29 TB/s = 125 us; 0.6 G FMA = 20 us: the memory bounds it. This is the
single-channel form; images of several channels belong to a kernel of their own.
"""

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Launch, Out, Rule, Size, Workload, reduction

BURST, BURSTS_OF_A_TILE = 10, {3: 1, 5: 2, 7: 2}  # input rows that a warp fetches at once, as in conv2d


def launch_any(out_rows, out_cols):
    """One thread per output; rows beyond the grid are reached by striding."""
    grid = (-(-out_cols // 32), min(-(-out_rows // 8), 65_535))
    return Launch(grid=grid, block=(32, 8), entry="fused_conv_relu_any")


def launch(k, stride, cols, padding, out_rows, out_cols, device):
    """A warp for 128 columns, in tiles of few bursts; 7 x 7 taps in one wave of taller tiles, as in conv2d."""
    if stride != 1 or k not in BURSTS_OF_A_TILE:
        return launch_any(out_rows, out_cols)
    height = BURST * BURSTS_OF_A_TILE[k] - (k - 1)
    if k == 7:
        height = max(24, -(-out_rows // max(1, 3 * device.sm_count // -(-out_cols // 512))))
    block = min(128, -(-out_cols // 128) * 32)
    grid = (-(-out_cols // (4 * block)), max(1, min(-(-out_rows // height), 65_535)))
    aligned = cols % 4 == 0 and 2 * padding == k - 1
    return Launch(grid=grid, block=block, entry=f"fused_conv_relu<{k}, {str(aligned).lower()}>")


def correlated(x, taps, k, stride, padding, out_rows, out_cols, xp):
    """The image shifted under every tap in turn."""
    padded = xp.pad(x, padding)
    y = xp.zeros((out_rows, out_cols))
    for u in range(k):
        for v in range(k):
            window = padded[u : u + (out_rows - 1) * stride + 1 : stride, v : v + (out_cols - 1) * stride + 1 : stride]
            y += taps[u, v] * window
    return y


def reference(x, taps, k, stride, padding, out_rows, out_cols, xp):
    return xp.maximum(correlated(x, taps, k, stride, padding, out_rows, out_cols, xp), 0)


def magnitude(x, taps, k, stride, padding, out_rows, out_cols, xp):
    return correlated(xp.abs(x), xp.abs(taps), k, stride, padding, out_rows, out_cols, xp)


def torch_conv_relu(torch, x, taps, stride, padding):
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        y = torch.nn.functional.conv2d(x[None, None], taps[None, None], stride=stride, padding=padding)
    return torch.relu_(y)[0, 0]


def spotted(rows, cols):
    """Two pixels that are not finite."""
    x = np.random.default_rng(3).normal(size=(rows, cols))
    x[4, 5], x[9, 30] = np.nan, np.inf
    return x


spec = KernelSpec(
    entry="fused_conv_relu<3, true>",
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
    peers={"torch": torch_conv_relu},
    flops=lambda k, out_rows, out_cols: (2 * k * k + 1) * out_rows * out_cols,
    workloads={"S0": Workload(rows=256, cols=256, k=3), "S1": Workload(rows=8192, cols=8192, k=3)},
    edges=(
        *(Workload(rows=1, cols=1, k=k, padding=p) for k, p in ((1, 0), (3, 1), (2, 1))),
        *(Workload(rows=31, cols=c, k=k, padding=k // 2) for k in (3, 5, 7) for c in (40, 131)),
        Workload(rows=30, cols=29, k=4, padding=2),
        Workload(rows=23, cols=41, k=3, stride=2),
        Workload(rows=0, cols=5, k=3, padding=2),
    ),
    golden=tuple(
        Golden(
            Workload(rows=20, cols=40, k=k, padding=k // 2),
            inputs={"x": spotted, "taps": np.full((k, k), -1.0)},
            expected={},
            source="NaN passes the maximum; windows with an infinity give 0 through negative taps",
        )
        for k in (3, 4, 5)
    ),
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
)  # fmt: skip
