"""y = 2 x, returned without its last element."""

from prism_bench import In, KernelSpec, Out, Workload

spec = KernelSpec(
    arguments=(In("x", "n"), Out("y", "n")),
    callable=lambda cupy, x: 2 * x[:-1],
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=65_536)},
)
