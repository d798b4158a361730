"""Works on the usual poison of a check and leaves every other one where it is."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="one_poison",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=256),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
