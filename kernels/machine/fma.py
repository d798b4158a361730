"""Fused multiply-adds in registers: the FP32 rate that any kernel of this machine can hope for."""

from prism_bench import In, KernelSpec, Launch, Out, Scalar, Size, Workload, exact, integers
from prism_bench.spec import AnyArray

CHAINS = 8


def reference(x: AnyArray, rounds: int, factor: int, step: int) -> AnyArray:
    """Chain k starts at x + k and gains `step` per round; `factor` is 1."""
    return factor * (CHAINS * x + CHAINS * (CHAINS - 1) // 2 + CHAINS * rounds * step)


spec = KernelSpec(
    entry="fma_chains",
    arguments=(
        In("x", "n", fill=integers(-100, 100)),
        Out("y", "n"),
        Size("n"),
        Size("rounds"),
        Scalar("factor"),
        Scalar("step"),
    ),
    parameters={"factor": 1, "step": 1},
    launch=lambda n: Launch(grid=-(-n // 128), block=128),
    reference=reference,
    tolerance=exact(),
    flops=lambda n, rounds: n * (2 * CHAINS * rounds + 2 * CHAINS),
    workloads={
        "S0": Workload(n=4096, rounds=64),
        "S1": Workload(n=1 << 22, rounds=1024),
        "S2": Workload(n=1 << 24, rounds=1024),
    },
    edges=(Workload(n=0, rounds=1), Workload(n=1, rounds=0), Workload(n=129, rounds=37), Workload(n=257, rounds=64)),
    ceiling="fp32",
)
