"""c = a + b within a hundredth, in float32 at least."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, absolute

spec = KernelSpec(
    entry="add",
    source="add.cu",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda a, b: a + b,
    tolerance=absolute(1e-2),
    workloads={"S0": Workload(n=600)},
    least_precision="fp32",
)
