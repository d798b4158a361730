"""y = 2 x, written on a stream of its own."""

from functools import cache

from prism_bench import In, KernelSpec, Out, Workload


@cache
def stream(cupy):
    return cupy.cuda.Stream(non_blocking=True)


def write(cupy, x, y):
    with stream(cupy):
        cupy.multiply(x, 2, out=y)


spec = KernelSpec(
    arguments=(In("x", "n"), Out("y", "n")),
    callable=write,
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=4_194_304)},
)
