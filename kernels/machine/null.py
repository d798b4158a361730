"""An empty kernel: the overhead of every launch."""

from prism_bench import KernelSpec, Launch, Workload

spec = KernelSpec(
    entry="null_kernel",
    arguments=(),
    launch=lambda blocks: Launch(grid=blocks, block=32),
    reference=lambda: (),
    workloads={"S0": Workload(blocks=1)},
    edges=(Workload(blocks=0), Workload(blocks=1000)),
    ceiling="launch",
)
