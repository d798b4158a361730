"""Products of a matrix's rows with a vector: a map over the rows takes them further, and one reduction adds them up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.expression import Expression, names_in
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import (
    EntryCall,
    KernelCode,
    at_place,
    elements,
    grid_scratch,
    grid_workspace,
    headers_of,
    signature,
)
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.refusals import cannot_fuse
from prism_bench.extensions.fusion.stages import REDUCTIONS, Reduce, RowDots
from prism_bench.extensions.fusion.sums import finish
from prism_bench.spec.arguments import Scalar, Scratch, Size
from prism_bench.spec.kernel import Launch


@dataclass(frozen=True)
class RowsHost:
    """Blocks of rows; `count` reductions, one of which a parameter `reduce` chooses where `chosen`."""

    rows: str
    cols: str
    count: int
    chosen: bool

    @property
    def workspace(self) -> Mapping[str, str]:
        return grid_workspace("blocks", self.count)

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return Size(self.rows), Size(self.cols)

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return grid_scratch("blocks", self.count) if self.count else ()

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        template, threads = (includes.value("products.row_products", name) for name in ("row_template", "row_threads"))

        def launched(cols: int, blocks: int, *reduce: str) -> Launch:
            entry = call.entry.format(template(*(REDUCTIONS[one] for one in reduce), cols))
            return Launch(blocks, threads(cols), entry=entry, arguments=call.arguments)

        return Asking((self.cols, "blocks", *(("reduce",) if self.chosen else ())), launched)

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {"blocks": Asking((self.rows, self.cols), includes.value("products.row_products", "row_blocks"))}


def write(plan: FusionPlan, stage: RowDots, entry: str) -> KernelCode:
    """Return the kernel around one RowDots stage."""
    if plan.choices:
        raise cannot_fuse(stage.name, f"'{plan.choices[0].parameter}' chooses a function, which is for products alone")
    rows, cols = plan.axes[stage.matrix]
    scratch = ["double* by_block", "unsigned int* arrived"] if plan.reduces else []
    after = [*scratch, *(f"float {name}" for name in plan.scalars), f"int {rows}", f"int {cols}"]
    template = f"template <{'class Op, ' if plan.chosen else ''}int ROWS, int WIDTH>"
    head = signature(f"{template}\n__global__ void __launch_bounds__(512)\n    {entry}(", plan, "float", after)
    count = len(plan.reduces)
    return KernelCode(
        headers=("products/row_products.cuh", *(("sums/grid_reduce.cuh",) if count else ()), *headers_of(plan)),
        kernels="\n".join([head, *_body(plan, stage, rows, cols), "}"]),
        entry=f"{entry}<{{}}>",
        host=RowsHost(rows, cols, count, plan.chosen is not None),
    )


def _operation(stage: Reduce) -> str:
    return "Op" if stage.chosen else REDUCTIONS[stage.hows[0]]


def _body(plan: FusionPlan, stage: RowDots, rows: str, cols: str) -> list[str]:
    operations = [_operation(one) for one in plan.reduces]
    parts = ", ".join(f"{one}::nothing()" for one in operations)
    joined = f"grid_reduce<{', '.join(operations)}>(part, by_block, arrived)"
    given = ", ".join([stage.matrix, stage.vector, rows, cols])
    return [
        *([f"    double part[] = {{{parts}}};"] if operations else []),
        f"    visit_row_products<ROWS, WIDTH>({given}, [&](long long row, float {plan.local(stage)}) {{",
        *(f"        {line}" for line in _visit(plan, stage)),
        "    });",
        *(finish(plan, joined, "float") if operations else []),
    ]


def _visit(plan: FusionPlan, stage: RowDots) -> list[str]:
    """Return what is done with one row's product; an output that is also reduced is computed once."""
    stored = {name: one for name, one in plan.outputs.items() if plan.axes[name]}
    reduced = [one.expression for one in plan.reduces]
    read = [name for name in names_in(*stored.values(), *reduced) if name != stage.name]
    lines = elements(plan, read, "row", "float")
    for name, one in stored.items():
        lines += [f"const float {name}_at = {_text(one, plan, stage)};", f"{name}[row] = {name}_at;"]
    known = {one: f"{name}_at" for name, one in stored.items()}
    for position, one in enumerate(plan.reduces):
        op, value = _operation(one), known.get(one.expression) or _text(one.expression, plan, stage)
        lines.append(f"part[{position}] = {op}{{}}(part[{position}], {op}::term({value}));")
    return lines


def _text(expression: Expression, plan: FusionPlan, stage: RowDots) -> str:
    return at_place(expression, plan, stage, "float")
