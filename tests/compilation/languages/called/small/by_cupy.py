"""y = 2 x by an elementwise kernel of CuPy."""

from functools import cache

from prism_bench import In, KernelSpec, Out, Workload


@cache
def kernel(cupy):
    return cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "twice")


def write(cupy, x, y):
    kernel(cupy)(x, y)


spec = KernelSpec(
    arguments=(In("x", "n"), Out("y", "n")),
    callable=write,
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=65_536)},
)
