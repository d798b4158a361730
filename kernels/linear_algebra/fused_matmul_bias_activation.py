"""Y = activation(X W + b) in one launch; the activation is gelu, identity, relu, sigmoid or tanh.

Operands in float32 on the FMA units, in float16, TF32, bfloat16 or e4m3 on tensor cores; all else in float32.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from prism_bench import Workload
from prism_bench.extensions.fusion import ByHand, FusionProgram, Input, Map, Product, activation, fuse, names
from prism_bench.spec import AnyArray, Peer

from ..peers import lt_products

# Limited by the FMA units; operands of half, bfloat16 and TF32 by the tensor pipe, through warpgroup instructions on
# compute capability 9.0, where mma.sync is slower; `float8`, too, whose second operand comes through registers. Tensor
# cores keep fewer bits of sums of e4m3 products than FP32 has, as with the fast accumulation of libraries.
bias, product = names("bias product")


def torch_linear(torch: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, activation: str) -> Any:
    functions = {
        "identity": lambda y: y, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
        "gelu": torch.nn.functional.gelu,
    }  # fmt: skip
    return functions[activation](torch.addmm(bias.to(x.dtype), x, w))


def nvmath_linear(nvmath: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, activation: str) -> Any:
    epilogue = EPILOGUES.get(activation)
    if epilogue is None:
        raise ValueError(f"cuBLASLt has no epilogue for {activation}")
    return lt_products.product(nvmath, x, w, bias, lt_products.Form(epilogue=epilogue))


EPILOGUES: Mapping[str, lt_products.Epilogue] = {"identity": "", "relu": "relu", "gelu": "gelu"}

program = FusionProgram(
    inputs=(Input("x", "batch inputs"), Input("w", "inputs outputs"), Input("bias", "outputs")),
    stages=(
        Product("product", "x", "w", ("float32", "three_bfloat16", "float16", "tf32", "bfloat16", "float8")),
        Map("y", activation(product + bias)),
    ),
    outputs=("y",),
    workloads={
        "S0": Workload(batch=32, inputs=64, outputs=128),
        "S1": Workload(batch=8192, inputs=4096, outputs=4096),
        "S2": Workload(batch=8192, inputs=4096, outputs=16_384),
    },
    edges=(
        *(Workload(batch=b, inputs=i, outputs=o) for b, i, o in ((1, 1, 1), (3, 0, 5), (0, 4, 4), (1, 77, 36))),
        *(
            Workload(batch=17, inputs=33, outputs=o, activation=one)
            for o, one in ((35, "identity"), (36, "relu"), (67, "sigmoid"), (68, "tanh"))
        ),
        *(Workload(batch=130, inputs=9, outputs=o, tile="Large") for o in (257, 260)),
        *(Workload(batch=b, inputs=32, outputs=256, tile=tile) for b, tile in ((128, "Full"), (640, "Split"))),
        Workload(batch=129, inputs=9, outputs=132, tile="Medium"),
    ),
    peers={
        "torch": Peer(torch_linear, work="of float16 operands it writes float16, the kernel float32"),
        "nvmath": Peer(nvmath_linear, prepares=True, work="its GELU is the tanh form, up to 5e-4 away"),
    },
    within=1e-3,
    by_hand=ByHand(
        "fused_matmul_bias_activation<{tile}, {width}, {activation}>",
        tensor="fused_matmul_bias_activation_tensor<{tile}, {activation}>",
    ),
    replaces=("matmul", "broadcast_add", "gelu_activation"),
)
spec = fuse(program, __name__)
