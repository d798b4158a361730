"""Counts its blocks in scratch, and leaves that as it found it."""

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Workload, exact

spec = KernelSpec(
    entry="doubled_by_turns",
    arguments=(In("x", "n"), Out("y", "n"), Scratch("arrived", "1", "uint32"), Size("n")),
    launch=lambda n: Launch(grid=1, block=256),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
