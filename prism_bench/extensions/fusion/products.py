"""Products of matrices with an epilogue, on the FMA units and on the tensor cores."""

from prism_bench.extensions.fusion.expression import cuda
from prism_bench.extensions.fusion.plan import Plan
from prism_bench.extensions.fusion.refusals import epilogue
from prism_bench.extensions.fusion.written import Written, headers_of, signature, template_of

_GLOBAL = "__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)"
TENSOR_TEMPLATE = ("class T", "bool LEFT_ALONG", "bool RIGHT_ALONG", "int WIDTH")


def write(plan: Plan, entry: str) -> Written:
    """The kernels around one Product stage: one for float32, one for all operands of the tensor cores."""
    stage = plan.tiled
    rows, depth = plan.axes[stage.left]
    sizes = (rows, plan.axes[stage.right][1], depth)
    on_tensor = len(stage.precisions) > 1
    choices = "".join(f", {{{choice.parameter}}}" for choice in plan.choices)
    return Written(
        headers=("gemm.cuh", *(("tensor_product.cuh",) if on_tensor else ()), *headers_of(plan)),
        kernels="\n\n".join([_plain(plan, entry, sizes), *([_tensor(plan, entry, sizes)] if on_tensor else [])]),
        entry=f"{entry}<{{tile}}, {{width}}{choices}>",
        scratch=(),
        sizes=tuple(f'Size("{one}")' for one in sizes),
        launch=_launch(plan, sizes),
        shared={"fused_product": ("product_launch",)},
    )


def tensor_entry(plan: Plan, entry: str) -> str:
    """The entry for tensor cores, with what the launch fills in."""
    return f"{entry}_tensor<{{tile}}{''.join(f', {{{choice.parameter}}}' for choice in plan.choices)}>"


def _launch(plan, sizes):
    chosen = [f"{one.parameter}={one.parameter.upper()}[{one.parameter}][0]" for one in plan.choices]
    asks = ", ".join([*sizes, "tile", *(one.parameter for one in plan.choices), "device"])
    given = ", ".join(
        ["entry", "precision", f"({', '.join(sizes)})", "device", "tile=tile", "arguments=passed", *chosen]
    )
    return f"return lambda {asks}: product_launch({given})"


def _plain(plan, entry, sizes):
    head = f"{template_of(plan, 'class T', 'int WIDTH')}\n{_GLOBAL}\n    {entry}("
    return _kernel(plan, head, sizes, "multiply_matrices<T, WIDTH, false>({}, epilogue);")


def _tensor(plan, entry, sizes):
    head = (
        f"extern __shared__ __align__(128) unsigned char stages[];\n\n{template_of(plan, *TENSOR_TEMPLATE)}\n"
        f"{_GLOBAL}\n    {entry}_tensor("
    )
    call = "multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>({}, stages, epilogue);"
    operands = dict.fromkeys((plan.tiled.left, plan.tiled.right), "typename T::Element::Memory")
    return _kernel(plan, head, sizes, call, types=operands)


def _kernel(plan, head, sizes, call, *, types=None):
    expression, bias = epilogue(plan)
    after = [*(f"float {name}" for name in plan.scalars), *(f"int {one}" for one in sizes)]
    given = ", ".join([plan.tiled.left, plan.tiled.right, bias or "nullptr", next(iter(plan.outputs)), *sizes])
    captured = "=" if plan.scalars else ""
    return "\n".join([
        signature(head, plan, "float", after, types),
        f"    const auto epilogue = [{captured}](float sums) {{ return {cuda(expression, 'float')}; }};",
        f"    {call.format(given)}",
        "}",
    ])  # fmt: skip
