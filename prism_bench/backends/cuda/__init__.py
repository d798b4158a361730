"""The CUDA backend: kernels compiled by NVRTC, launched through CuPy, timed by events and graphs on one stream."""

from prism_bench.backends.cuda.backend import open_backend

__all__ = ["open_backend"]
