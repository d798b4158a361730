"""y = sum of x, up to four blocks of what a fill draws at once."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, reduction, uniform

spec = KernelSpec(
    entry="total",
    arguments=(In("x", "n", fill=uniform(0, 1)), Out("y", "1"), Size("n", "int64")),
    launch=lambda: Launch(1, 256),
    reference=lambda x: x.sum(),
    tolerance=reduction(magnitude=lambda x, xp: xp.abs(x).sum()),
    workloads={"S0": Workload(n=600), "S1": Workload(n=4 << 20)},
    edges=(Workload(n=1), Workload(n=257)),
)
