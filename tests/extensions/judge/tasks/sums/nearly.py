"""c = a + b / 1000: a copy of an input is nearly right."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, elementwise

spec = KernelSpec(
    entry="add",
    source="add.cu",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda a, b: a + b / 1000,
    tolerance=elementwise(),
    workloads={"S0": Workload(n=600)},
)
