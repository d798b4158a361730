"""y = 2 x: exact."""

from prism_bench import Golden, In, KernelSpec, Launch, Out, Size, Variant, Workload, exact

spec = KernelSpec(
    entry="doubled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=-(-n // 128), block=128),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    flops=lambda n: n,
    workloads={"S0": Workload(n=1000), "S1": Workload(n=100_000)},
    edges=(Workload(n=0), Workload(n=1)),
    golden=(Golden(Workload(n=3), inputs={"x": [1, 2, 3]}, expected={"y": [2, 4, 6]}, source="by hand"),),
    variants={"by_adding": Variant("x + x", entry="doubled_by_adding", golden=())},
    aliases=("twice",),
)
