"""y = 3 x: one rounding."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="tripled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=-(-n // 128), block=128),
    reference=lambda x: 3 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
    edges=(Workload(n=1),),
)
