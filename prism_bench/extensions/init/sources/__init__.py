"""Other people's source files: the kernels in them, and the device side of those that hold host code.

A syntax tree reads CUDA C++, Python's own parser reads Triton and PyTorch operators; nothing is executed.
"""
