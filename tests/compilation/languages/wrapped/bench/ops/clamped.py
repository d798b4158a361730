"""A copy whose lanes behind the end read the last element."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    source="../../src/rowwise/ops/rows.py",
    language="triton",
    entry="clamped",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(-(-n // 128), constants={"BLOCK": 128}),
    reference=lambda x: x,
    workloads={"S0": Workload(n=300)},
)
