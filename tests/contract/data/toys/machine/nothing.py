"""The floor under the toys' launches."""

from prism_bench import KernelSpec, Launch, Workload

spec = KernelSpec(
    entry="nothing",
    arguments=(),
    launch=lambda: Launch(grid=1, block=32),
    reference=lambda: (),
    workloads={"S0": Workload(blocks=1)},
    ceiling="launch",
)
