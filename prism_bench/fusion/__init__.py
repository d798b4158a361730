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

from prism_bench.fusion.expression import Choice, Function, Shared, names
from prism_bench.fusion.program import ByHand, Form, Input, Program
from prism_bench.fusion.stages import ColumnSums, Map, Nearest, Product, Reduce, RowDots, Within

__all__ = [
    "ByHand", "Choice", "ColumnSums", "Form", "Function", "Input", "Map", "Nearest", "Product", "Program", "Reduce",
    "RowDots", "Shared", "Within", "names",
]  # fmt: skip
