"""y = 3 x: exact; five different configurations, of six."""

from prism_bench import In, KernelSpec, Launch, Out, Rule, Size, Tune, Variant, Workload, exact

spec = KernelSpec(
    entry="tripled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n, block, items: Launch(grid=-(-n // (block * items)), block=block),
    tune=Tune(
        block=(128, 64, 256),
        items=(1, 2),
        rules=(Rule("at most 256 elements a block", lambda block, items: block * items <= 256),),
    ),
    reference=lambda x: 3 * x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000), "S1": Workload(n=100_000)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=300)),
    variants={"plain": Variant("as ever", launch=lambda n: Launch(grid=-(-n // 128), block=128))},
)
