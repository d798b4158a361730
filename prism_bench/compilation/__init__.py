"""CUDA C++ to machine code through NVRTC: no driver needed, cached by content, the compiler's words kept."""

from prism_bench.compilation.code import Resources, sass_hash
from prism_bench.compilation.headers import include_folders
from prism_bench.compilation.program import Compiled, compile_source, nvrtc_version

__all__ = ["Compiled", "Resources", "compile_source", "include_folders", "nvrtc_version", "sass_hash"]
