"""Sum of x by atomic additions, which the project's hook begins at zero."""

import numpy as np

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, Zero, reduction

spec = KernelSpec(
    source="../../src/rowwise/ops/rows.py",
    language="triton",
    entry="summed",
    arguments=(In("x", "n"), Out("total", "1"), Size("n")),
    launch=lambda n: (Zero("total"), Launch(-(-n // 256), constants={"BLOCK": 256})),
    reference=lambda x: np.sum(x, keepdims=True),
    tolerance=reduction(lambda x: np.sum(np.abs(x))),
    workloads={"S0": Workload(n=1000)},
)
