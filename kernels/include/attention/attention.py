"""What the two attention kernels share: the shapes of their tiles, who launches which, the reference of one head."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from prism_bench import In, Launch, Out, Rule, Scalar, Size, TensorMap, normal
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, real

# Width of a head, rounded up: 16s of queries per warp and keys per step that its registers hold, the fastest first.
SHAPES = {64: ((2, 64), (1, 64), (2, 32), (1, 32)), 128: ((2, 32), (1, 32), (1, 16)), 256: ((1, 32),)}
SHAPES_FP32 = {64: (64, 32), 128: (32,), 256: (32,)}  # keys per step
GROUPS = {64: 3, 128: 2}  # warpgroups of 64 queries; keys come by 128
STREAMED = {64: 3, 128: 2}  # tiles of keys, and of values, in the ring that tensor maps fill
LONGEST_WIDTH = max(SHAPES)
RULES = (
    Rule(f"1 <= width <= {LONGEST_WIDTH}", lambda width: 1 <= width <= LONGEST_WIDTH),
    Rule("scaling is None or positive", lambda scaling: scaling is None or scaling > 0),
    Rule("shape to be one of the width's", lambda width, shape: shape in (None, *shapes_of(width))),
    Rule("causal and masked are 0 or 1", lambda causal, masked: {causal, masked} <= {0, 1}),
)
# Normal, and one key in ten closed.
MASK = Fill(
    lambda rng, count, axes: np.where(rng.random(count) < 0.1, -np.inf, rng.normal(size=count)),
    "normal, 10 % -inf",
    real(),
    runs=ONE_BY_ONE,
)

# A key that is closed has weight 0, and 0 times an infinite value would be none.
NUMBERS = replace(normal(), domain=real().with_finite_numbers())


def padded(width: int, shapes: Mapping[int, Any] = SHAPES) -> int:
    """The width that the tiles for it have."""
    return next(d for d in shapes if d >= width)


def shapes_of(width: int) -> list[str]:
    """What `shape` may name: 16s of queries per warp and keys per step, or warpgroups."""
    warps = [f"{rows}x{keys}" for rows, keys in SHAPES[padded(width)]]
    return [*warps, "warpgroups"] if width <= max(GROUPS) and width % 8 == 0 else warps


def shared_bytes(depth: int, rows: int, keys: int) -> int:
    """A tile of queries and two stages of keys and values, in rows 8 elements longer."""
    return 2 * (depth + 8) * (64 * rows + 4 * keys)


def shared_of_groups(depth: int, groups: int, ring: int = 2) -> int:
    """A tile of queries and a ring of keys and of values, 128 each, in rows without gaps aligned to 1 KiB; barriers."""
    return 2 * depth * (64 * groups + 2 * ring * 128) + 1024 + 64


def streamed_launch(entry: str, kind: str, heads: int, length: int, width: int, causal: int) -> Launch:
    """The launch of AttentionStreamed for so many heads: whole tiles of keys come by tensor maps."""
    groups, ring = GROUPS[width], STREAMED[width]
    shared = 2 * width * (64 * groups + 2 * ring * 128) + 32 * ring + 24 + 1024
    tile = f"AttentionStreamed<{width}, {groups}, {ring}, {str(bool(causal)).lower()}{kind}>"
    maps = (TensorMap("q", 64 * groups), TensorMap("k", 128), TensorMap("v", 128))
    return Launch(
        heads * -(-length // (64 * groups)), 128 * (groups + 1), shared, f"{entry}_streamed<{tile}>", maps=maps
    )


def chosen(width: int, tiles: int, masked: int, device: Device, warps_only: bool) -> str:
    """Warpgroups where there are any and work for all of them, else the first shape that fits.

    Where 32 queries a warp would leave multiprocessors idle, it is 16.
    """
    depth, few = padded(width), tiles < device.sm_count
    on_groups = device.compute_capability == 90 and "warpgroups" in shapes_of(width) and not few
    if not warps_only and on_groups and shared_of_groups(depth, GROUPS[depth]) <= device.max_shared_bytes:
        return "warpgroups"
    fitting = [(r, k) for r, k in SHAPES[depth] if shared_bytes(depth, r, k) <= device.max_shared_bytes]
    fitting = [(r, k) for r, k in fitting if k < 64 or not masked] or list(SHAPES[depth])
    rows, keys = min(fitting, key=lambda shape: shape[0]) if few else fitting[0]
    return f"{rows}x{keys}"


def launcher(entry: str, element: str = "HalfHead", warps_only: bool = False) -> Callable[..., Any]:
    """The plan of an attention kernel with 16-bit operands."""
    kind = "" if element == "HalfHead" else f", {element}"

    def launch(
        batch: int, heads: int, length: int, width: int, causal: int, masked: int, shape: str | None, device: Device
    ) -> Launch:
        depth, flags = padded(width), f"{bool(causal)}, {bool(masked)}".lower()
        shape = shape or chosen(width, batch * heads * -(-length // 128), masked, device, warps_only)
        if shape == "warpgroups" and not masked and width in STREAMED and length % 128 == 0:
            return streamed_launch(entry, kind, batch * heads, length, width, causal)
        if shape == "warpgroups":
            groups = 2 if masked else GROUPS[depth]
            ring = 3 if shared_of_groups(depth, groups, 3) <= device.max_shared_bytes else 2
            grid, block, shared = -(-length // (64 * groups)), 128 * groups, shared_of_groups(depth, groups, ring)
            tile = f"AttentionWarpgroups<{depth}, {groups}, {ring}, {flags}{kind}>"
        else:
            rows, keys = map(int, shape.split("x"))
            grid, block, shared = -(-length // (64 * rows)), 128, shared_bytes(depth, rows, keys)
            tile = f"AttentionTile<{depth}, {rows}, {keys}, {1 if width % 8 else 8}, {flags}{kind}>"
        return Launch(batch * heads * grid, block, shared, f"{entry}<{tile}>")

    return launch


def shared_bytes_fp32(depth: int, keys: int) -> int:
    """Queries and keys depth-major, values, and weights key-major, in rows 4 floats longer."""
    return 4 * (depth * 68 + depth * (keys + 4) + keys * (depth + 4) + keys * 68)


# Of AttentionThirds: two tiles of keys, two of values, one of queries, of 64 lines as two times 64 floats; 96 bytes.
SHARED_OF_THIRDS = 5 * 64 * 2 * 64 * 4 + 96 + 1024


def by_thirds(width: int, shape: str | None, device: Device) -> bool:
    """Whether FP32 operands go through three TF32 products by warpgroup instructions."""
    if shape != "warpgroups" and (shape or device.compute_capability != 90):
        return False
    return width <= 64 and width % 4 == 0 and device.max_shared_bytes >= SHARED_OF_THIRDS


def launcher_fp32(entry: str) -> Callable[..., Any]:
    """The plan of an attention kernel with FP32 operands."""

    def launch(
        batch: int, heads: int, length: int, width: int, causal: int, masked: int, shape: str | None, device: Device
    ) -> Launch:
        depth, flags = padded(width), f"{bool(causal)}, {bool(masked)}".lower()
        if by_thirds(width, shape, device):
            tile = f"AttentionThirds<{flags}>"
            return Launch(batch * heads * -(-length // 128), 512, SHARED_OF_THIRDS, f"{entry}<{tile}>")
        fitting = [keys for keys in SHAPES_FP32[depth] if shared_bytes_fp32(depth, keys) <= device.max_shared_bytes]
        keys = (fitting or SHAPES_FP32[depth])[0]
        tile = f"AttentionTile32<{depth}, {keys}, {1 if width % 4 else 4}, {flags}>"
        return Launch(batch * heads * -(-length // 64), 128, shared_bytes_fp32(depth, keys), f"{entry}<{tile}>")

    return launch


def arguments(shape: str, dtype: str, out: str | None = None, fill: Fill | None = None) -> tuple[Any, ...]:
    """q, k, v and o of that shape, and what else an attention kernel takes."""
    return (
        *(In(name, shape, dtype=dtype, fill=fill or NUMBERS) for name in "qkv"),
        In("mask", "mask_extent mask_extent", fill=MASK),
        Out("o", shape, dtype=out or dtype),
        Size("heads"),
        Size("length"),
        Size("width"),
        Scalar("scale"),
    )


def weights_of(
    q: AnyArray, k: AnyArray, first: int, mask: AnyArray, scale: float, causal: int, xp: ArrayModule
) -> AnyArray:
    """Of queries `first` and on of one head; a query to which no key is open has zeros."""
    scores = scale * (q @ k.T)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = xp.where(xp.arange(len(k)) > first + xp.arange(len(q))[:, None], -xp.inf, scores)
    top = scores.max(axis=1, keepdims=True)
    weights = xp.exp(scores - xp.where(top == -xp.inf, 0, top))
    total = weights.sum(axis=1, keepdims=True)
    return weights / xp.where(total == 0, 1, total)


def attention(
    q: AnyArray, k: AnyArray, v: AnyArray, first: int, mask: AnyArray, scale: float, causal: int, xp: ArrayModule
) -> AnyArray:
    """What those weights make of the values."""
    return weights_of(q, k, first, mask, scale, causal, xp) @ v


def operations(batch: int, heads: int, length: int, width: int, causal: int) -> int:
    """Two products, and four for every exponential."""
    return batch * heads * length * length * (4 * width + 4) // (2 if causal else 1)


def row_closed(length: int) -> AnyArray:
    """Nothing is open to query 2, and only the last key to query 0."""
    mask = np.zeros((length, length))
    mask[2], mask[0, :-1] = -np.inf, -np.inf
    return mask
