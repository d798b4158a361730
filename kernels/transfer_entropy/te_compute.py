"""Every point's term of the transfer entropy from its three counts, in nats."""

from types import ModuleType

from prism_bench import Golden, In, KernelSpec, Launch, Out, Rule, Size, Workload, integers, reduction
from prism_bench.spec import AnyArray, ArrayModule

from ..include.neighbours.te_points import term

# Four digammas of integers a point, each a logarithm and a short series in double precision: that arithmetic limits S2,
# not memory. S1 is one short launch.
COUNTS = tuple(In(name, "n", "int32", fill=integers(0, 200)) for name in ("n_y", "n_xz", "n_z"))


def local(n_y: AnyArray, n_xz: AnyArray, n_z: AnyArray, k: int, special: ModuleType) -> AnyArray:
    return term(n_y, n_xz, n_z, k, special)


def size(n_y: AnyArray, n_xz: AnyArray, n_z: AnyArray, k: int, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return sum(xp.abs(special.digamma(count + 1.0)) for count in (n_y, n_xz, n_z)) + abs(special.digamma(float(k)))


spec = KernelSpec(
    entry="te_compute",
    arguments=(*COUNTS, Out("local", "n"), Size("n"), Size("k")),
    parameters={"k": 4},
    rules=(Rule("k >= 1", lambda k: k >= 1),),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference=local,
    tolerance=reduction(size, terms=3e-7),
    flops=lambda n: 4 * n,
    workloads={"S0": Workload(n=200), "S1": Workload(n=16_384), "S2": Workload(n=1 << 24)},
    edges=tuple(Workload(n=n) for n in (0, 1, 257)),
    golden=(
        Golden(
            Workload(n=2, k=1),
            {"n_y": [0, 1], "n_xz": [0, 1], "n_z": [0, 2]},
            {"local": [0, -0.5]},
            source="psi(1) = -gamma, psi(2) = 1 - gamma, psi(3) = 3/2 - gamma",
        ),
    ),
)
