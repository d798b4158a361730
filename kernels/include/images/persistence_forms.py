"""The variants of persistence.cuh: the death of each pixel's component, and the pairs alone as a diagram."""

from typing import Any

import numpy as np

from prism_bench import Golden, In, Launch, Out, Rule, Scalar, Scratch, Size, Variant, Workload, Zero
from prism_bench.spec import AnyArray, ArrayModule, Device

from .persistence import deaths, on_host, reference

PAIR_TILE = 2048  # pixels of a block that gathers pairs
BY_HAND = [[5, 1, 0, 2, 4], [1, 1, 1, 2, 2], [3, 0, 0, 0, 3.5]]
WORK = (
    Scratch("component", "rows cols", dtype="int32"), Scratch("up", "rows cols", dtype="int32"),
    Scratch("meeting", "rows cols", dtype="uint64"), Scratch("list", "rows cols", dtype="int32"),
    Scratch("died", "3", dtype="int32"), Size("rows"), Size("cols"),
    Scalar("least"),
)  # fmt: skip


def launch(rows: int, cols: int, connectivity: int, device: Device) -> Launch:
    """As many blocks as are on the device together: they wait for one another."""
    entry = f"tda_persistence<{str(connectivity == 8).lower()}>"
    return Launch(
        min(4 * device.sm_count, -(-rows * cols // 256)), 256, entry=entry, cooperative=True,
        arguments=("x", "death", "component", "up", "meeting", "list", "died", "rows", "cols", "least"),
    )  # fmt: skip


def launch_diagram(
    rows: int, cols: int, connectivity: int, most: int, tiles: int, device: Device
) -> tuple[Launch | Zero, ...]:
    """Deaths, the pairs among them in order, and NaN behind those."""
    pairs = ("x", "death", "diagram", "count", "states", "pixels")
    return (
        Zero("states"), launch(rows, cols, connectivity, device),
        Launch(tiles, 256, entry="tda_pairs", arguments=pairs),
        Launch(min(8 * device.sm_count, -(-most // 256)), 256, entry="tda_no_pairs",
               arguments=("diagram", "count", "most")),
    )  # fmt: skip


def most_pairs(rows: int, cols: int, connectivity: int) -> int:
    """Of two neighbours one at most is a maximum, so of a square, or of a pair."""
    return (-(-rows // 2) if connectivity == 8 else rows) * -(-cols // 2)


def reference_diagram(
    x: AnyArray, least: float, connectivity: int, most: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray]:
    host = on_host(x, xp)
    death = deaths(host, least, connectivity)
    there = death < host
    diagram = np.full((most, 2), np.nan)
    diagram[: there.sum()] = np.stack((host[there], death[there]), axis=1)
    return xp.asarray(diagram), xp.asarray([int(there.sum())])


def peaks(rows: int, cols: int) -> AnyArray:
    """As many maxima as there can be of 8 neighbours, each of another height, over ground of another height."""
    rng = np.random.default_rng(8)
    peak = np.logical_not(np.indices((rows, cols)) % 2).all(axis=0)
    return np.where(peak, 2 + rng.permutation(rows * cols).reshape(rows, cols), rng.uniform(size=(rows, cols)))


def flat(rows: int, cols: int) -> AnyArray:
    """Plateaus, whose components live no time, and -inf, where nothing is born."""
    return np.random.default_rng(9).choice([-np.inf, 1.0, 2.0], size=(rows, cols))


def persistence(drawn: tuple[tuple[Any, ...], tuple[Any, ...]]) -> Variant:
    """`drawn` are makers of awkward images with what they are."""
    return Variant(
        "when the component of each local maximum dies as the threshold falls: its pair is (x, death)",
        arguments=(In("x", "rows cols"), Out("death", "rows cols"), *WORK),
        parameters={"least": 0.0, "connectivity": 8},
        launch=launch,
        reference=reference,
        peers={},
        bytes_moved=lambda pixels: 8 * pixels,
        traffic_factor=None,
        workloads={"S0": Workload(rows=512, cols=512), "S1": Workload(rows=2048, cols=2048)},
        edges=(
            *(Workload(rows=r, cols=c) for r, c in ((0, 5), (1, 1), (1, 40), (37, 70))),
            Workload(rows=20, cols=31, connectivity=4),
            Workload(rows=20, cols=31, least=1.0),
        ),
        golden=(
            Golden(
                Workload(rows=3, cols=5), {"x": BY_HAND}, {"death": [[-np.inf, 1, 0, 2, 1], [1, 1, 1, 2, 2],
                [1, 0, 0, 0, 2]]}, source="calculated: 3.5 meets 4 at 2, then 4 and 3 meet 5 at 1",
            ),
            Golden(
                Workload(rows=2, cols=3), {"x": [[1, np.nan, 3], [1, np.nan, -np.inf]]},
                {"death": [[-np.inf, np.nan, -np.inf], [1, np.nan, -np.inf]]}, source="NaN parts the image",
            ),
            *(Golden(Workload(rows=r, cols=c), {"x": draw}, {}, source=source) for (r, c), draw, source in drawn),
        ),
        budgets=(),
    )  # fmt: skip


def diagram(rules: tuple[Rule, Rule, Rule], drawn: tuple[tuple[Any, ...], tuple[Any, ...]]) -> Variant:
    """The variant whose output is compact: `count` rows of pairs, longer than `least` or as long."""
    return Variant(
        "persistence as a diagram: the pairs (birth, death) of a length above 0, at least `least`, and their number",
        arguments=(
            In("x", "rows cols"), Out("diagram", "most 2"), Out("count", "1", dtype="int32"),
            Scratch("death", "rows cols"), *WORK, Scratch("states", "words", dtype="uint64"),
            Size("pixels", "int64"), Size("most"),
        ),
        parameters={"least": 0.0, "connectivity": 8},
        derived={
            "pixels": lambda rows, cols: rows * cols,
            "most": most_pairs,
            "tiles": lambda pixels: max(1, -(-pixels // PAIR_TILE)),
            "words": lambda tiles: tiles + 1,
        },
        rules=(*rules, Rule("least >= 0", lambda least: least >= 0)),
        launch=launch_diagram,
        reference=reference_diagram,
        peers={},
        bytes_moved=lambda pixels, most: 8 * pixels + 8 * most + 8,  # the pairs' launch reads the image again
        traffic_factor=None,
        workloads={"S0": Workload(rows=512, cols=512), "S1": Workload(rows=2048, cols=2048)},
        edges=(
            *(Workload(rows=r, cols=c) for r, c in ((0, 5), (5, 0), (1, 1), (1, 40), (37, 70), (64, 65))),
            Workload(rows=20, cols=31, connectivity=4),
            Workload(rows=40, cols=131, least=1.0),
        ),
        golden=(
            Golden(
                Workload(rows=3, cols=5), {"x": BY_HAND},
                {"diagram": [[5, -np.inf], [4, 1], [3, 1], [3.5, 2], [np.nan] * 2, [np.nan] * 2], "count": [4]},
                source="calculated, in the order of pixels",
            ),
            Golden(
                Workload(rows=3, cols=5, least=1.75), {"x": BY_HAND},
                {"diagram": [[5, -np.inf], [4, 1], [3, 1], *[[np.nan] * 2] * 3], "count": [3]},
                source="calculated: the one of length 1.5 is left out",
            ),
            Golden(
                Workload(rows=1, cols=4, connectivity=4), {"x": [[np.nan, -np.inf, np.nan, np.nan]]},
                {"diagram": [[np.nan] * 2] * 2, "count": [0]}, source="NaN enters nowhere, at -inf nothing is born",
            ),
            Golden(Workload(rows=5, cols=7), {"x": peaks}, {"count": [12]}, source="all the pairs there can be"),
            Golden(Workload(rows=30, cols=80), {"x": flat}, {}, source="plateaus and -inf"),
            *(Golden(Workload(rows=r, cols=c), {"x": draw}, {}, source=source) for (r, c), draw, source in drawn),
        ),
        budgets=(),
    )  # fmt: skip
