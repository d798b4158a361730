"""c = a + b: the task of the museum."""

from prism_bench import Edge, In, KernelSpec, Launch, Out, Size, Workload, exact, uniform

spec = KernelSpec(
    entry="add",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda a, b: a + b,
    tolerance=exact(),
    workloads={"S0": Workload(n=3000)},
    edges=(
        Workload(n=0),
        Workload(n=257),
        Edge("subnormal", Workload(n=64), {"a": uniform(0, 1e-39), "b": uniform(0, 1e-39)}),
    ),
)
