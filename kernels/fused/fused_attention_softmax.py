"""O = softmax(scale Q K^T + mask) V per head, the scores never in memory: online softmax, half operands, FP32 sums.

Floors of S1 on an H200: 550 GFLOP / 990 TFLOP/s = 0.56 ms on the tensor cores, 2.1 G exponentials at 16 a clock and
multiprocessor = 0.57 ms. Warpgroup instructions on compute capability 9.0, for heads of whole 16-byte pieces up to 128
wide, which run ahead of each other over a ring of three tiles (1.21 ms; 1.56 ms in step). Elsewhere mma.sync.
A query to which no key is open gives zeros. `scaling=None` is 1 / sqrt(width).
"""

from math import sqrt

import numpy as np
from prism_bench_catalogue.include.attention import (
    RULES,
    arguments,
    attention,
    launcher,
    launcher_fp32,
    operations,
    row_closed,
)
from prism_bench_catalogue.include.bfloat import BFLOATS, wide
from prism_bench_catalogue.include.tensor_tile import WARPGROUPS

from prism_bench import Budget, Golden, KernelSpec, Variant, Workload, normwise


def reference(q, k, v, mask, scale, causal, masked, length, width, xp):
    """Head by head and 1024 queries at a time, so that the scores fit."""
    q, k, v = (wide(x, xp).reshape(-1, length, width) for x in (q, k, v))
    o = xp.zeros(q.shape)
    for head in range(len(q)):
        for first in range(0, length, 1024):
            rows = slice(first, first + 1024)
            part = mask[rows] if masked else None
            o[head, rows] = attention(q[head, rows], k[head], v[head], first, part, scale, causal, xp)
    return o


def torch_attention(torch, q, k, v, mask, scale, causal, masked):
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q, k, v, attn_mask=mask.to(q.dtype) if masked else None, is_causal=bool(causal), scale=scale)


def torch_bfloat(torch, q, k, v, mask, scale, causal, masked):
    q, k, v = (x.view(torch.bfloat16) for x in (q, k, v))
    return torch_attention(torch, q, k, v, mask, scale, causal, masked).float()


SHAPE = "batch heads length width"


def sized(batch, heads, length, width, **more):
    return Workload(batch=batch, heads=heads, length=length, width=width, **more)


# Pinned to warpgroup instructions: from one tile to several, ragged, causal and masked ones.
LADDER = (
    *(sized(1, 1, length, width) for length in (128, 64, 255, 640, 1) for width in (64, 128)),
    *(sized(1, 2, 200, width) for width in (8, 40, 72)),
    *(sized(2, 1, length, width, causal=1) for length, width in ((128, 64), (333, 128), (1000, 64))),
    *(sized(1, 1, length, width, masked=1) for length, width in ((130, 64), (300, 128))),
    sized(1, 1, 400, 104, causal=1, masked=1),
    sized(3, 5, 1030, 128, scaling=0.5),
)

spec = KernelSpec(
    entry="fused_attention_softmax",
    arguments=arguments(SHAPE, "float16"),
    parameters={"causal": 0, "masked": 0, "scaling": None, "shape": None},
    derived={
        "mask_extent": lambda length, masked: length if masked else 0,
        "scale": lambda width, scaling: 1 / sqrt(width) if scaling is None else scaling,
    },
    rules=RULES,
    launch=launcher("fused_attention_softmax"),
    reference=reference,
    tolerance=normwise(1e-3),
    peers={"torch": torch_attention},
    flops=operations,
    arithmetic="tensor",
    workloads={
        "S0": Workload(batch=1, heads=1, length=256, width=64),
        "S1": Workload(batch=8, heads=16, length=4096, width=64),
        "S2": Workload(batch=2, heads=32, length=16_384, width=128),
    },
    edges=(
        Workload(batch=0, heads=2, length=5, width=8),
        Workload(batch=1, heads=3, length=1, width=1),
        Workload(batch=2, heads=2, length=70, width=40, causal=1),
        Workload(batch=1, heads=1, length=129, width=9, masked=1),
        Workload(batch=2, heads=3, length=130, width=64),
        Workload(batch=1, heads=1, length=67, width=72, causal=1, masked=1),
        Workload(batch=1, heads=5, length=140, width=128, causal=1),
        Workload(batch=1, heads=1, length=33, width=200, scaling=0.5),
        Workload(batch=1, heads=2, length=197, width=64, shape="2x64"),
        Workload(batch=1, heads=1, length=131, width=64, shape="2x32", causal=1, masked=1),
        Workload(batch=1, heads=1, length=77, width=80, shape="2x32"),
    ),
    golden=(
        Golden(
            Workload(batch=1, heads=1, length=20, width=8, masked=1),
            inputs={"q": 1.0, "k": 1.0, "v": lambda length: np.arange(length)[:, None], "mask": row_closed},
            expected={"o": lambda length: np.array([length - 1, 9.5, 0] + [9.5] * (length - 3))[:, None]},
            source="by hand: a closed row gives zeros, equal scores the mean",
        ),
        Golden(
            Workload(batch=1, heads=1, length=20, width=64, causal=1),
            inputs={"q": 60.0, "k": 60.0, "v": lambda length: np.arange(length)[:, None], "mask": np.zeros((0, 0))},
            expected={"o": lambda length: np.arange(length)[:, None] / 2},
            source="by hand: scores of 230,400 do not overflow before they are scaled",
        ),
        Golden(
            Workload(batch=1, heads=1, length=3, width=2),
            inputs={
                "q": [[1, 0], [np.nan, 0], [2, 0]], "k": [[1, 0], [0, 1], [1, 1]], "v": [[1, 2], [3, 4], [5, 6]],
                "mask": np.zeros((0, 0)),
            },
            expected={},
            source="NaN passes in its own row",
        ),
    ),
    variants={
        "wgmma": Variant(
            "warpgroup instructions (wgmma), compute capability 9.0 only",
            parameters={"causal": 0, "masked": 0, "scaling": None, "shape": "warpgroups"},
            requires=WARPGROUPS,
            edges=LADDER,
            golden=(),
            budgets=(),
            only_labels=("S0",),
        ),
        "bfloat16": Variant(
            "bfloat16 operands, FP32 output",
            arguments=arguments(SHAPE, "uint16", "float32", BFLOATS),
            launch=launcher("fused_attention_softmax", "BfloatHead"),
            tolerance=normwise(1e-2),
            peer_tolerance=normwise(1e-2),
            peers={"torch": torch_bfloat},
            only_labels=("S0", "S1"),
            golden=(),
            edges=(
                sized(2, 2, 70, 40, causal=1),
                sized(1, 1, 129, 9, masked=1),
                sized(1, 3, 131, 128),
            ),
            budgets=(Budget("peer_ratio", at_least=0.5, label="S1"),),
        ),
        "float32": Variant(
            "FP32 throughout, on the ordinary cores",
            arguments=arguments(SHAPE, "float32"),
            launch=launcher_fp32("fused_attention_softmax_fp32"),
            arithmetic="fp32",
            tolerance=normwise(1e-5),
            peers={"torch": torch_attention},
            only_labels=("S0", "S1"),
            budgets=(Budget("peer_ratio", at_least=0.8, label="S1"),),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.75, label="S1"), Budget("peer_ratio", at_least=0.75, label="S2")),
)  # fmt: skip
