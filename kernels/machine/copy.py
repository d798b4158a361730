"""y = x: the bandwidth that any kernel which reads and writes can hope for on this machine.

One 16-byte load that the caches keep and one store per thread in blocks of 128: every form with more of them, without
that hint, or with streaming ones, was slower.
"""

from prism_bench import In, KernelSpec, Launch, Out, Rule, Size, Variant, Workload, exact

spec = KernelSpec(
    entry="copy",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    launch=lambda n: Launch(grid=-(-n // 512), block=128),
    reference=lambda x: x,
    tolerance=exact(),
    peers={"torch": lambda torch, x: torch.clone(x), "cupy": lambda cupy, x: cupy.copy(x)},
    workloads={"S0": Workload(n=100_000), "S1": Workload(n=64 << 20), "S2": Workload(n=512 << 20)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=3), Workload(n=1023), Workload(n=4099), Workload(n=40_961)),
    ceiling="bandwidth",
    variants={
        "streamed": Variant(
            "four streamed loads in flight per thread: what looks faster and is not",
            entry="copy_streamed",
            launch=lambda n: Launch(grid=-(-n // 4096), block=256),
            rules=(Rule("n to be a multiple of 4", lambda n: n % 4 == 0),),
            edges=(Workload(n=0), Workload(n=4), Workload(n=4096), Workload(n=4100), Workload(n=40_964)),
        ),
    },
)
