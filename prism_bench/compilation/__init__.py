"""CUDA C++ to machine code through NVRTC: no driver needed, cached by content, the compiler's words kept."""

from prism_bench.compilation.code import Resources, sass_hash
from prism_bench.compilation.headers import include_folders
from prism_bench.compilation.program import Compiled, compile_source, compile_to_ptx, nvrtc_version, source_hash

__all__ = [
    "Compiled", "Resources", "compile_source", "compile_to_ptx", "include_folders", "nvrtc_version", "sass_hash",
    "source_hash",
]  # fmt: skip
