"""Y = activation(X W + b) in one launch; the activation is gelu, identity, relu, sigmoid or tanh.

Operands in float32 on the FMA units, in float16, TF32, bfloat16 or e4m3 on tensor cores; all else in float32.

Written by `prism-bench fuse` from fusions/fused_matmul_bias_activation.py: change that and run it again.
"""

from pathlib import Path

from prism_bench_catalogue.include.activations import gelu, identity, relu, sigmoid, tanh
from prism_bench_catalogue.include.bfloat import wide
from prism_bench_catalogue.include.fused_product import ELEMENTS, operand, product_launch, tensor_edges
from prism_bench_catalogue.include.gemm_tile import TILE_RULE
from prism_bench_catalogue.include.tensor_tile import TENSOR_RULE, required
from prism_bench_catalogue.include.torch_peers import compiled, in_tf32

from prism_bench import Budget, In, KernelSpec, Out, Rule, Size, Variant, Workload, normwise, product

BY_HAND = Path(__file__).parents[1] / "fused_matmul_bias_activation.cu"
ACTIVATION = {  # functor, float64 form, stretch, size at 0
    "gelu": ("Gelu", gelu, 1.13, 0.0),
    "identity": ("Identity", identity, 1.0, 0.0),
    "relu": ("Relu", relu, 1.0, 0.0),
    "sigmoid": ("Sigmoid", sigmoid, 0.25, 0.5),
    "tanh": ("Tanh", tanh, 1.0, 0.0),
}
RULES = (Rule("activation is one of gelu, identity, relu, sigmoid, tanh", lambda activation: activation in ACTIVATION),)
EDGES = (
    Workload(batch=1, inputs=1, outputs=1),
    Workload(batch=3, inputs=0, outputs=5),
    Workload(batch=0, inputs=4, outputs=4),
    Workload(batch=1, inputs=77, outputs=36),
    Workload(batch=17, inputs=33, outputs=35, activation="identity"),
    Workload(batch=17, inputs=33, outputs=36, activation="relu"),
    Workload(batch=17, inputs=33, outputs=67, activation="sigmoid"),
    Workload(batch=17, inputs=33, outputs=68, activation="tanh"),
    Workload(batch=130, inputs=9, outputs=257, tile="Large"),
    Workload(batch=130, inputs=9, outputs=260, tile="Large"),
    Workload(batch=129, inputs=9, outputs=132, tile="Medium"),
)


def arguments(precision):
    inputs = (operand("x", "batch inputs", precision), operand("w", "inputs outputs", precision), In("bias", "outputs"))
    outputs = (Out("y", "batch outputs"),)
    return (*inputs, *outputs, Size("batch"), Size("outputs"), Size("inputs"))


def launch(precision, entry="fused_matmul_bias_activation_generated<{tile}, {width}, {activation}>", passed=None):
    return lambda batch, outputs, inputs, tile, activation, device: product_launch(
        entry,
        precision,
        (batch, outputs, inputs),
        device,
        tile=tile,
        arguments=passed,
        activation=ACTIVATION[activation][0],
    )


def reference(x, w, bias, activation, xp, special):
    product = wide(x, xp) @ wide(w, xp)
    return ACTIVATION[activation][1](product + bias, xp, special)


def y_size(x, w, bias, activation, xp):
    product = xp.abs(wide(x, xp)) @ xp.abs(wide(w, xp))
    return ACTIVATION[activation][3] + ACTIVATION[activation][2] * (product + xp.abs(bias))


def tolerance(precision):
    if precision != "float32":
        return normwise(ELEMENTS[precision][3])
    return product(y_size, depth=lambda inputs: inputs + 8)


def torch_linear(torch, x, w, bias, activation):
    functions = {
        "identity": lambda y: y, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
        "gelu": torch.nn.functional.gelu,
    }  # fmt: skip
    return functions[activation](torch.addmm(bias.to(x.dtype), x, w))


