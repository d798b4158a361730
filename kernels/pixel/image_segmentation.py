"""Label an image by three cuts around a threshold, then give each pixel the label that most of its neighbours share.

Label 1 above 1.5 t, 2 above t, 3 above 0.5 t, else 0 (NaN too); by the rule `ge` a pixel on a cut is above it.
The variant `regions` goes on: pixels of one label that hang together are a region, and one of fewer than
`min_region_size` pixels loses its label, which becomes 0.

A small region keeps its number in `regions`. It gets no neighbour's label, because that would depend on the order of
regions. So labels have gaps.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
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
    exact,
    normal,
)
from prism_bench.spec import AnyArray, Array, ArrayModule, Peer

from ..include.images.label_vote import labels_of, launch_of, vote
from ..peers.poor_ways import EAGER_STEPS

TILE_ROWS, TILE_COLUMNS = 64, 128  # of a block that finds regions
MOST_OPEN = 2 * (TILE_ROWS + TILE_COLUMNS)  # regions at the border of a tile


# Memory-bound for labels: four counts share one word, at 25 integer operations a pixel; 72 registers limit the warps.
# `bytes` has the same instructions for fewer bytes, so both matter. Instruction issue limits `regions`, at 130
# instructions a pixel: joining pixels in memory took most of the time until a tile's regions were found in shared
# memory. Walks to roots by one pixel of each patch's components alone were slower: chains are twice as long.
def reference(x: AnyArray, threshold: float, rule: str, majority: int, xp: ArrayModule) -> AnyArray:
    return vote(labels_of(x, threshold, rule, xp.where), majority, xp).astype("int32")


def reference_bytes(x: AnyArray, threshold: float, rule: str, majority: int, xp: ArrayModule) -> AnyArray:
    return reference(x, threshold, rule, majority, xp).astype("uint8")


def cupy_segment(cupy: ModuleType, x: AnyArray, threshold: float, rule: str, majority: int) -> Any:
    return vote(labels_of(x, threshold, rule, cupy.where).astype("int8"), majority, cupy).astype("int32")


def torch_segment(torch: ModuleType, x: AnyArray, threshold: float, rule: str, majority: int) -> Any:
    return vote(labels_of(x, threshold, rule, torch.where).to(torch.int8), majority, torch).int()


def torch_packed(torch: ModuleType, x: AnyArray, threshold: float, rule: str, majority: int) -> Any:
    """All four counts of a pixel's neighbours in one number, a byte each."""
    rows, cols = x.shape
    first = labels_of(x, threshold, rule, torch.where).int()
    ones = torch.nn.functional.pad(torch.bitwise_left_shift(torch.ones_like(first), 8 * first), (1, 1, 1, 1))
    near = [ones[i : i + rows, j : j + cols] for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    counts, result = sum(near[1:], near[0]), first
    for label in range(4):
        result = torch.where((counts >> 8 * label & 255) > majority, label, result)
    return result


def launch_regions(
    rows: int, cols: int, rule: str, connectivity: int, tiles: int, across: int, along: int
) -> tuple[Launch, ...]:
    """Tiles, their borders, what the regions there are together, and what becomes of their pixels."""
    eight, aligned = str(connectivity == 8).lower(), str(cols % 4 == 0).lower()
    flags = f"{str(rule == 'ge').lower()}, {aligned}, {eight}"
    known = ("parent", "firsts", "sizes")

    def step(grid: int, entry: str, *arguments: Any, block: int = 256) -> Launch:
        return Launch(grid, block, entry=entry, arguments=arguments)

    return (
        step(tiles, f"region_tiles<{flags}>", "x", "labels", "codes", *known, "opened", "threshold", "majority",
             "min_region_size", "rows", "cols"),
        step(max(1, -(-(across + along) // 256)), f"region_join<{eight}>", "codes", "parent", "rows", "cols",
             "across", "along"),
        step(tiles, "region_sums", "opened", *known, block=128),
        step(tiles, f"region_ends<{aligned}>", "codes", "labels", "regions", "opened", *known, "min_region_size",
             "rows", "cols"),
    )  # fmt: skip


def reference_regions(
    x: AnyArray, threshold: float, rule: str, majority: int, min_region_size: int, connectivity: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray]:
    """Components label by label, renamed after their first pixels."""
    voted = reference(x, threshold, rule, majority, xp)
    regions = xp.zeros(voted.shape, dtype="int32")
    structure = xp.ones((3, 3)) if connectivity == 8 else xp.asarray([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    components = import_module("scipy.ndimage" if xp is np else "cupyx.scipy.ndimage").label
    for label in range(4 if voted.size else 0):
        members, count = components(voted == label, structure)
        first = xp.full(int(count) + 1, voted.size, dtype="int32")
        xp.minimum.at(first, members.reshape(-1), xp.arange(voted.size, dtype="int32"))
        regions = xp.where(members > 0, first[members] + 1, regions)
    sizes = xp.bincount(regions.reshape(-1), minlength=1)
    return xp.where(sizes[regions] >= min_region_size, voted, 0), regions


def speckled(rows: int, cols: int) -> AnyArray:
    """Regions of one pixel to many, some of which touch at corners only."""
    return np.random.default_rng(7).choice([40.0, 70.0, 120.0, 200.0], size=(rows, cols), p=[0.4, 0.1, 0.1, 0.4])


def stripes(rows: int, cols: int) -> AnyArray:
    """Diagonal stripes, which hang together by corners."""
    return np.where(np.indices((rows, cols)).sum(axis=0) % 5 < 2, 200.0, 60.0)


def combs(rows: int, cols: int) -> AnyArray:
    """Teeth from above and from below, one pixel wide, that hang together at their ends only."""
    row, column = np.indices((rows, cols))
    return np.where((column % 2 == 1) & (row > 0) | (row == rows - 1), 200.0, 60.0)


def thirds(rows: int, cols: int) -> AnyArray:
    """The guide's image: 50, 150 and 250 in flat thirds of the pixels, in storage order."""
    ends = [round(rows * cols * part / 3) for part in range(4)]
    return np.repeat([50.0, 150.0, 250.0], np.diff(ends)).reshape(rows, cols)


def thirds_labels(*labels: Any) -> Callable[..., Any]:
    """The guide's image labelled; the vote leaves it as it is."""
    return lambda rows, cols: np.select([thirds(rows, cols) == grey for grey in (50, 150, 250)], labels)


def awkward(rows: int, cols: int) -> AnyArray:
    """Pixels on and next to the cuts of t = 100, infinities and NaN."""
    grey = [50, 100, 150, np.nextafter(np.float32(50), 0), np.nextafter(np.float32(150), 999), np.nan, np.inf, -np.inf]
    return np.random.default_rng(5).choice(grey, size=(rows, cols))


def lonely(rows: int, cols: int) -> AnyArray:
    """A flat image with single odd pixels (8 neighbours vote them down), also at the border, where 5 cannot."""
    image = np.full((rows, cols), 200.0)
    image[1::3, 1::3] = 0.0
    image[0, 0] = image[0, 3] = image[-1, -1] = 0.0
    return image


def arguments(label: str) -> tuple[Array | Scalar, ...]:
    return (
        In("x", "rows cols", fill=normal(100, 60)), Out("labels", "rows cols", dtype=label), Scalar("threshold"),
        Size("majority"), Size("rows"), Size("cols"),
    )  # fmt: skip


RULES = (
    Rule("rule to be gt or ge", lambda rule: rule in ("gt", "ge")),
    Rule("4 <= majority <= 8, so that no two labels can win", lambda majority: 4 <= majority <= 8),
)
guide = Workload(rows=256, cols=256, threshold=100.0)

spec = KernelSpec(
    entry="image_segmentation<false, true, int>",
    arguments=arguments("int32"),
    parameters={"threshold": 100.0, "rule": "gt", "majority": 5},
    derived={
        "tiles": lambda rows, cols: -(-rows // TILE_ROWS) * -(-cols // TILE_COLUMNS),
        "across": lambda rows, cols: max(0, (rows - 1) // TILE_ROWS) * cols,  # pixels under a border of two tiles
        "along": lambda rows, cols: max(0, (cols - 1) // TILE_COLUMNS) * rows,  # and to the right of one
    },
    rules=RULES,
    launch=launch_of("int"),
    reference=reference,
    tolerance=exact(),
    peers={"cupy": Peer(cupy_segment, poor=EAGER_STEPS), "torch": torch_segment, "torch_packed": torch_packed},
    looked_at={"cucim": "its rank filter `modal` gives the commonest label, not the one that most neighbours share"},
    peer_tolerance=exact(),
    flops=lambda rows, cols: 30 * rows * cols,
    workloads={
        "S0": guide,
        "S1": Workload(rows=8192, cols=8192, threshold=100.0),
        "S2": Workload(rows=16_384, cols=16_384, threshold=100.0),
    },
    edges=(
        *(Workload(rows=r, cols=c) for r, c in ((0, 5), (5, 0), (1, 1), (1, 4), (1, 131), (131, 1), (2, 2), (3, 3))),
        *(Workload(rows=37, cols=c, rule=rule) for c in (4, 124, 128, 132, 1028) for rule in ("gt", "ge")),
        *(Workload(rows=41, cols=c, rule=rule) for c in (5, 127, 129, 1027) for rule in ("gt", "ge")),
        *(Workload(rows=19, cols=36, threshold=t) for t in (0.0, -40.0, -400.0, 0.3, 1e30)),
        *(Workload(rows=19, cols=36, majority=m) for m in (4, 7, 8)),
    ),
    golden=(
        Golden(guide, {"x": thirds}, {"labels": thirds_labels(0, 2, 1)},
        source="21845, 21845, 21846 and 0 pixels (gt)"),
        Golden(
            Workload(rows=256, cols=256, rule="ge"), {"x": thirds}, {"labels": thirds_labels(3, 1, 1)},
            source="the cuts belong to the labels above them (ge)",
        ),
        *(
            Golden(Workload(rows=33, cols=c, rule=rule), {"x": awkward}, {}, source="on the cuts, infinities, NaN")
            for c in (36, 41) for rule in ("gt", "ge")
        ),
        Golden(Workload(rows=10, cols=13), {"x": lonely}, {}, source="single pixels are voted down, corners are not"),
    ),
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),
             Budget("bandwidth_share", at_least=0.85, label="S2")),
    variants={
        "bytes": Variant(
            "labels of a byte each",
            arguments=arguments("uint8"),
            launch=launch_of("unsigned char"),
            reference=reference_bytes,
            edges=tuple(Workload(rows=37, cols=c, rule=rule) for c in (1, 36, 130, 1028) for rule in ("gt", "ge")),
            golden=(),
            only_labels=("S0", "S1"),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "regions": Variant(
            "also regions; those of fewer than `min_region_size` pixels become 0",
            arguments=(
                In("x", "rows cols", fill=normal(100, 60)), Out("labels", "rows cols", dtype="int32"),
                Out("regions", "rows cols", dtype="int32"), Scratch("opened", "tiles", dtype="int32"),
                *(Scratch(known, f"tiles {MOST_OPEN}", dtype="int32") for known in ("parent", "firsts", "sizes")),
                Scalar("threshold"), Size("majority"), Size("min_region_size"), Size("rows"), Size("cols"),
                Size("across", "int64"), Size("along", "int64"), Scratch("codes", "rows cols", dtype="uint16"),
            ),
            parameters={"threshold": 100.0, "rule": "gt", "majority": 5, "min_region_size": 16, "connectivity": 8},
            rules=(
                *RULES,
                Rule("connectivity to be 8 or 4", lambda connectivity: connectivity in (8, 4)),
                Rule("min_region_size >= 1", lambda min_region_size: min_region_size >= 1),
                Rule("rows x cols < 2^31, as regions are 32-bit", lambda rows, cols: rows * cols < 1 << 31),
                Rule("tiles of 64 x 128 < 2^30 / 384, as numbers of regions at their borders have 30 bits",
                     lambda tiles: tiles * MOST_OPEN < 1 << 30),
            ),
            launch=launch_regions,
            reference=reference_regions,
            edges=(
                *(Workload(rows=r, cols=c) for r, c in ((0, 5), (5, 0), (1, 1), (1, 131), (131, 1))),
                *(Workload(rows=37, cols=c, connectivity=n, min_region_size=m)
                  for c, n, m in ((40, 8, 3), (300, 8, 20), (41, 4, 2), (132, 4, 1))),
                *(Workload(rows=r, cols=c, connectivity=n, min_region_size=9)
                  for r, c, n in ((64, 128, 8), (65, 129, 8), (65, 132, 4), (130, 257, 4), (129, 388, 8))),
            ),
            golden=(
                Golden(
                    Workload(rows=2, cols=4, majority=8, min_region_size=3, connectivity=4),
                    {"x": [[200, 200, 60, 200], [200, 60, 60, 200]]},
                    {"labels": [[1, 1, 3, 0], [1, 3, 3, 0]], "regions": [[1, 1, 3, 4], [1, 3, 3, 4]]},
                    source="calculated: one of two pixels goes",
                ),
                Golden(
                    Workload(rows=70, cols=140, min_region_size=9), {"x": 200.0}, {},
                    source="one region: patches that are whole",
                ),
                *(
                    Golden(Workload(rows=70, cols=90, majority=8, min_region_size=m, connectivity=n), {"x": draw}, {},
                           source=draw.__doc__)  # pyright: ignore[reportArgumentType] - both have one
                    for draw in (speckled, stripes) for n, m in ((8, 5), (4, 2))
                ),
                *(
                    Golden(Workload(rows=r, cols=c, majority=8, min_region_size=m, connectivity=n), {"x": draw}, {},
                           source=f"{draw.__doc__} Over several tiles.")
                    for r, c, n, m in ((140, 300, 8, 30), (131, 261, 4, 7)) for draw in (speckled, stripes, combs)
                ),
            ),
            bytes_moved=lambda rows, cols: 16 * rows * cols,  # codes of 16 bits are written and read again
            only_labels=("S0", "S1"), traffic_factor=None, peers={}, budgets=(),
        ),
    },
)  # fmt: skip
