"""Product of half matrices in Triton: as many programs as multiprocessors walk over the tiles of C.

Operands whose rows are whole 16-byte pieces come by tensor descriptors, which Hopper and later copy by TMA; others by
pointers. Neighbouring tiles are walked in groups of rows, so that they find their operands in L2.
"""

import triton
import triton.language as tl

from prism_bench import Launch, Rule, Tune, Variant, Workload
from prism_bench.spec import Device

# Rows, columns, depth, warps, stages of the ring.
TILES = ("128x256x64x8x3", "128x128x64x4x4", "128x128x64x8x3", "64x128x64x4x3", "128x256x64x8x2")
LAYOUTS = ("nn", "nt", "tn", "tt")


@triton.jit
def tile_place(tile, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Return the first row and column of a tile, in groups of GROUP tiles of rows."""
    in_group = GROUP * tl.cdiv(n, BN)
    first = tile // in_group * GROUP
    rows = tl.minimum(tl.cdiv(m, BM) - first, GROUP)
    return (first + tile % in_group % rows) * BM, tile % in_group // rows * BN


@triton.jit
def by_descriptors(
    a, b, c, m, n, k, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    if A_TURNED:
        left = tl.make_tensor_descriptor(a, shape=[k, m], strides=[m, 1], block_shape=[BK, BM])
    else:
        left = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
    if B_TURNED:
        right = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[BN, BK])
    else:
        right = tl.make_tensor_descriptor(b, shape=[k, n], strides=[n, 1], block_shape=[BK, BN])
    width: tl.constexpr = BN // 2 if BN > 128 else BN
    result = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[BM, width])
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * tl.cdiv(n, BN), PROGRAMS, flatten=True):
        row, col = tile_place(tile, m, n, BM, BN, GROUP)
        total = tl.zeros([BM, BN], tl.float32)
        for depth in range(0, k, BK):
            one = left.load([depth, row]).T if A_TURNED else left.load([row, depth])
            other = right.load([col, depth]).T if B_TURNED else right.load([depth, col])
            total = tl.dot(one, other, total)
        if BN > 128:  # in halves: shared memory holds the ring and one of them
            first, second = tl.split(tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1)))
            result.store([row, col], first)
            result.store([row, col + BN // 2], second)
        else:
            result.store([row, col], total)


@triton.jit
def by_pointers(
    a, b, c, m, n, k, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    a_row, a_col = (1, m) if A_TURNED else (k, 1)
    b_row, b_col = (1, k) if B_TURNED else (n, 1)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * tl.cdiv(n, BN), PROGRAMS):
        row, col = tile_place(tile, m, n, BM, BN, GROUP)
        rows, cols = (row + tl.arange(0, BM)).to(tl.int64), (col + tl.arange(0, BN)).to(tl.int64)
        total = tl.zeros([BM, BN], tl.float32)
        for first in range(0, k, BK):
            depth = (first + tl.arange(0, BK)).to(tl.int64)
            left = a + rows[:, None] * a_row + depth[None, :] * a_col
            right = b + depth[:, None] * b_row + cols[None, :] * b_col
            one = tl.load(left, (rows < m)[:, None] & (depth < k)[None, :], other=0.0)
            other = tl.load(right, (depth < k)[:, None] & (cols < n)[None, :], other=0.0)
            total = tl.dot(one, other, total)
        tl.store(c + rows[:, None] * n + cols[None, :], total, (rows < m)[:, None] & (cols < n)[None, :])


def chosen(m: int, n: int, device: Device) -> str:
    """Large tiles for products that fill the device with them and where shared memory holds their ring."""
    large = m * n >= 2048**2 and fitting(TILES[0], device)
    return TILES[0] if large else "32x64x32x4x2" if device.max_shared_bytes < 100_000 else "64x128x64x4x3"


def fitting(blocks: str, device: Device) -> bool:
    if blocks == "auto":
        return True
    bm, bn, bk, _, ring = map(int, blocks.split("x"))
    return 2 * ring * bk * (bm + bn) + 4 * bm * min(bn, 128) <= device.max_shared_bytes


def launch(m: int, n: int, k: int, layout: str, blocks: str, device: Device) -> Launch:
    sizes = chosen(m, n, device) if blocks == "auto" else blocks
    bm, bn, bk, warps, ring = map(int, sizes.split("x"))
    programs = min(triton.cdiv(m, bm) * triton.cdiv(n, bn), device.sm_count)
    turned = {"A_TURNED": layout[0] == "t", "B_TURNED": layout[1] == "t"}
    tile = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "PROGRAMS": programs, "num_warps": warps, "num_stages": ring}
    whole = k > 0 and (m % 8, n % 8, k % 8) == (0, 0, 0)
    return Launch(programs, entry="by_descriptors" if whole else "by_pointers", constants=turned | tile)


variant = Variant(
    "in Triton: persistent programs, tensor descriptors",
    rules=(Rule("layout is nn, nt, tn or tt", lambda layout: layout in LAYOUTS),),
    launch=launch,
    more_edges=(Workload(m=512, n=512, k=80), Workload(m=1536, n=2816, k=80)),  # the last fills 132 processors
    tune=Tune(blocks=("auto", *TILES), rules=(Rule("a ring that shared memory holds", fitting),)),
)
