"""Attention whose heads are columns of the same rows, read in place: online softmax, half operands, FP32 sums.

Floors of S1 on an H200: 550 GFLOP / 990 TFLOP/s = 0.56 ms on the tensor cores, 2.1 G exponentials at 16 a clock and
multiprocessor = 0.57 ms; mma.sync reaches two thirds of the first rate, and the two overlap in part only.
A query to which no key is open gives zeros. `scaling=None` is 1 / sqrt(width).
"""

from math import sqrt

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Launch, Out, Rule, Scalar, Size, Variant, Workload, normwise
from prism_bench.inputs import Fill

# Width of a head, rounded up: 16s of queries per warp and keys per step that its registers hold, the fastest first.
SHAPES = {64: ((2, 64), (1, 64), (2, 32), (1, 32)), 128: ((2, 32), (1, 32), (1, 16)), 256: ((1, 32),)}
SHAPES_FP32 = {64: (64, 32), 128: (32,), 256: (32,)}  # keys per step
LONGEST_WIDTH = max(SHAPES)


def shared_bytes(padded, rows, keys):
    """A tile of queries and two stages of keys and values, in rows 8 elements longer."""
    return 2 * (padded + 8) * (64 * rows + 4 * keys)


def shapes_of(width):
    return [f"{rows}x{keys}" for rows, keys in next(SHAPES[d] for d in SHAPES if d >= width)]


def chosen(padded, tiles, masked, device):
    """The first shape that fits; 16 queries a warp where 32 would leave multiprocessors idle."""
    few = tiles < device.sm_count
    fitting = [(r, k) for r, k in SHAPES[padded] if shared_bytes(padded, r, k) <= device.max_shared_bytes]
    fitting = [(r, k) for r, k in fitting if k < 64 or not masked] or list(SHAPES[padded])
    return min(fitting, key=lambda shape: shape[0]) if few else fitting[0]


def launch(batch, heads, length, width, causal, masked, shape, device):
    padded = next(d for d in SHAPES if d >= width)
    tiles = batch * heads * -(-length // 128)
    rows, keys = map(int, shape.split("x")) if shape else chosen(padded, tiles, masked, device)
    flags = ", ".join(str(bool(flag)).lower() for flag in (causal, masked))
    return Launch(
        grid=batch * heads * -(-length // (64 * rows)),
        block=128,
        shared=shared_bytes(padded, rows, keys),
        entry=f"multi_head_attention<AttentionTile<{padded}, {rows}, {keys}, {1 if width % 8 else 8}, {flags}>>",
    )


def shared_bytes_fp32(padded, keys):
    """Queries and keys depth-major, values, and weights key-major, in rows 4 floats longer."""
    return 4 * (padded * 68 + padded * (keys + 4) + keys * (padded + 4) + keys * 68)


def launch_fp32(batch, heads, length, width, causal, masked, device):
    padded = next(d for d in SHAPES_FP32 if d >= width)
    fitting = [keys for keys in SHAPES_FP32[padded] if shared_bytes_fp32(padded, keys) <= device.max_shared_bytes]
    keys = (fitting or SHAPES_FP32[padded])[0]
    flags = ", ".join(str(bool(flag)).lower() for flag in (causal, masked))
    return Launch(
        grid=batch * heads * -(-length // 64),
        block=128,
        shared=shared_bytes_fp32(padded, keys),
        entry=f"multi_head_attention_fp32<AttentionTile32<{padded}, {keys}, {1 if width % 4 else 4}, {flags}>>",
    )


def attention(q, k, v, first, mask, scale, causal, xp):
    """Queries `first` and on of one head; a query to which no key is open gives zeros."""
    scores = scale * (q @ k.T)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = xp.where(xp.arange(len(k)) > first + xp.arange(len(q))[:, None], -xp.inf, scores)
    top = scores.max(axis=1, keepdims=True)
    weights = xp.exp(scores - xp.where(top == -xp.inf, 0, top))
    total = weights.sum(axis=1, keepdims=True)
    return weights @ v / xp.where(total == 0, 1, total)


def reference(q, k, v, mask, scale, causal, masked, length, width, xp):
    """Head by head and 1024 queries at a time, so that the scores fit."""
    o = xp.zeros(q.shape)
    for sample in range(len(q)):
        for at in range(0, q.shape[2], width):
            head = slice(at, at + width)
            for first in range(0, length, 1024):
                rows = slice(first, first + 1024)
                part = mask[rows] if masked else None
                queries, keys, values = q[sample, rows, head], k[sample, :, head], v[sample, :, head]
                o[sample, rows, head] = attention(queries, keys, values, first, part, scale, causal, xp)
    return o


def torch_attention(torch, q, k, v, mask, heads, scale, causal, masked):
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    o = attend(q, k, v, attn_mask=mask.to(q.dtype) if masked else None, is_causal=bool(causal), scale=scale)
    return o.transpose(1, 2).flatten(2)


def operations(batch, heads, length, width, causal):
    return batch * heads * length * length * (4 * width + 4) // (2 if causal else 1)


# Normal, and one key in ten closed.
MASK = Fill(
    lambda rng, count, axes: np.where(rng.random(count) < 0.1, -np.inf, rng.normal(size=count)), "normal, 10 % -inf"
)
SHAPE = "batch length model"


def arguments(dtype):
    return (
        *(In(name, SHAPE, dtype=dtype) for name in "qkv"),
        In("mask", "mask_extent mask_extent", fill=MASK),
        Out("o", SHAPE, dtype=dtype),
        Size("heads"),
        Size("length"),
        Size("width"),
        Scalar("scale"),
    )


def row_closed(length):
    """Nothing is open to query 2, and only the last key to query 0."""
    mask = np.zeros((length, length))
    mask[2], mask[0, :-1] = -np.inf, -np.inf
    return mask


spec = KernelSpec(
    entry="multi_head_attention",
    arguments=arguments("float16"),
    parameters={"causal": 0, "masked": 0, "scaling": None, "shape": None},
    derived={
        "width": lambda model, heads: model // max(heads, 1),
        "mask_extent": lambda length, masked: length if masked else 0,
        "scale": lambda width, scaling: 1 / sqrt(width) if scaling is None else scaling,
    },
    rules=(
        Rule("heads to divide model", lambda model, heads: heads > 0 and model % heads == 0),
        Rule(f"1 <= width <= {LONGEST_WIDTH}", lambda width: 1 <= width <= LONGEST_WIDTH),
        Rule("scaling is None or positive", lambda scaling: scaling is None or scaling > 0),
        Rule("shape to be one of the width's", lambda width, shape: shape in (None, *shapes_of(width))),
        Rule("causal and masked are 0 or 1", lambda causal, masked: {causal, masked} <= {0, 1}),
    ),
    launch=launch,
    reference=reference,
    tolerance=normwise(1e-3),
    peers={"torch": torch_attention},
    flops=operations,
    arithmetic="tensor",
    workloads={
        "S0": Workload(batch=1, heads=8, length=128, model=512),
        "S1": Workload(batch=8, heads=16, length=4096, model=1024),
        "S2": Workload(batch=2, heads=32, length=16_384, model=4096),
    },
    edges=(
        Workload(batch=0, heads=2, length=5, model=16),
        Workload(batch=1, heads=3, length=1, model=3),
        Workload(batch=2, heads=2, length=70, model=80, causal=1),
        Workload(batch=1, heads=1, length=129, model=9, masked=1),
        Workload(batch=2, heads=3, length=130, model=192),
        Workload(batch=1, heads=1, length=67, model=72, causal=1, masked=1),
        Workload(batch=1, heads=5, length=140, model=640, causal=1),
        Workload(batch=1, heads=1, length=33, model=200, scaling=0.5),
        Workload(batch=2, heads=2, length=77, model=128, shape="2x64", causal=1),
    ),
    golden=(
        Golden(
            Workload(batch=1, heads=1, length=20, model=8, masked=1),
            inputs={"q": 1.0, "k": 1.0, "v": lambda length: np.arange(length)[:, None], "mask": row_closed},
            expected={"o": lambda length: np.array([length - 1, 9.5, 0] + [9.5] * (length - 3))[:, None]},
            source="by hand: a closed row gives zeros, equal scores the mean",
        ),
        Golden(
            Workload(batch=1, heads=1, length=20, model=64, causal=1),
            inputs={"q": 60.0, "k": 60.0, "v": lambda length: np.arange(length)[:, None], "mask": np.zeros((0, 0))},
            expected={"o": lambda length: np.arange(length)[:, None] / 2},
            source="by hand: scores of 230,400 do not overflow before they are scaled",
        ),
        Golden(
            Workload(batch=1, heads=1, length=3, model=2),
            inputs={
                "q": [[1, 0], [np.nan, 0], [2, 0]], "k": [[1, 0], [0, 1], [1, 1]], "v": [[1, 2], [3, 4], [5, 6]],
                "mask": np.zeros((0, 0)),
            },
            expected={},
            source="NaN passes in its own row",
        ),
    ),
    variants={
        "float32": Variant(
            "FP32 throughout, on the ordinary cores",
            arguments=arguments("float32"),
            launch=launch_fp32,
            arithmetic="fp32",
            tolerance=normwise(1e-5),
            peers={"torch": torch_attention},
            only_labels=("S0", "S1"),
            budgets=(Budget("peer_ratio", at_least=0.8, label="S1"),),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.5, label="S1"), Budget("peer_ratio", at_least=0.5, label="S2")),
)  # fmt: skip
