"""Topology of the pixels above a threshold: component labels, Betti numbers (components, holes), Euler characteristic.

A label is one more than the index of the component's first pixel. Union-find by atomic minimum: in tiles in shared
memory, then along their borders; roots in a last pass. Holes = components - Euler characteristic, which 2x2 windows
give. The tiles are bound by instruction issue; pixels hang on a neighbour first, since joining runs of 32 columns' bits
by atomics took most of the time. The map and the Euler characteristic are memory-bound, at half of an SM's warps (58 to
64 registers). Of sizes, the atomics to the largest component's counter were slow: a warp's go there at once now. The
pairs of `diagram` cost one reading more than `persistence`.

`diagram` returns a row for every pair that is possible (of two neighbours at most one is a local maximum), since their
number is known on the device only; rows behind `count` are NaN. Persistence is timed at 2048 x 2048 and no larger: its
reference is a spanning forest on the host, which takes most of a minute at 4096 x 4096.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    elementwise,
    exact,
    normal,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule

from ..include.images.persistence_forms import diagram, persistence

TILE_ROWS, TILE_COLUMNS = 64, 128  # of a block


def grid(rows: int, cols: int) -> tuple[int, int]:
    """Tiles reach one row and one column beyond the image: windows hang over its border."""
    return (cols // TILE_COLUMNS + 1, rows // TILE_ROWS + 1)


def word(connectivity: int) -> str:
    return str(connectivity == 8).lower()


def launch_of(sizes: bool) -> Callable[..., Any]:
    """Tiles, their borders, labels; with the components' sizes or without."""
    also, array, zero = ("true", "sizes", (Zero("sizes"),)) if sizes else ("false", "parent", ())

    def launch(rows: int, cols: int, connectivity: int, across: int, along: int) -> tuple[Launch | Zero, ...]:
        names = {
            "tda_tiles": ("x", "local", "parent", "sums", "rows", "cols", "threshold"),
            "tda_join": ("local", "parent", "rows", "cols", "across", "along"),
            "tda_labels": ("local", "parent", "labels", array, "sums", "betti", "rows", "cols"),
        }
        eight, tiles = word(connectivity), grid(rows, cols)
        return (
            *zero,
            Launch(tiles, 256, entry=f"tda_tiles<{eight}>", arguments=names["tda_tiles"]),
            Launch(-(-(across + along) // 256), 256, entry=f"tda_join<{eight}>", arguments=names["tda_join"]),
            Launch(tiles, 256, entry=f"tda_labels<{also}>", arguments=names["tda_labels"]),
        )

    return launch


def launch_euler(rows: int, cols: int, connectivity: int) -> Launch:
    return Launch(grid(rows, cols), 256, entry=f"tda_euler<{word(connectivity)}>")


def sizes_of(labels: AnyArray, xp: ArrayModule) -> AnyArray:
    """How many pixels each component has, at its first pixel; 0 elsewhere."""
    sizes = xp.zeros(labels.size + 1, dtype="int32")
    xp.add.at(sizes, labels.reshape(-1), 1)
    return sizes[1:].reshape(labels.shape)


def components(mask: AnyArray, connectivity: int, xp: ArrayModule) -> tuple[AnyArray, int]:
    """Labels of SciPy (or of its port to CuPy) and their number."""
    label = import_module("scipy.ndimage" if xp is np else "cupyx.scipy.ndimage").label
    if mask.size == 0:
        return xp.zeros(mask.shape, "int32"), 0
    structure = xp.ones((3, 3)) if connectivity == 8 else xp.asarray([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    labels, count = label(mask, structure)
    return labels, int(count)


def reference(x: AnyArray, threshold: float, connectivity: int, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Labels renamed after first pixels; holes are the components of the complement, less the outside."""
    mask = x > threshold
    labels, count = components(mask, connectivity, xp)
    first = xp.full(count + 1, mask.size, dtype="int32")
    xp.minimum.at(first, labels.reshape(-1), xp.arange(mask.size, dtype="int32"))
    first[0] = -1
    holes = components(xp.pad(~mask, 1, constant_values=True), 12 - connectivity, xp)[1] - 1
    return first[labels] + 1, xp.asarray([count, holes, count - holes])


def reference_map(x: AnyArray, threshold: float, xp: ArrayModule) -> AnyArray:
    """Neighbours from a padded copy."""
    mask = xp.pad(x > threshold, 1).astype("int8")
    rows, cols = x.shape
    near = {(i, j): mask[1 + i : 1 + i + rows, 1 + j : 1 + j + cols] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j}
    pairs = sum(near[i, j] * near[-i, -j] for i, j in ((0, 1), (1, 0), (1, 1), (1, -1)))
    return sum(near.values()) + 0.1 * pairs + 0.01 * x


def map_terms(x: AnyArray, threshold: float, xp: ArrayModule) -> AnyArray:
    """The terms of the map, all taken as positive: a negative pixel may cancel its neighbours."""
    return reference_map(x, threshold, xp) + 0.01 * (xp.abs(x) - x)


def spiral(rows: int, cols: int) -> AnyArray:
    """One path winding inwards: the longest way that a label can have to go."""
    image, i, j, step = np.zeros((rows, cols)), 0, 0, (0, 1)
    inside = lambda i, j: 0 <= i < rows and 0 <= j < cols  # noqa: E731
    image[0, 0] = 1
    for _ in range(rows * cols):
        ahead, beyond = (i + step[0], j + step[1]), (i + 2 * step[0], j + 2 * step[1])
        if not inside(*ahead) or (inside(*beyond) and image[beyond]):
            step = (step[1], -step[0])
            ahead = i + step[0], j + step[1]
            if not inside(*ahead) or image[i + 2 * step[0], j + 2 * step[1]]:
                break
        i, j = ahead
        image[i, j] = 1
    return image


def checkerboard(rows: int, cols: int) -> AnyArray:
    return np.indices((rows, cols)).sum(axis=0) % 2


def awkward(rows: int, cols: int) -> AnyArray:
    """Values on and next to the threshold, infinities and NaN."""
    values = [0.5, np.nextafter(np.float32(0.5), 1), np.nan, np.inf, -np.inf]
    return np.random.default_rng(6).choice(values, (rows, cols))


def ring(rows: int, cols: int) -> AnyArray:
    image = np.ones((rows, cols))
    image[1:-1, 1:-1] = 0
    return image


def shaped(
    rows: int, cols: int, draw: Any, expected: list[int] | None = None, source: str = "", **parameters: Any
) -> Golden:
    return Golden(
        Workload(rows=rows, cols=cols, threshold=0.5, **parameters), {"x": draw},
        {} if expected is None else {"betti": expected}, source,
    )  # fmt: skip


DRAWN = (((40, 70), checkerboard, "equal values everywhere"), ((45, 77), spiral, "a spiral"))
RULES = (
    Rule("connectivity to be 8 or 4", lambda connectivity: connectivity in (8, 4)),
    Rule("rows x cols < 2^31, as labels are 32-bit", lambda rows, cols: rows * cols < 1 << 31),
    Rule("rows < 2^22 - 64, as a grid is no taller", lambda rows: rows < TILE_ROWS * 65_535),
)
EDGES = (
    Workload(rows=33, cols=520, threshold=0.1),
    Workload(rows=40, cols=513, connectivity=4, threshold=-0.4),
    *(Workload(rows=r, cols=c) for r, c in ((0, 5), (5, 0), (1, 1), (1, 33), (70, 1), (2, 2), (16, 31), (17, 32))),
    Workload(rows=37, cols=70),
    Workload(rows=37, cols=64, connectivity=4, threshold=-0.3),
    Workload(rows=37, cols=300, threshold=0.4),
    Workload(rows=133, cols=260, threshold=0.3),
    Workload(rows=129, cols=131, connectivity=4, threshold=-0.2),
)

WORK = (
    Scratch("local", "rows cols", dtype="uint16"), Scratch("parent", "rows cols", dtype="int32"),
    Scratch("sums", "2", dtype="uint64"), Size("rows"), Size("cols"), Scalar("threshold"), Size("across", "int64"),
    Size("along", "int64"),
)  # fmt: skip


def reference_sizes(
    x: AnyArray, threshold: float, connectivity: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray, AnyArray]:
    labels, betti = reference(x, threshold, connectivity, xp)
    return labels, sizes_of(labels, xp), betti


spec = KernelSpec(
    entry="tda_tiles",
    arguments=(
        In("x", "rows cols"), Out("labels", "rows cols", dtype="int32"), Out("betti", "3", dtype="int64"),
        *WORK,
    ),
    parameters={"threshold": 0.0, "connectivity": 8},
    derived={
        "pixels": lambda rows, cols: rows * cols,
        "across": lambda rows, cols: max(0, (rows - 1) // TILE_ROWS) * cols,  # pixels under a border of two tiles
        "along": lambda rows, cols: max(0, (cols - 1) // TILE_COLUMNS) * rows,  # and to the right of one
    },
    rules=RULES,
    launch=launch_of(sizes=False),
    reference=reference,
    tolerance=exact(),
    looked_at={
        "cupy": "its `label` waits for the device to count the labels: no time of the device alone",
        "cucim": "its `label` waits for the device to count the labels, as CuPy's does, and has no holes",
    },
    flops=lambda pixels: 20 * pixels,
    traffic_factor=6.0,
    bytes_moved=lambda pixels: 8 * pixels + 24,
    workloads={
        "S0": Workload(rows=512, cols=512),
        "S1": Workload(rows=4096, cols=4096),
        "S2": Workload(rows=16_384, cols=16_384),
    },
    edges=EDGES,
    golden=(
        shaped(9, 40, 0.0, [0, 0, 0], "nothing above"),
        shaped(20, 70, 1.0, [1, 0, 1], "all above"),
        shaped(5, 7, ring, [1, 1, 0], "a ring has a hole"),
        shaped(8, 40, checkerboard, [1, 6 * 38 // 2, 1 - 6 * 38 // 2], "a checkerboard: one component, inner holes"),
        shaped(8, 40, checkerboard, [160, 0, 160], "its pixels are apart by edges", connectivity=4),
        shaped(45, 77, spiral, [1, 0, 1], "a spiral"),
        shaped(135, 300, spiral, [1, 0, 1], "a spiral over several tiles"),
        shaped(31, 45, awkward, source="on the threshold, infinities, NaN"),
    ),
    variants={
        "sizes": Variant(
            "with the number of pixels of each component, at its first pixel",
            arguments=(
                In("x", "rows cols"), Out("labels", "rows cols", dtype="int32"),
                Out("sizes", "rows cols", dtype="int32"), Out("betti", "3", dtype="int64"), *WORK,
            ),
            launch=launch_of(sizes=True),
            reference=reference_sizes,
            bytes_moved=lambda pixels: 12 * pixels + 24,
            golden=(
                Golden(
                    Workload(rows=3, cols=5, threshold=0.5), {"x": [[1, 0, 0, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 1, 0]]},
                    {"sizes": [[2, 0, 0, 4, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]}, source="calculated",
                ),
                shaped(70, 270, spiral, source="a spiral over several tiles"),
            ),
        ),
        "persistence": persistence(DRAWN),
        "diagram": diagram(RULES, DRAWN),
        "euler": Variant(
            "the Euler characteristic alone: one reading",
            arguments=(
                In("x", "rows cols"), Out("euler", "1", dtype="int64"), Scratch("sums", "1", dtype="uint64"),
                Size("rows"), Size("cols"), Scalar("threshold"),
            ),
            launch=launch_euler,
            reference=lambda x, threshold, connectivity, xp: reference(x, threshold, connectivity, xp)[1][2:],
            bytes_moved=lambda pixels: 4 * pixels + 8,
            golden=(),
            budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
        ),
        "map": Variant(
            "the older score of a pixel's neighbours",
            arguments=(
                In("x", "rows cols", fill=normal(100, 20)), Out("map", "rows cols"), Size("rows"), Size("cols"),
                Scalar("threshold"),
            ),
            parameters={"threshold": 100.0, "connectivity": 8},
            launch=lambda rows, cols: Launch(grid(rows, cols), 256, entry="tda_map"),
            reference=reference_map,
            tolerance=elementwise().loosened(terms=2.0**-22, magnitude=map_terms),
            bytes_moved=lambda pixels: 8 * pixels,
            edges=tuple(Workload(rows=r, cols=c) for r, c in ((0, 5), (1, 1), (1, 33), (37, 70), (17, 64))),
            golden=(),
            budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
        ),
    },
)  # fmt: skip
