"""Kernels by rows, as a project has them."""

raise RuntimeError("a package above a kernel is not executed")
