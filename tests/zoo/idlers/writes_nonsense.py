"""After five launches it writes its input, as quickly as a copy."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="writes_nonsense",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=1),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
