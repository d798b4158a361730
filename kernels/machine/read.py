"""The sum of an array: the bandwidth that a kernel which only reads can hope for; a few percent above a copy's.

S0 fits in the cache of a large GPU: read cold and hot, it proves that clearing the caches clears them.
"""

from prism_bench import In, KernelSpec, Launch, Out, Rule, Scratch, Size, Variant, Workload, reduction
from prism_bench.spec import Device

MOST_BLOCKS = 8192


def launch(n: int, device: Device) -> Launch:
    """Blocks of 512 threads, at most twelve per SM."""
    return Launch(grid=max(1, min(-(-n // 2048), 12 * device.sm_count, MOST_BLOCKS)), block=512)


spec = KernelSpec(
    entry="read_all",
    arguments=(
        In("x", "n"),
        Out("total", "1"),
        Scratch("by_block", str(MOST_BLOCKS), dtype="float64"),
        Size("n", "int64"),
    ),
    launch=launch,
    reference=lambda x: x.sum(),
    tolerance=reduction(magnitude=lambda x, xp: xp.abs(x).sum()),
    looked_at={"cub": "its sum of an array is a peer of reduce_sum; this kernel measures the machine"},
    flops=lambda n: n,
    workloads={"S0": Workload(n=4 << 20), "S1": Workload(n=64 << 20), "S2": Workload(n=1 << 30)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=4099), Workload(n=(1 << 20) + 3)),
    ceiling="read_bandwidth",
    variants={
        "abreast": Variant(
            "all blocks side by side through the array; which of the two is quicker, and at which size, differs",
            entry="read_abreast",
            launch=lambda n, device: Launch(
                grid=max(1, min(-(-n // 4096), 8 * device.sm_count, MOST_BLOCKS)), block=256
            ),
            rules=(Rule("n to be a multiple of 4", lambda n: n % 4 == 0),),
            workloads={"S0": Workload(n=4 << 20), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
            edges=(Workload(n=0), Workload(n=4), Workload(n=4096), Workload(n=40_964), Workload(n=(1 << 20) + 4)),
        ),
    },
)
