"""Products of matrices with an epilogue, on the FMA units and on the tensor cores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.cuda_text import cuda
from prism_bench.extensions.fusion.expression import FunctionChoice
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import EntryCall, KernelCode, headers_of, signature, template_of
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.refusals import epilogue
from prism_bench.extensions.fusion.stages import Product
from prism_bench.spec.arguments import Scalar, Scratch, Size
from prism_bench.spec.kernel import Launch

_GLOBAL = "__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)"
TENSOR_TEMPLATE = ("class T", "bool LEFT_ALONG", "bool RIGHT_ALONG", "int WIDTH")


@dataclass(frozen=True)
class ProductHost:
    """Tiles of the result; `extents` name rows, columns and depth, `choices` the functions that parameters choose.

    `matrices` are the operands and the result.
    """

    extents: tuple[str, str, str]
    choices: tuple[FunctionChoice, ...]
    matrices: tuple[str, str, str]

    @property
    def workspace(self) -> Mapping[str, str]:
        return {}

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return tuple(Size(one) for one in self.extents)

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return ()

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        product_launch = includes.value("products.fused_product", "product_launch")

        def launched(*values: Any) -> Launch:
            *sizes, tile = values[:4]
            names = zip(self.choices, values[4:-1], strict=True)
            functors = {choice.parameter: choice.functions[name].functor for choice, name in names}
            given = {"tile": tile, "arguments": call.arguments, "matrices": self.matrices}
            return product_launch(call.entry, call.number, tuple(sizes), values[-1], **given, **functors)

        return Asking((*self.extents, "tile", *(one.parameter for one in self.choices), "device"), launched)

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {}


def write(plan: FusionPlan, stage: Product, entry: str) -> KernelCode:
    """Return the kernels around one Product stage: one for float32, one for all operands of the tensor cores."""
    rows, depth = plan.axes[stage.left]
    sizes = (rows, plan.axes[stage.right][1], depth)
    on_tensor = len(stage.precisions) > 1
    kernels = [_plain(plan, stage, entry, sizes), *([_tensor(plan, stage, entry, sizes)] if on_tensor else [])]
    return KernelCode(
        headers=("products/gemm.cuh", *(("tensor_cores/tensor_product.cuh",) if on_tensor else ()), *headers_of(plan)),
        kernels="\n\n".join(kernels),
        entry=f"{entry}<{{tile}}, {{width}}{_chosen(plan)}>",
        host=ProductHost(sizes, plan.choices, (stage.left, stage.right, next(iter(plan.outputs)))),
    )


def tensor_entry(plan: FusionPlan, entry: str) -> str:
    """Return the entry for tensor cores, with {} for what the launch fills in."""
    return f"{entry}_tensor<{{tile}}{_chosen(plan)}>"


def _chosen(plan: FusionPlan) -> str:
    return "".join(f", {{{choice.parameter}}}" for choice in plan.choices)


def _plain(plan: FusionPlan, stage: Product, entry: str, sizes: tuple[str, ...]) -> str:
    head = f"{template_of(plan, 'class T', 'int WIDTH')}\n{_GLOBAL}\n    {entry}("
    return _kernel(plan, stage, head, sizes, "multiply_matrices<T, WIDTH, false>({}, epilogue);")


def _tensor(plan: FusionPlan, stage: Product, entry: str, sizes: tuple[str, ...]) -> str:
    head = (
        f"extern __shared__ __align__(128) unsigned char stages[];\n\n{template_of(plan, *TENSOR_TEMPLATE)}\n"
        f"CLUSTERED(T) {_GLOBAL}\n    {entry}_tensor("
    )
    call = "multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>({}, stages, epilogue);"
    types = dict.fromkeys((stage.left, stage.right), "__grid_constant__ const OperandOf<T>")
    types[next(iter(plan.outputs))] = "__grid_constant__ const SumsOf<T>"
    return _kernel(plan, stage, head, sizes, call, types=types)


def _kernel(  # the head and the call are what the two kernels differ in
    plan: FusionPlan,
    stage: Product,
    head: str,
    sizes: tuple[str, ...],
    call: str,
    *,
    types: Mapping[str, str] | None = None,
) -> str:
    expression, bias = epilogue(plan, stage)
    after = [*(f"float {name}" for name in plan.scalars), *(f"int {one}" for one in sizes)]
    given = ", ".join([stage.left, stage.right, bias or "nullptr", next(iter(plan.outputs)), *sizes])
    captured = "=" if plan.scalars else ""
    return "\n".join(
        [
            signature(head, plan, "float", after, types),
            f"    const auto epilogue = [{captured}](float sums) {{ return {cuda(expression, 'float')}; }};",
            f"    {call.format(given)}",
            "}",
        ]
    )
