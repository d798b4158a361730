"""y = 2 x, returned in float64."""

from prism_bench import In, KernelSpec, Out, Workload

spec = KernelSpec(
    arguments=(In("x", "n"), Out("y", "n")),
    callable=lambda cupy, x: 2 * x.astype(cupy.float64),
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=65_536)},
)
