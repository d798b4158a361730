"""Other people's source files: the kernels in them, and the device side of those that hold host code.

A syntax tree reads CUDA C++, Python's own parser reads Triton and PyTorch operators; nothing is executed.
"""

from prism_bench.sources.found import (
    FoundKernel,
    FoundLaunch,
    FoundOperator,
    FoundParameter,
    Guess,
    Role,
    Scan,
    Skeleton,
    TemplateParameter,
    Unread,
)
from prism_bench.sources.scan import scan
from prism_bench.sources.skeleton import skeleton

__all__ = [
    "FoundKernel", "FoundLaunch", "FoundOperator", "FoundParameter", "Guess", "Role", "Scan", "Skeleton",
    "TemplateParameter", "Unread", "scan", "skeleton",
]  # fmt: skip
