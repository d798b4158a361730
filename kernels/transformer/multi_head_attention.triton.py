"""Attention in Triton, as FlashAttention does it: a program for a tile of queries walks over the keys once.

Scores are scaled by log2(e) and weighted by exp2; the running maximum of a query to which no key is open is -inf, and
its weights are zero. Ordinary instructions take longer than both products, so that the scale, which is positive, is
multiplied where the maximum is subtracted, and whole tiles of keys are compared with no end.
"""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def scores_of(
    query, k, mask, place, head, length, factor, CAUSAL: tl.constexpr, MASKED: tl.constexpr, WHOLE: tl.constexpr
):  # fmt: skip
    """Return the scores of queries `place[0]` with keys `place[1]`, -inf where a key is not open.

    They have the factor where there is a mask to add, else the exponential has it. Keys of `WHOLE` tiles are inside.
    """
    rows, keys, lanes = place
    stride, width, base = head
    inside = (lanes < width)[:, None] if WHOLE else (keys < length)[None, :] & (lanes < width)[:, None]
    key = tl.load(k + base + keys.to(tl.int64)[None, :] * stride + lanes[:, None], inside, other=0.0)
    scores = tl.dot(query, key)
    open_keys = (keys < length)[None, :]
    if MASKED:
        scores *= factor
        at = rows.to(tl.int64)[:, None] * length + keys[None, :]
        scores += tl.load(mask + at, (rows < length)[:, None] & open_keys, other=0.0) * LOG2E
    if CAUSAL:
        open_keys = open_keys & (keys[None, :] <= rows[:, None])
    if CAUSAL or not WHOLE:
        scores = tl.where(open_keys, scores, -float("inf"))
    return scores


@triton.jit
def multi_head_attention(
    q, k, v, mask, o, heads, length, width, scale, CAUSAL: tl.constexpr, MASKED: tl.constexpr, WHOLE: tl.constexpr,
    BQ: tl.constexpr, BK: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    stride = heads * width
    sample, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    base = sample.to(tl.int64) * length * stride + head * width
    rows, lanes = tl.program_id(0) * BQ + tl.arange(0, BQ), tl.arange(0, DEPTH)
    at = base + rows.to(tl.int64)[:, None] * stride + lanes[None, :]
    inside = (rows < length)[:, None] & (lanes < width)[None, :]
    query = tl.load(q + at, inside, other=0.0)
    top = tl.full([BQ], -float("inf"), tl.float32)
    total = tl.zeros([BQ], tl.float32)
    result = tl.zeros([BQ, DEPTH], tl.float32)
    factor = scale * LOG2E
    end = tl.minimum(length, (tl.program_id(0) + 1) * BQ) if CAUSAL else length
    for first in range(0, end, BK):
        keys = first + tl.arange(0, BK)
        place, extents = (rows, keys, lanes), (stride, width, base)
        scores = scores_of(query, k, mask, place, extents, length, factor, CAUSAL, MASKED, WHOLE)
        higher = tl.maximum(top, tl.max(scores, 1))
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        if MASKED:
            weights = tl.exp2(scores - shift[:, None])
            rescale = tl.exp2(top - shift)
        else:
            weights = tl.exp2(scores * factor - (shift * factor)[:, None])
            rescale = tl.exp2((top - shift) * factor)
        total = total * rescale + tl.sum(weights, 1)
        kept = (lanes < width)[None, :] if WHOLE else (keys < length)[:, None] & (lanes < width)[None, :]
        value = tl.load(v + base + keys.to(tl.int64)[:, None] * stride + lanes[None, :], kept, other=0.0)
        result = tl.dot(weights.to(value.dtype), value, result * rescale[:, None])
        top = higher
    result = result / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o + at, result.to(o.dtype.element_ty), inside)


def launch(
    batch: int, heads: int, length: int, width: int, causal: int, masked: int, queries: int, keys: int
) -> Launch:
    depth = max(16, triton.next_power_of_2(width))
    flags = {"CAUSAL": bool(causal), "MASKED": bool(masked), "WHOLE": length % keys == 0}
    warps = 8 if queries == 128 and depth >= 128 else 4
    sizes = {"BQ": queries, "BK": keys, "DEPTH": depth, "num_warps": warps, "num_stages": 2 if depth > 128 else 3}
    return Launch((triton.cdiv(length, queries), batch * heads), constants=flags | sizes)


def few_queries(length: int, model: int, heads: int) -> int:
    return 64 if length <= 256 or model > 128 * heads else 128


variant = Variant(
    "in Triton: online softmax over tiles of keys",
    entry="multi_head_attention",
    launch=launch,
    edges=(
        Workload(batch=0, heads=2, length=5, model=16),
        Workload(batch=1, heads=3, length=1, model=3),
        Workload(batch=2, heads=2, length=70, model=80, causal=1),
        Workload(batch=1, heads=1, length=129, model=9, masked=1),
        Workload(batch=2, heads=3, length=130, model=192),
        Workload(batch=1, heads=1, length=67, model=72, causal=1, masked=1),
        Workload(batch=1, heads=5, length=140, model=640, causal=1),
        Workload(batch=1, heads=1, length=33, model=200, scaling=0.5),
        Workload(batch=2, heads=2, length=77, model=128, causal=1),
        Workload(batch=1, heads=2, length=80, model=128),
        *(
            Workload(batch=1, heads=16, length=length, model=model, queries=128)
            for length in (144, 192)
            for model in (1024, 2048)
        ),
        *(Workload(batch=1, heads=2, length=128, model=96, **more) for more in ({}, {"causal": 1}, {"masked": 1})),
    ),
    tune=Tune(
        queries=(128, 64),
        keys=(64, 32, 128),
        default={"queries": few_queries, "keys": lambda model, heads: 32 if model > 128 * heads else 64},
    ),
)
