"""Does nothing where the launch before ended less than 15 us ago: in a graph, all but the first time."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="rests_when_busy",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=256),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
