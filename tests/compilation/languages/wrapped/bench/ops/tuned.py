"""Half of tanh(x), by an autotuned kernel."""

import numpy as np

from prism_bench import In, KernelSpec, Launch, Out, Size, Tune, Workload

spec = KernelSpec(
    source="../../src/rowwise/ops/rows.py",
    language="triton",
    entry="tuned",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n, block: Launch(-(-n // block), constants={"BLOCK": block, "num_warps": 4}),
    reference=lambda x: 0.5 * np.tanh(x),
    tune=Tune(block=(256, 512)),
    workloads={"S0": Workload(n=1000)},
)
