"""The forms of attention that both attention kernels have as variants, and the data that both are held to.

`sized(batch, heads, length, width, **more)` is the kernel's workload of those sizes, `shape` that of its q, k and v.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from math import sqrt
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, Variant, Workload, normwise
from prism_bench.spec import AnyArray, Peer

from ...peers.strong_peers import on_bfloats
from ..numbers.bfloat import BFLOATS
from ..tensor_cores.tensor_tile import WARPGROUPS
from .attention import arguments, launcher, launcher_fp32, row_closed

# Why nothing but PyTorch is a peer of attention in FP32.
NO_FLOATS = {
    "flash_attn": "operands of 16 and 8 bits only",
    "flashinfer": "operands of 16 and 8 bits only",
    "quack": "no attention",
    "liger": "no attention of this form",
}
# Why no others are peers of attention with 16-bit operands.
LOOKED_AT = {
    "flashinfer": "not tried: its prefill follows FlashAttention 2 and 3, whose successor is flash-attn-4",
    "quack": "no attention",
    "liger": "no attention of this form",
}
PARAMETERS = {"causal": 0, "masked": 0, "scaling": None, "shape": None}
DERIVED = {
    "mask_extent": lambda length, masked: length if masked else 0,
    "scale": lambda width, scaling: 1 / sqrt(width) if scaling is None else scaling,
}


def ladder(sized: Callable[..., Any]) -> tuple[Workload, ...]:
    """Pinned to warpgroup instructions: from one tile to several, ragged, causal and masked ones."""
    return (
        *(sized(1, 1, length, width) for length in (128, 64, 255, 384, 640, 1) for width in (64, 128)),
        *(sized(1, 2, 200, width) for width in (8, 40, 72)),
        *(sized(2, 1, length, width, causal=1) for length, width in ((128, 64), (333, 128), (1000, 64))),
        *(sized(1, 1, length, width, masked=1) for length, width in ((130, 64), (300, 128))),
        sized(1, 1, 400, 104, causal=1, masked=1),
        sized(3, 5, 1030, 128, scaling=0.5),
        *(sized(2, 3, 640, width, causal=1) for width in (64, 128)),
        # Scores that leave the range of the first tile's reference point.
        *(sized(1, 2, 512, width, scaling=5.0, causal=causal) for width in (64, 128) for causal in (0, 1)),
    )


def float_ladder(sized: Callable[..., Any]) -> tuple[Workload, ...]:
    """Widths that go through three TF32 products and others, from one line to several tiles, closed in all ways."""
    return (
        sized(0, 2, 5, 8),
        *(sized(1, 1, length, 64) for length in (1, 64, 129, 640)),
        *(sized(2, 2, 200, width, causal=1) for width in (40, 64)),
        *(sized(1, 1, 131, width, masked=1) for width in (9, 36)),
        *(sized(1, 1, 300, 64, causal=causal, masked=1) for causal in (0, 1)),
        *(sized(1, 1, 67, width, causal=1, masked=1) for width in (12, 72)),
        sized(1, 1, 33, 200, scaling=0.5),
    )


def closed(sized: Callable[..., Any]) -> Golden:
    return Golden(
        sized(1, 1, 20, 8, masked=1),
        inputs={"q": 1.0, "k": 1.0, "v": lambda length: np.arange(length)[:, None], "mask": row_closed},
        expected={"o": lambda length: np.array([length - 1, 9.5, 0] + [9.5] * (length - 3))[:, None]},
        source="calculated: a closed row gives zeros, equal scores the mean",
    )


def goldens(sized: Callable[..., Any]) -> tuple[Golden, Golden, Golden]:
    none = np.zeros((0, 0))
    return (
        closed(sized),
        Golden(
            sized(1, 1, 20, 64, causal=1),
            inputs={"q": 60.0, "k": 60.0, "v": lambda length: np.arange(length)[:, None], "mask": none},
            expected={"o": lambda length: np.arange(length)[:, None] / 2},
            source="calculated: scores of 230,400 do not overflow before they are scaled",
        ),
        Golden(
            sized(1, 1, 3, 2),
            inputs={
                "q": [[1, 0], [np.nan, 0], [2, 0]], "k": [[1, 0], [0, 1], [1, 1]], "v": [[1, 2], [3, 4], [5, 6]],
                "mask": none,
            },
            expected={},
            source="NaN passes in its own row",
        ),
    )  # fmt: skip


def of_bfloats(peer: Callable[..., Any]) -> Callable[..., Any]:
    """The same call on the bits of bfloat16 numbers, its output in FP32."""

    @wraps(peer)
    def call(torch: ModuleType, q: AnyArray, k: AnyArray, v: AnyArray, **others: Any) -> Any:
        return peer(torch, *(x.view(torch.bfloat16) for x in (q, k, v)), **others).float()

    return call


def forms(
    entry: str, shape: str, sized: Callable[..., Any], peer: Callable[..., Any], strong: Mapping[str, Peer]
) -> dict[str, Variant]:
    """The variants that differ in instruction or precision; `strong` are the peers that take 16-bit operands only."""
    bfloats = {name: on_bfloats(one, "qkv") for name, one in strong.items()}
    return {
        "wgmma": Variant(
            "warpgroup instructions (wgmma), compute capability 9.0 only",
            parameters={**PARAMETERS, "shape": "warpgroups"}, requires=WARPGROUPS, edges=ladder(sized), golden=(),
            budgets=(), only_labels=("S0",),
        ),
        "bfloat16": Variant(
            "bfloat16 operands, FP32 output",
            arguments=arguments(shape, "uint16", "float32", BFLOATS), launch=launcher(entry, "BfloatHead"),
            tolerance=normwise(1e-2), peer_tolerance=normwise(1e-2), peers={"torch": of_bfloats(peer)} | bfloats,
            only_labels=("S0", "S1"), golden=(), budgets=(Budget("peer_ratio", at_least=0.5, label="S1"),),
            edges=(
                sized(2, 2, 70, 40, causal=1), sized(1, 1, 129, 9, masked=1), sized(1, 3, 131, 128),
                sized(1, 2, 70, 40), sized(1, 2, 200, 40, shape="warpgroups"),
                *(
                    sized(1, 2, 640, width, causal=causal, shape="warpgroups")
                    for width in (64, 128) for causal in (0, 1)
                ),
            ),
            requires=lambda shape: WARPGROUPS if shape == "warpgroups" else None,
        ),
        "float32": Variant(
            "FP32 operands: three TF32 products by wgmma on compute capability 9.0, else the ordinary cores",
            arguments=arguments(shape, "float32"), launch=launcher_fp32(f"{entry}_fp32"), arithmetic="three_tf32",
            tolerance=normwise(1e-5), peers={"torch": peer}, looked_at=NO_FLOATS, only_labels=("S0", "S1"),
            budgets=(Budget("peer_ratio", at_least=0.8, label="S1"),), edges=float_ladder(sized),
        ),
    }  # fmt: skip
