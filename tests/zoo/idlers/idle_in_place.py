"""Works in place, in its first five launches."""

from prism_bench import InOut, KernelSpec, Launch, Size, Workload, exact

spec = KernelSpec(
    entry="idle_in_place",
    arguments=(InOut("x", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=1),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
