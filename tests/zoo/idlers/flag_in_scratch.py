"""Keeps a flag in its scratch, and works once for each time that somebody clears it."""

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Workload, exact

spec = KernelSpec(
    entry="flag_in_scratch",
    arguments=(In("x", "n"), Out("y", "n"), Scratch("done", "1", "int32"), Size("n")),
    launch=lambda n: Launch(grid=1, block=1),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
