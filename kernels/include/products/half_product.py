"""Products of half operands on the tensor cores: layouts, sizes, rules, reference, peers and workloads of both."""

from types import ModuleType
from typing import Any

from prism_bench import In, Out, Rule, Size, Workload
from prism_bench.spec import AnyArray, Peer

from ...peers import lt_products
from ...peers.poor_ways import NARROW
from ...peers.strong_peers import quack_gemm
from ..tensor_cores.tensor_tile import Operands

LAYOUTS = ("nn", "nt", "tn", "tt")  # for A and B in turn whether it is stored transposed
SIZES = (Size("m"), Size("n"), Size("k"))
ARGUMENTS = (
    In("a", "a_rows a_cols", dtype="float16"), In("b", "b_rows b_cols", dtype="float16"), Out("c", "m n"), *SIZES,
)  # fmt: skip
DERIVED = {
    "a_rows": lambda m, k, layout: m if layout[0] == "n" else k,
    "a_cols": lambda m, k, layout: k if layout[0] == "n" else m,
    "b_rows": lambda n, k, layout: k if layout[1] == "n" else n,
    "b_cols": lambda n, k, layout: n if layout[1] == "n" else k,
}
RULES = (
    Rule("layout is nn, nt, tn or tt", lambda layout: layout in LAYOUTS),
    Rule("stages is auto, 2, 3 or 4", lambda stages: stages in ("auto", 2, 3, 4)),
)
WORKLOADS = {
    "S0": Workload(m=512, n=512, k=512),
    "S1": Workload(m=4096, n=4096, k=4096),
    "S2": Workload(m=8192, n=8192, k=8192),
}
EDGES = (
    *(Workload(m=s, n=s, k=s) for s in (32, 64, 128, 1, 16)),
    *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (40, 24, 200), (17, 67, 33), (65, 8, 40))),
    *(Workload(m=m, n=72, k=40, layout=layout) for layout in ("nt", "tn", "tt") for m in (24, 25)),
    *(Workload(m=136, n=n, k=72, tile="Wide") for n in (264, 37)),
    Workload(m=130, n=264, k=48, tile="Wide", layout="nt", stages=2),
    *(Workload(m=136, n=n, k=72, tile="Square", layout="tn") for n in (136, 37)),
    *(Workload(m=72, n=40, k=k, tile="Deep") for k in (136, 600)),
)


def operands_of(layout: str) -> Operands:
    return Operands("Half", left_along=layout[0] == "n", right_along=layout[1] == "t")


def stored(matrix: AnyArray, flag: str) -> AnyArray:
    return matrix.T if flag == "t" else matrix


def reference(a: AnyArray, b: AnyArray, layout: str) -> AnyArray:
    return stored(a, layout[0]) @ stored(b, layout[1])


def torch_product(torch: ModuleType, a: AnyArray, b: AnyArray, layout: str) -> Any:
    return torch.mm(stored(a, layout[0]), stored(b, layout[1]))


def torch_wide(torch: ModuleType, a: AnyArray, b: AnyArray, layout: str) -> Any:
    """The sums as they are, in float32."""
    return torch.mm(stored(a, layout[0]), stored(b, layout[1]), out_dtype=torch.float32)


def cupy_product(cupy: ModuleType, a: AnyArray, b: AnyArray, layout: str) -> Any:
    return cupy.matmul(stored(a, layout[0]), stored(b, layout[1]))


def nvmath_product(nvmath: ModuleType, a: AnyArray, b: AnyArray, layout: str) -> Any:
    return lt_products.product(nvmath, stored(a, layout[0]), stored(b, layout[1]))


def quack_product(quack: ModuleType, a: AnyArray, b: AnyArray, layout: str) -> Any:
    return quack_gemm(quack, stored(a, layout[0]), stored(b, layout[1]))


PEERS = {
    "torch": Peer(torch_product, work=NARROW),
    "torch_wide": torch_wide,
    "cupy": Peer(cupy_product, work=NARROW),
    "nvmath": Peer(nvmath_product, prepares=True),
    "quack": Peer(quack_product, prepares=True),
}


def flops(m: int, n: int, k: int) -> int:
    return 2 * m * n * k
