"""erf(x) + 2^x by rows, by a kernel whose constants heuristics decide."""

import numpy as np

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    source="../../src/rowwise/ops/rows.py",
    language="triton",
    entry="decided",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols")),
    launch=lambda rows, cols: Launch(rows, constants={"BLOCK": 64, "EVEN": cols == 64}),
    reference=lambda x, special: special.erf(x) + np.exp2(x),
    workloads={"S0": Workload(rows=3, cols=60)},
    edges=(Workload(rows=2, cols=64),),
)
