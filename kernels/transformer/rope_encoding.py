"""Rotary positions: in every head of size dim, pair i at position m turns by the angle (offset + m) base^(-2 i / dim).

`layout` defines which numbers are a pair: `interleaved` (2i, 2i + 1) or `halves` (i, i + dim / 2).
"""

import math
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Size,
    Variant,
    Workload,
    reduction,
)
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..peers.strong_peers import ready

# Memory-bound: 8 bytes an element at the copy rate. Cosines and sines are in double precision, found by each block
# while its loads are on their way.
EACH = 2  # groups of pairs of a thread
MOST_DIM = 12_288  # of which a block's shared memory holds the cosines and sines


def floats_per_thread(layout: str, dim: int) -> int:
    """Floats of a group of pairs."""
    if layout == "interleaved":
        return 4 if dim % 4 == 0 else 2
    return 8 if dim % 8 == 0 else 2


def row_block(groups: int) -> int:
    """Threads of a block, chosen to waste few on a token's end."""
    wanted = -(-groups // EACH)
    return min(range(512, 0, -32), key=lambda threads: -(-wanted // threads) * threads)


def launch_of(form: str) -> Callable[..., Any]:
    """A block for a token, or several."""

    def launch(batch: int, length: int, dim: int, layout: str, groups: int, parts: int) -> Launch:
        per_thread = floats_per_thread(layout, dim)
        pairs = f"Halves<{per_thread // 2}>" if layout == "halves" else f"Neighbours<{per_thread}>"
        entry = f"{form}<{pairs}, {EACH}>"
        return Launch(batch * length * parts, row_block(groups), shared=4 * dim, entry=entry)

    return launch


def pairs(x: AnyArray, dim: int, layout: str) -> tuple[AnyArray, AnyArray]:
    """The first and the second number of every pair."""
    return (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., : dim // 2], x[..., dim // 2 :])


def joined(
    first: AnyArray, second: AnyArray, shape: tuple[int, int, int, int], layout: str, module: ArrayModule
) -> AnyArray:
    if layout == "interleaved":
        return module.stack((first, second), -1).reshape(shape)
    return module.concatenate((first, second), -1)


def turned(x: AnyArray, angle: tuple[AnyArray, AnyArray], dim: int, layout: str, module: ArrayModule) -> AnyArray:
    """For NumPy, CuPy and PyTorch alike; `angle` holds a cosine and a sine for every position and pair."""
    cosine, sine = (values[:, None, :] for values in angle)
    first, second = pairs(x, dim, layout)
    return joined(first * cosine - second * sine, first * sine + second * cosine, x.shape, layout, module)


def reference(x: AnyArray, length: int, dim: int, base: float, offset: int, layout: str, xp: ArrayModule) -> AnyArray:
    angle = xp.outer(offset + xp.arange(length), float(base) ** (-xp.arange(0, dim, 2) / dim))
    return turned(x, (xp.cos(angle), xp.sin(angle)), dim, layout, xp)


def pair_size(x: AnyArray, dim: int, layout: str, xp: ArrayModule) -> AnyArray:
    """|first| + |second|: what the terms of both results of a pair can reach."""
    first, second = pairs(xp.abs(x), dim, layout)
    return joined(first + second, first + second, x.shape, layout, xp)


def torch_rope(torch: ModuleType, x: AnyArray, length: int, dim: int, base: float, offset: int, layout: str) -> Any:
    place = {"device": x.device, "dtype": torch.float64}
    angle = torch.outer(offset + torch.arange(length, **place), base ** (-torch.arange(0, dim, 2, **place) / dim))
    return turned(x, (angle.cos().float(), angle.sin().float()), dim, layout, torch)


def quack_rope(
    quack: ModuleType, x: Any, length: int, dim: int, base: float, offset: int, layout: str
) -> Callable[[], Any]:
    """Rotary positions with cosines and sines that are made in the set-up."""
    torch, rotary = import_module("torch"), import_module("quack.rotary")
    place = {"device": x.device, "dtype": torch.float64}
    angle = torch.outer(offset + torch.arange(length, **place), base ** (-torch.arange(0, dim, 2, **place) / dim))
    cosine, sine = angle.cos().float(), angle.sin().float()
    return ready(lambda: rotary.apply_rotary(x, cosine, sine, interleaved=layout == "interleaved"))


HEADS = "batch length heads dim"
SIZES = (
    Scalar("slope", "float64"), Scalar("offset", "int64"), Size("length"), Size("heads"), Size("dim"), Size("groups"),
    Size("parts"),
)  # fmt: skip

STRONG = {"quack": Peer(quack_rope, prepares=True, work="cosines and sines are made beforehand")}
LOOKED_AT = {
    "flashinfer": "operands of 16 bits only",
    "liger": "turns queries and keys together, in place, in halves only",
}

TURNED = [(3 * np.cos(m) + 2 * np.sin(m), 3 * np.sin(m) - 2 * np.cos(m)) for m in range(3)]
by_hand = Golden(
    Workload(batch=1, length=3, heads=1, dim=2, offset=0),
    inputs={"x": np.tile([3.0, -2.0], 3).reshape(1, 3, 1, 2)},
    expected={"y": np.array([TURNED]).reshape(1, 3, 1, 2)},
    source="one pair turns by m radians at position m; position 0 is left alone",
)
long_context = [
    Golden(
        Workload(batch=1, length=2, heads=1, dim=8, offset=offset, layout=layout),
        inputs={"x": np.linspace(-1, 1, 16).reshape(1, 2, 1, 8)},
        expected={},
        source=f"position {offset}, where a float angle is wrong in the third digit and beyond",
    )
    for offset in (131_071, 10_000_000)
    for layout in ("interleaved", "halves")
]

spec = KernelSpec(
    entry="rope_encoding<Neighbours<4>, 2>",
    arguments=(In("x", HEADS), Out("y", HEADS), *SIZES),
    parameters={"base": 10_000.0, "offset": 0, "layout": "interleaved"},
    derived={
        "groups": lambda heads, dim, layout: heads * dim // floats_per_thread(layout, dim),
        "parts": lambda groups: -(-groups // (EACH * row_block(groups))),
        "slope": lambda dim, base: -2 * math.log2(base) / max(dim, 1),
    },
    rules=(
        Rule(f"dim to be even and at most {MOST_DIM}", lambda dim: 0 < dim <= MOST_DIM and dim % 2 == 0),
        Rule("layout to be 'interleaved' or 'halves'", lambda layout: layout in ("interleaved", "halves")),
        Rule("base > 0 and offset >= 0", lambda base, offset: base > 0 and offset >= 0),
    ),
    launch=launch_of("rope_encoding"),
    reference=reference,
    tolerance=reduction(magnitude=pair_size, terms=5e-7, underflows=2),
    peers={"torch": torch_rope, **STRONG},
    looked_at=LOOKED_AT,
    flops=lambda batch, length, heads, dim: 3 * batch * length * heads * dim,
    workloads={
        "S0": Workload(batch=1, length=128, heads=8, dim=64),
        "S1": Workload(batch=8, length=8192, heads=32, dim=128),
        "S2": Workload(batch=16, length=16_384, heads=32, dim=128),
    },
    edges=tuple(
        Workload(batch=b, length=s, heads=h, dim=d, layout=layout, offset=offset)
        for b, s, h, d, offset in (
            (2, 5, 3, 2, 0), (1, 3, 5, 6, 7), (2, 4, 1, 12, 0), (1, 1, 1, 64, 5), (2, 3, 40, 36, 1), (1, 2, 2, 520, 0),
            (0, 4, 2, 8, 0), (2, 0, 2, 8, 0),
        )
        for layout in ("interleaved", "halves")
    ),
    golden=(by_hand, *long_context),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    aliases=("rope",),
    variants={
        "halves": Variant(
            "pairs half a head apart",
            parameters={"base": 10_000.0, "offset": 0, "layout": "halves"},
            peers={"torch": torch_rope, **STRONG},
            looked_at=LOOKED_AT,
            edges=(),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "in_place": Variant(
            "x becomes y",
            arguments=(InOut("x", HEADS), *SIZES),
            launch=launch_of("rope_encoding_in_place"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip
