"""Right to a unit in the last place, but no two launches agree bit by bit."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, elementwise

spec = KernelSpec(
    entry="nearly_doubled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=256),
    reference=lambda x: 2 * x,
    tolerance=elementwise(),
    workloads={"S0": Workload(n=1000)},
)
