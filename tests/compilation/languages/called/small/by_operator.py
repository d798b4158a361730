"""y = 2 x by a custom operator of PyTorch."""

from functools import cache

from prism_bench import In, KernelSpec, Out, Workload


@cache
def operator(torch):
    def twice(x):
        return x * 2

    library = torch.library.Library("prism_bench_tests", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", twice, "CUDA")
    return library, torch.ops.prism_bench_tests.twice


spec = KernelSpec(
    arguments=(In("x", "n"), Out("y", "n")),
    callable=lambda torch, x: operator(torch)[1](x),
    reference=lambda x: 2 * x,
    workloads={"S0": Workload(n=65_536)},
)
