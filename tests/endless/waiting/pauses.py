"""Never ends and takes no time of the CPU, so that the emulator's own watchdog sees nothing."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="pauses",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=1, block=1),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
    edges=(Workload(n=1),),
)