spec = KernelSpec(
    entry="fused_matmul_bias_activation_generated",
    arguments=arguments("float32"),
    parameters={"tile": "auto", "activation": "gelu"},
    rules=(TILE_RULE, *RULES),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_linear, "torch_compiled": compiled(torch_linear)},
    flops=lambda batch, inputs, outputs: 2 * batch * inputs * outputs + 10 * batch * outputs,
    workloads={
        "S0": Workload(batch=32, inputs=64, outputs=128),
        "S1": Workload(batch=8192, inputs=4096, outputs=4096),
        "S2": Workload(batch=8192, inputs=4096, outputs=16384),
    },
    edges=EDGES,
    replaces=("matmul", "broadcast_add", "gelu_activation"),
    budgets=tuple(Budget("peer_ratio", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch("float32", "fused_matmul_bias_activation<{tile}, {width}, {activation}>"),
        ),
        "float16": Variant(
            "tensor cores, float16 operands, float32 sums",
            arguments=arguments("float16"),
            rules=(TENSOR_RULE, *RULES),
            launch=launch("float16", "fused_matmul_bias_activation_generated_tensor<{tile}, {activation}>"),
            tolerance=tolerance("float16"),
            arithmetic="tensor",
            peers={"torch": torch_linear, "torch_compiled": compiled(torch_linear)},
            edges=(
                *(edge for edge in EDGES if "tile" not in edge),
                *tensor_edges("float16", "batch", "outputs", "inputs"),
            ),
            golden=(),
            budgets=(),
            requires=required,
            only_labels=("S0", "S1", "S2"),
        ),
        "float16_by_hand": Variant(
            "written by hand, on the tensor cores",
            arguments=arguments("float16"),
            rules=(TENSOR_RULE, *RULES),
            launch=launch("float16", "fused_matmul_bias_activation_tensor<{tile}, {activation}>"),
            tolerance=tolerance("float16"),
            arithmetic="tensor",
            peers={},
            edges=(
                *(edge for edge in EDGES if "tile" not in edge),
                *tensor_edges("float16", "batch", "outputs", "inputs"),
            ),
            golden=(),
            budgets=(),
            requires=required,
            only_labels=("S0", "S1", "S2"),
            source=BY_HAND,
        ),
        "tf32": Variant(
            "tensor cores, tf32 operands, float32 sums",
            arguments=arguments("tf32"),
            rules=(TENSOR_RULE, *RULES),
            launch=launch("tf32", "fused_matmul_bias_activation_generated_tensor<{tile}, {activation}>"),
            tolerance=tolerance("tf32"),
            arithmetic="tensor",
            peers={"torch": in_tf32(torch_linear), "torch_compiled": in_tf32(compiled(torch_linear))},
            edges=(
                *(edge for edge in EDGES if "tile" not in edge),
                *tensor_edges("tf32", "batch", "outputs", "inputs"),
            ),
            golden=(),
            budgets=(),
            requires=required,
            only_labels=("S0", "S1"),
        ),
        "bfloat16": Variant(
            "tensor cores, bfloat16 operands, float32 sums",
            arguments=arguments("bfloat16"),
            rules=(TENSOR_RULE, *RULES),
            launch=launch("bfloat16", "fused_matmul_bias_activation_generated_tensor<{tile}, {activation}>"),
            tolerance=tolerance("bfloat16"),
            arithmetic="tensor",
            peers={},
            edges=(
                *(edge for edge in EDGES if "tile" not in edge),
                *tensor_edges("bfloat16", "batch", "outputs", "inputs"),
            ),
            golden=(),
            budgets=(),
            requires=required,
            only_labels=("S0", "S1"),
        ),
        "float8": Variant(
            "tensor cores, float8 operands, float32 sums",
            arguments=arguments("float8"),
            rules=(TENSOR_RULE, *RULES),
            launch=launch("float8", "fused_matmul_bias_activation_generated_tensor<{tile}, {activation}>"),
            tolerance=tolerance("float8"),
            arithmetic="tensor",
            peers={},
            edges=(
                *(edge for edge in EDGES if "tile" not in edge),
                *tensor_edges("float8", "batch", "outputs", "inputs"),
            ),
            golden=(),
            budgets=(),
            requires=required,
            only_labels=("S0", "S1"),
        ),
    },
)
