"""CUDA C++ to machine code through NVRTC or nvcc, without a driver, cached by content with the compiler's log.

compilers    NVRTC by either binding, nvcc, CUDA's headers
program      one source file through its compiler, and the cache
prebuilt     existing machine code: cubins, fat binaries, libraries
cubin        a cubin's sections, symbols, hashes, parameters
listing      disassembly, kinds of instructions, differences between builds
sources      texts that decide a hash: CUDA C++ and Python with their imports
host_source  the device side of a source that has host code
languages    kernels that are not CUDA C++
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
