"""O = softmax(scale Q K^T + mask) V per head, the scores never in memory: online softmax, half operands, FP32 sums.

The tensor cores and the exponentials take about as long as each other, so both limit it, and issue slots next. On
compute capability 9.0 warpgroup instructions: heads 64 or 128 wide whose keys are whole tiles of 128, without a mask,
come by tensor maps, and warpgroups take turns between products and exponentials; other heads of whole 16-byte pieces
up to 128 wide are copied by the warpgroups themselves. Elsewhere mma.sync. `float32` is three TF32 products by
warpgroup instructions for widths of whole 16 bytes up to 64, which the tensor cores limit, else on the ordinary cores,
where instruction issue does.
A query to which no key is open gives zeros. `scaling=None` is 1 / sqrt(width).
"""

from types import ModuleType
from typing import Any

from prism_bench import Budget, KernelSpec, Workload, normwise
from prism_bench.spec import AnyArray, ArrayModule

from ..include.attention.attention import (
    RULES,
    arguments,
    attention,
    launcher,
    operations,
)
from ..include.attention.attention_forms import DERIVED, LOOKED_AT, PARAMETERS, forms, goldens
from ..include.numbers.bfloat import wide
from ..peers.strong_peers import attention_peers


def reference(
    q: AnyArray,
    k: AnyArray,
    v: AnyArray,
    mask: AnyArray,
    scale: float,
    causal: int,
    masked: int,
    length: int,
    width: int,
    xp: ArrayModule,
) -> AnyArray:
    """Head by head and 1024 queries at a time, so that the scores fit."""
    q, k, v = (wide(x, xp).reshape(-1, length, width) for x in (q, k, v))
    o = xp.zeros(q.shape)
    for head in range(len(q)):
        for first in range(0, length, 1024):
            rows = slice(first, first + 1024)
            part = mask[rows] if masked else None
            o[head, rows] = attention(q[head, rows], k[head], v[head], first, part, scale, causal, xp)
    return o


def torch_attention(
    torch: ModuleType, q: AnyArray, k: AnyArray, v: AnyArray, mask: AnyArray, scale: float, causal: int, masked: int
) -> Any:
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q, k, v, attn_mask=mask.to(q.dtype) if masked else None, is_causal=bool(causal), scale=scale)


SHAPE = "batch heads length width"
STRONG = attention_peers(lambda x, heads: x, lambda o: o)


def sized(batch: int, heads: int, length: int, width: int, **more: Any) -> Workload:
    return Workload(batch=batch, heads=heads, length=length, width=width, **more)


spec = KernelSpec(
    entry="fused_attention_softmax",
    arguments=arguments(SHAPE, "float16"),
    parameters=PARAMETERS,
    derived=DERIVED,
    rules=RULES,
    launch=launcher("fused_attention_softmax"),
    reference=reference,
    tolerance=normwise(1e-3),
    peers={"torch": torch_attention, **STRONG},
    looked_at=LOOKED_AT,
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
    golden=goldens(sized),
    variants=forms("fused_attention_softmax", SHAPE, sized, torch_attention, STRONG),
    budgets=(Budget("peer_ratio", at_least=0.75, label="S1"), Budget("peer_ratio", at_least=0.75, label="S2")),
)  # fmt: skip
