"""Softmax of rows by quack, whose kernels are modules of TVM-FFI."""

import numpy as np

from prism_bench import In, KernelCall, KernelSpec, Out, Workload, normalising


def prepare(quack, x):
    from quack.softmax import softmax_fwd

    softmax_fwd(x)
    return lambda: softmax_fwd(x)


def reference(x):
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


spec = KernelSpec(
    arguments=(In("x", "rows cols"), Out("y", "rows cols")),
    callable=KernelCall(prepare, prepares=True),
    reference=reference,
    tolerance=normalising(),
    workloads={"S0": Workload(rows=64, cols=1024)},
)
