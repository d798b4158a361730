"""Attention whose heads are columns of the same rows, read in place: online softmax, half operands, FP32 sums.

The tensor cores and the exponentials take about as long as each other, so both limit it, and issue slots next. On
compute capability 9.0 warpgroup instructions: heads 64 or 128 wide whose keys are whole tiles of 128, without a mask,
come by tensor maps, and warpgroups take turns between products and exponentials; other heads of whole 16-byte pieces
up to 128 wide are copied by the warpgroups themselves. Elsewhere mma.sync. `float32` is three TF32 products by
warpgroup instructions for widths of whole 16 bytes up to 64, which the tensor cores limit, else on the ordinary cores,
where instruction issue does.
A query to which no key is open gives zeros.
`scaling=None` is 1 / sqrt(width).
"""

from types import ModuleType
from typing import Any

from prism_bench import Budget, KernelSpec, Out, Rule, Variant, Workload, normwise
from prism_bench.spec import AnyArray, ArrayModule

from ..include.attention.attention import (
    RULES,
    arguments,
    attention,
    launcher,
    operations,
    weights_of,
)
from ..include.attention.attention_forms import DERIVED, LOOKED_AT, PARAMETERS, closed, forms, goldens
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
    q, k, v = (wide(x, xp) for x in (q, k, v))
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


def torch_attention(
    torch: ModuleType,
    q: AnyArray,
    k: AnyArray,
    v: AnyArray,
    mask: AnyArray,
    heads: int,
    scale: float,
    causal: int,
    masked: int,
) -> Any:
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    o = attend(q, k, v, attn_mask=mask.to(q.dtype) if masked else None, is_causal=bool(causal), scale=scale)
    return o.transpose(1, 2).flatten(2)


def reference_with_weights(
    q: AnyArray,
    k: AnyArray,
    v: AnyArray,
    mask: AnyArray,
    heads: int,
    scale: float,
    causal: int,
    masked: int,
    length: int,
    width: int,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray]:
    """The outputs, and the weights by head."""
    o = reference(q, k, v, mask, scale, causal, masked, length, width, xp)
    part = mask if masked else None
    pairs = [(sample, slice(at, at + width)) for sample in range(len(q)) for at in range(0, heads * width, width)]
    weights = [weights_of(q[s][:, head], k[s][:, head], 0, part, scale, causal, xp) for s, head in pairs]
    return o, xp.stack(weights) if weights else xp.zeros((0, heads, length, length))


def torch_with_weights(
    torch: ModuleType,
    q: AnyArray,
    k: AnyArray,
    v: AnyArray,
    mask: AnyArray,
    heads: int,
    scale: float,
    causal: int,
    masked: int,
) -> Any:
    """What nn.MultiheadAttention does where it is to give its weights: they are made in memory."""
    q, k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    scores = scale * (q @ k.transpose(2, 3)) + (mask.to(q.dtype) if masked else 0)
    weights = torch.softmax(scores, 3)
    return (weights @ v).transpose(1, 2).flatten(2), weights


SHAPE = "batch length model"
STRONG = attention_peers(
    lambda x, heads: x.unflatten(2, (heads, -1)).transpose(1, 2), lambda o: o.transpose(1, 2).flatten(2)
)


def sized(batch: int, heads: int, length: int, width: int, **more: Any) -> Workload:
    return Workload(batch=batch, heads=heads, length=length, model=heads * width, **more)


def with_weights(plain: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with the weights after o."""
    at = next(i for i, argument in enumerate(plain) if argument.name == "o") + 1
    return (*plain[:at], Out("weights", "batch heads length length", dtype="float16"), *plain[at:])


spec = KernelSpec(
    entry="multi_head_attention",
    arguments=arguments(SHAPE, "float16"),
    parameters=PARAMETERS,
    derived={
        "width": lambda model, heads: model // max(heads, 1),
        **DERIVED,
    },
    rules=(
        Rule("heads to divide model", lambda model, heads: heads > 0 and model % heads == 0),
        *RULES,
    ),
    launch=launcher("multi_head_attention"),
    reference=reference,
    tolerance=normwise(1e-3),
    peers={"torch": torch_attention, **STRONG},
    looked_at=LOOKED_AT,
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
    golden=goldens(sized),
    variants={
        **forms("multi_head_attention", SHAPE, sized, torch_attention, STRONG),
        "weights": Variant(
            "gives the weights too, [batch, heads, length, length]",
            entry="multi_head_attention_weights",
            arguments=with_weights(arguments(SHAPE, "float16")),
            launch=launcher("multi_head_attention_weights", warps_only=True),
            reference=reference_with_weights,
            flops=lambda batch, heads, length, width: batch * heads * length * length * (6 * width + 6),
            peers={"torch": torch_with_weights},
            looked_at={"flash_attn": "gives no weights: they are never in memory"},
            workloads={
                "S0": Workload(batch=1, heads=8, length=128, model=512),
                "S1": Workload(batch=1, heads=16, length=4096, model=1024),
            },
            edges=(
                Workload(batch=0, heads=2, length=5, model=16),
                sized(1, 3, 1, 1),
                sized(2, 2, 70, 40, causal=1),
                sized(1, 2, 131, 9, masked=1),
                sized(1, 1, 68, 72, causal=1, masked=1),
                sized(1, 1, 200, 128),
                sized(1, 2, 130, 40),
                sized(1, 2, 130, 40, shape="2x64"),
            ),
            golden=(closed(sized),),
            budgets=(),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.75, label="S1"), Budget("peer_ratio", at_least=0.75, label="S2")),
)  # fmt: skip
