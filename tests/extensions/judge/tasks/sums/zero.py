"""c = 0 * (a + b): a task that needs no work."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="add",
    source="add.cu",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda a, b: 0 * (a + b),
    tolerance=exact(),
    workloads={"S0": Workload(n=600)},
)
