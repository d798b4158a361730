"""x^2 by a kernel under both wrappers, with a constant that has a default."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    source="../../src/rowwise/ops/rows.py",
    language="triton",
    entry="both",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(-(-n // 128), constants={"BLOCK": 128}),
    reference=lambda x: x * x,
    workloads={"S0": Workload(n=300)},
)
