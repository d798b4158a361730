"""y = x: the bandwidth that any kernel of this machine can hope for."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Variant, Workload, exact


def launch_with(vectors):
    """Blocks of 256 threads, `vectors` groups of four floats each; one group each while that leaves SMs idle."""

    def launch(n):
        per_thread = 4 * vectors if n >= 1 << 21 else 4
        return Launch(grid=-(-n // (256 * per_thread)), block=256)

    return launch


spec = KernelSpec(
    entry="copy",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    launch=launch_with(4),
    reference=lambda x: x,
    tolerance=exact(),
    peers={"torch": lambda torch, x: torch.clone(x), "cupy": lambda cupy, x: cupy.copy(x)},
    workloads={"S0": Workload(n=100_000), "S1": Workload(n=64 << 20), "S2": Workload(n=512 << 20)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4099, (1 << 21) + 4099)),
    ceiling="bandwidth",
    variants={
        "deep": Variant("eight loads in flight per thread", entry="copy_deep", launch=launch_with(8)),
        "plain": Variant("one ordinary 16-byte load per thread", entry="copy_plain", launch=launch_with(1)),
    },
)
