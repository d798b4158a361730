"""Products of e4m3 operands with a scale for each: the form of `tensor_core_matmul` that 8-bit networks call."""

from types import ModuleType
from typing import Any

from prism_bench import Budget, In, Launch, Out, Variant, Workload, normwise, uniform
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

from ..numbers.bfloat import FLOAT8S, wide
from ..tensor_cores.tensor_tile import TENSOR_RULE, WARP_WIDE, Operands, on_tensor_tiles, required
from .half_product import SIZES

OPERANDS = Operands("Float8", left_along=True, right_along=True)
SCALE = uniform(0.5, 2)


def launch(m: int, n: int, k: int, tile: str, device: Device) -> Launch:
    return on_tensor_tiles("tensor_core_matmul_scaled<{}>", OPERANDS, (m, n, k), device, tile=tile)


def reference(a: AnyArray, b: AnyArray, scale_a: AnyArray, scale_b: AnyArray, xp: ArrayModule) -> AnyArray:
    return wide(a, xp) @ wide(b, xp).T * (scale_a * scale_b)


def torch_product(torch: ModuleType, a: AnyArray, b: AnyArray, scale_a: AnyArray, scale_b: AnyArray) -> Any:
    """Return cuBLASLt's product, with sums as the instructions have them, as here."""
    left, right = a.view(torch.float8_e4m3fn), b.view(torch.float8_e4m3fn).t()
    scales = {"scale_a": scale_a.reshape(()), "scale_b": scale_b.reshape(())}
    return torch._scaled_mm(left, right, **scales, out_dtype=torch.float32, use_fast_accum=True)


SCALED = Variant(
    "e4m3 operands with a scale each, FP32 sums; B is [n, k]",
    arguments=(
        In("a", "m k", "uint8", FLOAT8S), In("b", "n k", "uint8", FLOAT8S), In("scale_a", "1", fill=SCALE),
        In("scale_b", "1", fill=SCALE), Out("c", "m n"), *SIZES,
    ),
    parameters={"tile": "auto"},
    derived={},
    rules=(TENSOR_RULE,),
    requires=required,
    launch=launch,
    tune=None,
    reference=reference,
    tolerance=normwise(3e-3),
    peer_tolerance=normwise(3e-3),
    peers={"torch": Peer(torch_product)},
    edges=(
        *(Workload(m=m, n=n, k=k) for m, n, k in ((1, 1, 1), (3, 5, 0), (0, 4, 4), (17, 67, 33), (40, 24, 208))),
        *(Workload(m=136, n=264, k=80, tile=tile) for tile in ("Streamed", "StreamedSquare", *WARP_WIDE)),
        *(Workload(m=m, n=n, k=k, tile="Streamed") for m, n, k in ((128, 256, 128), (1, 4, 16), (300, 520, 1040))),
    ),
    budgets=(Budget("peer_ratio", at_least=0.9, label="S1"), Budget("peer_ratio", at_least=0.9, label="S2")),
    arithmetic="float8",
)  # fmt: skip
