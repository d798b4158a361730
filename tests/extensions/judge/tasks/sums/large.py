"""c = a + b at a size that a GPU works on: the task of the entries that need one."""

from prism_bench import Edge, In, KernelSpec, Launch, Out, Size, Workload, exact, uniform

spec = KernelSpec(
    entry="add",
    source="add.cu",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda a, b: a + b,
    tolerance=exact(),
    workloads={"S0": Workload(n=600), "S1": Workload(n=1 << 20)},
    edges=(
        Workload(n=0),
        Workload(n=257),
        Edge("subnormal", Workload(n=64), {"a": uniform(0, 1e-39), "b": uniform(0, 1e-39)}),
    ),
)
