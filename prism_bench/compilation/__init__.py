"""CUDA C++ to machine code through NVRTC or nvcc: no driver needed, cached by content, the compiler's words kept.

Machine code that exists already, in a cubin, a fat binary or a library, is found in it.
"""

from prism_bench.compilation.compilers import include_folders
from prism_bench.compilation.cubin import Resources, sass_hash
from prism_bench.compilation.prebuilt import Compiled
from prism_bench.compilation.program import (
    compile_source,
    compile_to_ptx,
    compiler_of,
    nvrtc_architectures,
    nvrtc_version,
    source_hash,
)

__all__ = [
    "Compiled", "Resources", "compile_source", "compile_to_ptx", "compiler_of", "include_folders",
    "nvrtc_architectures", "nvrtc_version", "sass_hash", "source_hash",
]  # fmt: skip
