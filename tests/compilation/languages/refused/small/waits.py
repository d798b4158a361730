"""y = 2 x, and the call waits for the device."""

from prism_bench import In, KernelSpec, Out, Workload


def write(cupy, x, y):
    cupy.multiply(x, 2, out=y)
    cupy.cuda.runtime.deviceSynchronize()


spec = KernelSpec(
    arguments=(In("x", "n"), Out("y", "n")),
    callable=write,
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=65_536)},
)
