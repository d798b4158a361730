"""Attention of 16-bit operands by flash-attn-4, whose kernels are modules of TVM-FFI."""

import numpy as np

from prism_bench import In, KernelCall, KernelSpec, Out, Workload, normwise


def prepare(flash_attn, q, k, v):
    def call():
        found = flash_attn.flash_attn_func(q, k, v)
        return found[0] if isinstance(found, tuple) else found

    call()
    return call


def reference(q, k, v):
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", weights / weights.sum(axis=-1, keepdims=True), v)


SHAPE = "batch length heads width"
spec = KernelSpec(
    arguments=(*(In(name, SHAPE, dtype="float16") for name in "qkv"), Out("o", SHAPE, dtype="float16")),
    callable=KernelCall(prepare, prepares=True),
    reference=reference,
    tolerance=normwise(2e-3),
    workloads={"S0": Workload(batch=1, length=256, heads=2, width=64)},
)
