"""y = how often each of 16 values occurs in x."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Tune, Workload, Zero, exact, integers

spec = KernelSpec(
    entry="counts",
    arguments=(In("x", "n", "int32", fill=integers(0, 16)), Out("y", "16", "int32"), Size("n")),
    launch=lambda blocks: (Zero("y"), Launch(blocks, 128)),
    tune=Tune(blocks=(8, 16, 4)),
    reference=lambda x, xp: (x[None, :] == xp.arange(16)[:, None]).sum(axis=1),
    tolerance=exact(),
    workloads={"S0": Workload(n=4096), "S1": Workload(n=1 << 20)},
)
