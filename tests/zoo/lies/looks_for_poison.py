"""Works only where its output holds poison."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="looks_for_poison",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=256),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
