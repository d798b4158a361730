"""The device side of a CUDA C++ file that holds host code, too."""
