"""2 x by tensor descriptors."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    source="../../src/rowwise/ops/rows.py",
    language="triton",
    entry="described",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("rows"), Size("cols")),
    launch=lambda rows, cols: Launch((-(-rows // 16), -(-cols // 16)), constants={"BLOCK": 16}),
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(rows=40, cols=20)},
)
