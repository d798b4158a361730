"""Rotary positions in Triton: a program per token finds the angles once, in double precision, and turns every head."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload


@triton.jit
def rope_encoding(
    x, y, slope, offset, length, heads, dim, NEIGHBOURS: tl.constexpr, PAIRS: tl.constexpr, HEADS: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    pairs = tl.arange(0, PAIRS)
    angle = (offset + token % length).to(tl.float64) * tl.exp2(slope * pairs.to(tl.float64))
    cosine, sine = tl.cos(angle).to(tl.float32)[None, :], tl.sin(angle).to(tl.float32)[None, :]
    for begin in range(0, heads, HEADS):
        head = begin + tl.arange(0, HEADS)
        inside = (head < heads)[:, None] & (pairs < dim // 2)[None, :]
        first_at = (token * heads + head)[:, None] * dim
        if NEIGHBOURS:
            both = first_at[:, :, None] + 2 * pairs[None, :, None] + tl.arange(0, 2)[None, None, :]
            whole = tl.broadcast_to(inside[:, :, None], both.shape)
            first, second = tl.split(tl.load(x + both, whole, other=0.0))
            turned = tl.join(first * cosine - second * sine, first * sine + second * cosine)
            tl.store(y + both, turned, whole)
        else:
            at = first_at + pairs[None, :]
            first = tl.load(x + at, inside, other=0.0)
            second = tl.load(x + at + dim // 2, inside, other=0.0)
            tl.store(y + at, first * cosine - second * sine, inside)
            tl.store(y + at + dim // 2, first * sine + second * cosine, inside)


def launch(batch: int, length: int, heads: int, dim: int, layout: str, floats: int) -> Launch:
    pairs = max(16, triton.next_power_of_2(dim // 2))
    group = min(triton.next_power_of_2(heads), max(1, floats // (2 * pairs)))
    constants = {"NEIGHBOURS": layout == "interleaved", "PAIRS": pairs, "HEADS": group, "num_warps": 4}
    names = ("x", "y", "slope", "offset", "length", "heads", "dim")
    return Launch(batch * length, arguments=names, constants=constants)


variant = Variant(
    "in Triton: a program per token",
    entry="rope_encoding",
    launch=launch,
    more_edges=tuple(
        Workload(batch=1, length=16, heads=heads, dim=dim, layout=layout, offset=0)
        for heads, dim in ((8, 64), (32, 128)) for layout in ("interleaved", "halves")
    ),
    tune=Tune(floats=(2048, 1024, 4096)),
)  # fmt: skip
