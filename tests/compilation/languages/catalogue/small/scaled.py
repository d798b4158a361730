"""y = factor x, with forms in other languages next to it."""

from prism_bench import In, KernelSpec, Launch, Out, Scalar, Size, Workload

spec = KernelSpec(
    entry="scaled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n"), Scalar("factor")),
    parameters={"factor": 2.0},
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=lambda x, factor: factor * x,
    workloads={"S0": Workload(n=4096)},
    edges=(Workload(n=1), Workload(n=1001)),
)
