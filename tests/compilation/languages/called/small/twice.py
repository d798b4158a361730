"""y = 2 x, with a form that Triton's own launcher launches."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    entry="twice",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=65_536)},
)
