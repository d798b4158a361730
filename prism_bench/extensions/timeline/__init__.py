"""Regions inside CUDA C++ kernels: a header that marks them, their recording, and what a timeline of them means."""

from prism_bench.extension import Extension

EXTENSION = Extension("timeline", commands={"timeline": "command"})
