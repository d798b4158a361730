"""Small programs, one for each kind of launch and for each thing that the generator may be asked."""

from prism_bench import Workload
from prism_bench.extensions.fusion import (
    ColumnSums,
    FusionProgram,
    Input,
    Map,
    Nearest,
    Product,
    Reduce,
    RowDots,
    Within,
    names,
)
from prism_bench.extensions.fusion.expression import relu

x, y, a, b, total, most, summed = names("x y a b total most summed")
dots, product, bias, scale = names("dots product bias scale")
n, k, radius, distances, near, nearer = names("n k radius distances near nearer")
LENGTHS = tuple(Workload(n=n) for n in (0, 1, 7, 1030))
VECTORS = (Input("x", "n"), Input("y", "n"))


def program(stages, outputs, inputs=VECTORS, edges=LENGTHS, **more) -> FusionProgram:
    """A program of these stages with all that is not of interest filled in."""
    return FusionProgram(inputs, tuple(stages), outputs, {"S0": Workload(**edges[-1])}, edges[:-1], **more)


def tables(*sizes):
    return tuple(Workload(m=m, n=n) for m, n in sizes)


MAPS = program(
    [Map("a", x * y + 1), Map("b", 0.5 * (a - x) / (y * y + 2.0))], ("a", "b"), numbers=("float32", "float64")
)
SUMS = program(
    [
        Reduce("total", "sum", x - y),
        Reduce("most", "max", x * y),
        Reduce("summed", "squares", y),
        Map("a", -most * 2 + total),
        Map("b", x + y),
    ],
    ("total", "most", "summed", "a", "b"),
    edges=tuple(Workload(n=n) for n in (1, 7, 30_011, 1030)),
    numbers=("float32", "float64"),
)
ROWS = program(
    [RowDots("dots", "w", "x"), Map("b", dots * scale), Reduce("most", "max", b), Reduce("total", "sum", dots)],
    ("b", "most", "total"),
    inputs=(Input("w", "m n"), Input("x", "n")),
    edges=tables((1, 1), (9, 33), (5, 1100)),
    scalars={"scale": 2.0},
)
PLAIN_ROWS = program(
    [RowDots("dots", "w", "x")], ("dots",), inputs=(Input("w", "m n"), Input("x", "n")), edges=tables((0, 3), (9, 33))
)
COLUMNS = program(
    [ColumnSums("summed", "w", x + 1), Map("a", summed / 2), Map("b", summed - y)],
    ("a", "b"),
    inputs=(Input("w", "rows cols"), Input("x", "rows"), Input("y", "cols")),
    edges=tuple(Workload(rows=r, cols=c) for r, c in ((0, 3), (5, 129), (70, 300))),
)
PLAIN_PRODUCT = program(
    [Product("product", "w", "v", ("float32", "float16"))],
    ("product",),
    inputs=(Input("w", "m k"), Input("v", "k n")),
    edges=tuple(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 4), (17, 20, 9))),
)
PRODUCT = program(
    [Product("product", "w", "v"), Map("a", relu((product + bias) * scale) + 1)],
    ("a",),
    inputs=(Input("w", "m k"), Input("v", "k n"), Input("bias", "n")),
    edges=tuple(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (17, 20, 9), (33, 35, 19))),
    scalars={"scale": 3.0},
)
CLOUD = (Input("u", "n d"), Input("v", "n"), Input("w", "n e"))
POINTS = tuple(Workload(n=n, d=d, e=e) for n, d, e in ((5, 1, 2), (33, 3, 1), (260, 2, 2)))
NEIGHBOURS = program(
    [
        Nearest("distances", ("u", "w"), k=2),
        Within("near", ("u", "v"), "distances"),
        Within("nearer", ("v", "w"), "distances"),
        Map("a", near - nearer),
        Reduce("total", "sum", near * 2 + k),
        Reduce("most", "max", distances),
        Map("b", total / n + most),
    ],
    ("distances", "a", "b"),
    inputs=CLOUD,
    edges=POINTS,
)
COUNTED = program(
    [Within("near", ("u",), "radius"), Map("a", near * radius)],
    ("near", "a"),
    inputs=(Input("u", "n d"), Input("radius", "n")),
    edges=tuple(Workload(n=n, d=2) for n in (1, 40, 300)),
)
