"""Half-precision products on the tensor cores, FP32 sums: the rate that products of this machine can hope for.

The operands are normally distributed, as those of products are: what limits the rate is power as much as the pipe, and
power depends on how many bits change. On compute capability 9.0 by warpgroup instructions from shared memory, elsewhere
by those of a warp from registers.
"""

from prism_bench import In, KernelSpec, Launch, Out, Rule, Size, Workload, normwise
from prism_bench.spec import AnyArray, Device

ROWS, COLS, DEPTH = 128, 256, 64
THREADS = 256
SHARED = (ROWS + COLS) * DEPTH * 2 + 1024  # both operands, aligned to the 1 KiB of a swizzled tile


def launch(tiles: int, device: Device) -> Launch:
    if device.compute_capability == 90 and device.max_shared_bytes >= SHARED:
        return Launch(tiles, THREADS, entry="tensor_products<ByWarpgroups>", shared=SHARED)
    return Launch(tiles, THREADS, entry="tensor_products<ByWarps>")


def reference(a: AnyArray, b: AnyArray, tiles: int, rounds: int) -> AnyArray:
    """Each tile is a b', added up `rounds` times."""
    return (rounds * (a @ b.T))[None].repeat(tiles, axis=0)


spec = KernelSpec(
    entry="tensor_products",
    arguments=(
        In("a", f"{ROWS} {DEPTH}", dtype="float16"),
        In("b", f"{COLS} {DEPTH}", dtype="float16"),
        Out("c", f"tiles {ROWS} {COLS}"),
        Size("rounds"),
    ),
    rules=(Rule("at least one round", lambda rounds: rounds > 0),),
    launch=launch,
    reference=reference,
    tolerance=normwise(1e-3),
    flops=lambda tiles, rounds: 2 * ROWS * COLS * DEPTH * rounds * tiles,
    workloads={
        "S0": Workload(tiles=2, rounds=16),
        "S1": Workload(tiles=528, rounds=1024),
        "S2": Workload(tiles=2112, rounds=1024),
    },
    edges=(
        Workload(tiles=0, rounds=1),
        Workload(tiles=1, rounds=1),
        Workload(tiles=3, rounds=2),
    ),
    ceiling="tensor",
    arithmetic="tensor",
)
