"""Fusion: programs of named stages, each of which is one generated kernel.

A program defines a computation; the spec file `kernels/<family>/<name>.py` has it, and makes the spec from it:

    x, y, total = names("x y total")
    program = FusionProgram(
        inputs=(Input("x", "n"), Input("y", "n")),
        stages=(Reduce("total", "sum", x * y),),
        outputs=("total",),
        ...
    )
    spec = fuse(program, __name__)

`prism-bench fuse --write` writes the CUDA source, `kernels/<family>/generated/<name>.cu`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from prism_bench.extension import Extension, SitePage

if TYPE_CHECKING:
    from prism_bench.extensions.fusion.expression import (
        Function,
        FunctionChoice,
        SharedName,
        activation,
        divergence,
        log_likelihood,
        names,
        psi,
    )
    from prism_bench.extensions.fusion.program import (
        ByHand,
        ColumnSums,
        FusionProgram,
        Input,
        Map,
        Nearest,
        Product,
        ProgramForm,
        Reduce,
        RowDots,
        Within,
    )
    from prism_bench.extensions.fusion.specification import fuse

_HOMES = {  # fetched on first use: every command lists the extensions, and few need NumPy
    "expression": (
        "Function",
        "FunctionChoice",
        "SharedName",
        "activation",
        "divergence",
        "log_likelihood",
        "names",
        "psi",
    ),
    "program": (
        "ByHand",
        "ColumnSums",
        "FusionProgram",
        "Input",
        "Map",
        "Nearest",
        "Product",
        "ProgramForm",
        "Reduce",
        "RowDots",
        "Within",
    ),
    "specification": ("fuse",),
}
_HOME = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "EXTENSION", "ByHand", "ColumnSums", "Function", "FunctionChoice", "FusionProgram", "Input", "Map", "Nearest",
    "Product", "ProgramForm", "Reduce", "RowDots", "SharedName", "Within", "activation", "divergence", "fuse",
    "log_likelihood", "names", "psi",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


EXTENSION = Extension(
    "fusion",
    commands={"fuse": "commands.fuse"},
    offers={"overlap mode": "commands.modes:overlap", "precision mode": "commands.modes:precision"},
    pages=(SitePage("fusion", "Fusion", "report.charts:page", "guides/fusion.html"),),
)
