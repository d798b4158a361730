"""c = 0.75 + (a + b) / 2^40: outputs are the same whatever the inputs are."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, elementwise

spec = KernelSpec(
    entry="add",
    source="add.cu",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda a, b: 0.75 + (a + b) / (1 << 40),
    tolerance=elementwise(),
    workloads={"S0": Workload(n=600)},
)
