"""Kernel languages: compile kernels that are not CUDA C++, each in a child process, to machine code and launch cards.

`loaders` has one file for each language, named by the suffix of its kernels' files: `softmax.triton.py` is the form of
`softmax` that `loaders/triton.py` compiles. `build` is the one way to machine code, for CUDA C++ too.
"""

from prism_bench.compilation.languages.building import (
    BuildRequest,
    BuiltCode,
    BuiltKernel,
    build,
    build_request,
    code_facts,
    request_of,
    source_hash,
)
from prism_bench.compilation.languages.language import Language, MachineCode, language, names

__all__ = [
    "BuildRequest", "BuiltCode", "BuiltKernel", "Language", "MachineCode", "build", "build_request", "code_facts",
    "language", "names", "request_of", "source_hash",
]  # fmt: skip
