"""Several GPUs of one host in one kernel: the bandwidth of links, and a product with its all-reduce in one launch.

`python -m prism_bench.extensions.links` measures them.

operations  inputs of each GPU, expected outputs, and bytes to move
groups      groups of GPUs on CUDA, on the emulator and on the null backend: prepare, launch on all, time the slowest
session     a task: verify, or time and verify again; its rows, view and JSON
worker      the process that runs the tasks
"""

from prism_bench.extension import Extension

EXTENSION = Extension("links")
