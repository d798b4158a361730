"""Kernels, launches and operators in a project's existing source files, and specs of them.

A syntax tree reads CUDA C++, Python's own parser reads Triton and PyTorch operators; no source is executed.
"""
