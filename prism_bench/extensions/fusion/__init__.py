"""Fusion: programs of named stages, and the generator that writes each as one kernel with its spec.

A program says once what is computed; `kernels/<family>/fusions/<name>.py` holds one as `program = Program(...)`:

    x, y, total = names("x y total")
    program = Program(
        summary="The sum of the products.",
        inputs=(Input("x", "n"), Input("y", "n")),
        stages=(Reduce("total", "sum", x * y),),
        outputs=("total",),
        ...
    )
"""

from prism_bench.extension import Extension, SitePage
from prism_bench.extensions.fusion.expression import Choice, Function, Shared, names
from prism_bench.extensions.fusion.program import ByHand, Form, Input, Program
from prism_bench.extensions.fusion.stages import ColumnSums, Map, Nearest, Product, Reduce, RowDots, Within

__all__ = [
    "EXTENSION",
    "ByHand", "Choice", "ColumnSums", "Form", "Function", "Input", "Map", "Nearest", "Product", "Program", "Reduce",
    "RowDots", "Shared", "Within", "names",
]  # fmt: skip

EXTENSION = Extension(
    "fusion",
    commands=("commands.fuse", "commands.precision", "commands.fusion", "commands.overlap"),
    pages=(SitePage("fusion", "Fusion", "report.page:page"),),
)
