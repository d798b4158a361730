"""The mean of the terms of all points: the transfer entropy."""

from prism_bench import Golden, In, KernelSpec, Out, Rule, Size, Workload, reduction
from prism_bench.spec import Peer

from ..include.arrays.map_arrays import sum_launch, sum_scratch
from ..peers import cub_peers

# Bound by memory where there is anything to bound: 4 bytes a point.

spec = KernelSpec(
    entry="te_reduce_sum",
    arguments=(In("local", "n"), Out("mean", "1"), *sum_scratch(1), Size("n", "int64")),
    rules=(Rule("n >= 1", lambda n: n >= 1),),
    launch=lambda n, device: sum_launch("te_reduce_sum", n, device),
    reference=lambda local: local.mean(),
    tolerance=reduction(magnitude=lambda local, xp: xp.abs(local).mean()),
    peers={
        "torch": lambda torch, local: torch.mean(local),
        "cub": Peer(
            lambda cub, local, n: cub_peers.sums(cub, (local,), f"v[0] * {cub_peers.number(1 / n)}"), prepares=True
        ),
    },
    flops=lambda n: n,
    workloads={"S0": Workload(n=200), "S1": Workload(n=16_384), "S2": Workload(n=1 << 26)},
    edges=tuple(Workload(n=n) for n in (1, 3, 257, 5001)),
    golden=(Golden(Workload(n=4), {"local": [1, 2, 3, -2]}, {"mean": 1}, "calculated"),),
)
