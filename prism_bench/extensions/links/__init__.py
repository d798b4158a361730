"""Several GPUs of one host in one kernel: what links carry, and a product with its all-reduce in one launch.

operations     what each GPU gets, what it must hold afterwards, how many bytes have to move
group          what a group of GPUs offers: prepare, launch on all, time the slowest
cuda_group     GPUs that reach each other's memory; nccl and fused are what they launch
emulated_group the fused kernel's own source on the CPU
host_group     results of the reference on the null backend, for tests
session        one task: verify, or time and verify again
"""

from prism_bench.extension import Extension

EXTENSION = Extension("links", commands={"links": "command"})
