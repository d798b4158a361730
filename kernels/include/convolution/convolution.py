"""Convolution of images: launches, sizes and data of convolution.cuh, and of the tiles for images of one channel."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from prism_bench import Budget, In, Launch, Out, Rule, Size, Variant, Workload, reduction
from prism_bench.spec import AnyArray, ArrayModule, Device

# One channel: input rows that a warp fetches at once, and how often in a tile.
BURST, BURSTS_OF_A_TILE = 10, {3: 1, 5: 2, 7: 2}


def any_taps(name: str, out_rows: int, out_cols: int) -> Launch:
    """One thread per output; rows beyond the grid are reached by striding."""
    return Launch(grid=(-(-out_cols // 32), min(-(-out_rows // 8), 65_535)), block=(32, 8), entry=name)


def tiles(name: str, k: int, cols: int, padding: int, out_rows: int, out_cols: int, height: int) -> Launch:
    """A warp for 128 columns; 16-byte accesses where the window is centred and rows are fours."""
    block = min(128, -(-out_cols // 128) * 32)
    grid = (-(-out_cols // (4 * block)), max(1, min(-(-out_rows // height), 65_535)))
    aligned = cols % 4 == 0 and 2 * padding == k - 1
    return Launch(grid=grid, block=block, entry=f"{name}<{k}, {str(aligned).lower()}>")


def short(k: int) -> int:
    """Output rows of a tile that is read in few bursts: what is read twice comes from the L2 cache."""
    return BURST * BURSTS_OF_A_TILE[k] - (k - 1)


def launch_one(name: str) -> Callable[..., Any]:
    """7 x 7 taps keep the FMA pipe busy: rows shared by two tiles cost more than order brings; so one wave of tiles."""

    def launch(k: int, stride: int, cols: int, padding: int, out_rows: int, out_cols: int, device: Device) -> Launch:
        if stride != 1 or k not in BURSTS_OF_A_TILE:
            return any_taps(f"{name}_any", out_rows, out_cols)
        wave = 3 * device.sm_count // -(-out_cols // 512)
        height = max(24, -(-out_rows // max(1, wave))) if k == 7 else short(k)
        return tiles(name, k, cols, padding, out_rows, out_cols, height)

    return launch


def correlated_one(
    x: AnyArray, taps: AnyArray, k: int, stride: int, padding: int, out_rows: int, out_cols: int, xp: ArrayModule
) -> AnyArray:
    """The image shifted under every tap in turn."""
    padded = xp.pad(x, padding)
    y = xp.zeros((out_rows, out_cols))
    for u in range(k):
        for v in range(k):
            window = padded[u : u + (out_rows - 1) * stride + 1 : stride, v : v + (out_cols - 1) * stride + 1 : stride]
            y += taps[u, v] * window
    return y


def magnitude_one(
    x: AnyArray, taps: AnyArray, k: int, stride: int, padding: int, out_rows: int, out_cols: int, xp: ArrayModule
) -> AnyArray:
    return correlated_one(xp.abs(x), xp.abs(taps), k, stride, padding, out_rows, out_cols, xp)


ONE = (
    In("x", "rows cols"), In("taps", "k k"), Out("y", "out_rows out_cols"), Size("rows"), Size("cols"),
    Size("out_rows"), Size("out_cols"), Size("k"), Size("stride"), Size("padding"),
)  # fmt: skip
DERIVED_ONE = {
    "out_rows": lambda rows, k, stride, padding: (rows + 2 * padding - k) // stride + 1,
    "out_cols": lambda cols, k, stride, padding: (cols + 2 * padding - k) // stride + 1,
}
RULES_ONE = (
    Rule("k >= 1, stride >= 1 and padding >= 0", lambda k, stride, padding: min(k, stride, padding + 1) >= 1),
    Rule("k <= rows + 2 padding", lambda rows, k, padding: k <= rows + 2 * padding),
    Rule("k <= cols + 2 padding", lambda cols, k, padding: k <= cols + 2 * padding),
)

# Many channels.
TILES = {"WideConvolution": (64, 256), "SlimConvolution": (16, 128)}  # output channels and pixels, a thread for each

SIZES = (
    "channels_in", "channels_out", "groups", "rows", "cols", "out_rows", "out_cols", "k_rows", "k_cols", "stride",
    "padding", "dilation",
)  # fmt: skip
ARGUMENTS = (
    In("x", "batch channels_in rows cols"), In("taps", "channels_out group_in k_rows k_cols"),
    In("bias", "channels_out"), Out("y", "batch channels_out out_rows out_cols"), *(Size(name) for name in SIZES),
    Size("pixels", "int64"),
)  # fmt: skip
PARAMETERS = {"stride": 1, "padding": 1, "dilation": 1, "groups": 1, "k_rows": 3, "k_cols": 3}


def span(k: int, dilation: int) -> int:
    """Pixels from the first tap to the last."""
    return (k - 1) * dilation + 1


DERIVED = {
    "group_in": lambda channels_in, groups: channels_in // groups,
    "out_rows": lambda rows, k_rows, stride, padding, dilation: (
        (rows + 2 * padding - span(k_rows, dilation)) // stride + 1
    ),
    "out_cols": lambda cols, k_cols, stride, padding, dilation: (
        (cols + 2 * padding - span(k_cols, dilation)) // stride + 1
    ),
    "pixels": lambda batch, out_rows, out_cols: batch * out_rows * out_cols,
}
RULES = (
    Rule(
        "taps, stride, dilation and groups of at least 1, padding of at least 0",
        lambda k_rows, k_cols, stride, dilation, groups, padding: (
            min(k_rows, k_cols, stride, dilation, groups, padding + 1) >= 1
        ),
    ),
    Rule("channels in whole groups", lambda channels_in, channels_out, groups: channels_in % groups == 0
         and channels_out % groups == 0),
    Rule("outputs of a channel < 2^31", lambda out_rows, out_cols: out_rows * out_cols < 1 << 31),
    Rule("taps no taller than the padded image", lambda rows, k_rows, padding, dilation: (
        span(k_rows, dilation) <= rows + 2 * padding
    )),
    Rule("taps no wider than the padded image", lambda cols, k_cols, padding, dilation: (
        span(k_cols, dilation) <= cols + 2 * padding
    )),
)  # fmt: skip


STAGES, STAGE = 4, 4 * (64 * (16 + 4) + 16 * (128 + 8))  # of TensorConvolution, in bytes


def launch_tf32(name: str) -> Callable[..., Any]:
    """A block for 64 output channels of a group and 128 pixels, on the tensor cores."""

    def launch(channels_out: int, groups: int, pixels: int) -> Launch:
        grid = -(-pixels // 128) * groups * -(-(channels_out // groups) // 64)
        return Launch(grid, 128, shared=STAGES * STAGE, entry=f"{name}<TensorConvolution>")

    return launch


def launch_of(name: str) -> Callable[..., Any]:
    """A block for a tile of a group's output channels and of the pixels of all images."""

    def launch(channels_out: int, groups: int, pixels: int) -> Launch:
        tile = "WideConvolution" if channels_out // groups > 16 else "SlimConvolution"
        tall, wide = TILES[tile]
        return Launch(-(-pixels // wide) * groups * -(-(channels_out // groups) // tall), wide, entry=f"{name}<{tile}>")

    return launch


def correlated_channels(
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    out_rows: int,
    out_cols: int,
    xp: ArrayModule,
) -> AnyArray:
    """A product with every tap's matrix of channels, on the images shifted under it, group by group."""
    padded = xp.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    y = xp.zeros((len(x), len(taps), out_rows, out_cols)) + bias[:, None, None]
    ins, outs = x.shape[1] // groups, len(taps) // groups
    for u in range(taps.shape[2]):
        rows = slice(u * dilation, u * dilation + (out_rows - 1) * stride + 1, stride)
        for v in range(taps.shape[3]):
            cols = slice(v * dilation, v * dilation + (out_cols - 1) * stride + 1, stride)
            for g in range(groups):
                window = padded[:, g * ins : (g + 1) * ins, rows, cols].reshape(len(x), ins, out_rows * out_cols)
                matrix = taps[g * outs : (g + 1) * outs, :, u, v]
                y[:, g * outs : (g + 1) * outs] += xp.matmul(matrix, window).reshape(len(x), outs, out_rows, out_cols)
    return y


def magnitude_channels(
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    out_rows: int,
    out_cols: int,
    xp: ArrayModule,
) -> AnyArray:
    absolute = xp.abs(x), xp.abs(taps), xp.abs(bias)
    return correlated_channels(*absolute, stride, padding, dilation, groups, out_rows, out_cols, xp)


def torch_channels(
    torch: ModuleType,
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Any:
    """In full float32, as peers begin; a `with` block of cuDNN's flags would break the graph that is compiled."""
    return torch.nn.functional.conv2d(x, taps, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


def flops(batch: int, channels_out: int, group_in: int, k_rows: int, k_cols: int, out_rows: int, out_cols: int) -> int:
    return 2 * batch * channels_out * out_rows * out_cols * (group_in * k_rows * k_cols + 1)


def images(batch: int, channels_in: int, channels_out: int, rows: int, cols: int, **parameters: Any) -> Workload:
    return Workload(batch=batch, channels_in=channels_in, channels_out=channels_out, rows=rows, cols=cols, **parameters)


WORKLOADS = {
    "S0": images(1, 16, 16, 64, 64),
    "S2": images(32, 64, 64, 224, 224),
}
EDGES = (
    images(0, 3, 4, 5, 5),
    images(1, 1, 1, 1, 1),
    images(2, 3, 5, 9, 7),
    images(3, 9, 17, 6, 6, k_rows=1, k_cols=1, padding=0),
    images(1, 8, 70, 20, 15),
    images(2, 17, 33, 8, 12, k_rows=2, k_cols=5, padding=2),
    images(2, 4, 6, 11, 13, groups=2, stride=2),
    images(2, 6, 6, 10, 12, groups=6, dilation=2, padding=2),
    images(1, 3, 40, 12, 9, stride=3, padding=4, dilation=3),
)


def channels(note: str, reference: Callable[..., Any], peer: Callable[..., Any], **changes: Any) -> Variant:
    """The variant of a spec for images of several channels; the changes have its entry and its launch."""
    fields = {
        "arguments": ARGUMENTS,
        "parameters": PARAMETERS,
        "derived": DERIVED,
        "rules": RULES,
        "tolerance": reduction(magnitude=magnitude_channels),
        "budgets": (Budget("peer_ratio", at_least=0.8, label="S2"),),
        "flops": flops,
        "workloads": WORKLOADS,
        "edges": EDGES,
        "golden": (),
        "traffic_factor": None,
        "peers": {"torch": peer},
    }
    return Variant(note, reference=reference, **fields | changes)


def torch_shifts(torch: ModuleType, x: AnyArray, taps: AnyArray, stride: int, padding: int) -> Any:
    """A product and a sum for each tap: one kernel where it is compiled."""
    padded, k = torch.nn.functional.pad(x, (padding,) * 4), len(taps)
    rows, cols = padded.shape[0] - k + 1, padded.shape[1] - k + 1
    return sum(taps[i, j] * padded[i : i + rows : stride, j : j + cols : stride] for i in range(k) for j in range(k))
