"""Products of a matrix's rows with a vector: a map over the rows takes them further, and one reduction adds them up."""

from prism_bench.extensions.fusion.expression import names_in
from prism_bench.extensions.fusion.plan import Plan
from prism_bench.extensions.fusion.refusals import cannot_fuse
from prism_bench.extensions.fusion.stages import REDUCTIONS
from prism_bench.extensions.fusion.sums import finish
from prism_bench.extensions.fusion.written import Written, at_place, elements, headers_of, signature


def write(plan: Plan, entry: str) -> Written:
    """The kernel around one RowDots stage."""
    stage = plan.tiled
    if plan.choices:
        raise cannot_fuse(stage.name, f"'{plan.choices[0].parameter}' chooses a function, which is for products alone")
    rows, cols = plan.axes[stage.matrix]
    scratch = ["double* by_block", "unsigned int* arrived"] if plan.reduces else []
    after = [*scratch, *(f"float {name}" for name in plan.scalars), f"int {rows}", f"int {cols}"]
    template = f"template <{'class Op, ' if plan.chosen else ''}int ROWS, int WIDTH>"
    head = signature(f"{template}\n__global__ void __launch_bounds__(256)\n    {entry}(", plan, "float", after)
    count = len(plan.reduces)
    return Written(
        headers=("row_products.cuh", *(("grid_reduce.cuh",) if count else ()), *headers_of(plan)),
        kernels="\n".join([head, *_body(plan, stage, rows, cols), "}"]),
        entry=f"{entry}<{{}}>",
        scratch=(f'Scratch("by_block", "{f"{count} " if count > 1 else ""}blocks", "float64")',
                 'Scratch("arrived", "1", "uint32")') if count else (),
        sizes=(f'Size("{rows}")', f'Size("{cols}")'),
        launch=_launch(plan, cols),
        shared={"row_products": ("row_blocks", "row_template")},
        derived=f'{{"blocks": lambda {rows}, {cols}: row_blocks({rows}, {cols})}}',
    )  # fmt: skip


def _launch(plan, cols):
    asks = [cols, "blocks", *(("reduce",) if plan.chosen else ())]
    op = "REDUCE[reduce], " if plan.chosen else ""
    entry = f"entry.format(row_template({op}{cols}))"
    return f"return lambda {', '.join(asks)}: Launch(blocks, 256, entry={entry}, arguments=passed)"


def _operation(stage):
    return "Op" if stage.chosen else REDUCTIONS[stage.how]


def _body(plan, stage, rows, cols):
    operations = [_operation(one) for one in plan.reduces]
    parts = ", ".join(f"{one}::nothing()" for one in operations)
    joined = f"grid_reduce<{', '.join(operations)}>(part, by_block, arrived)"
    given = ", ".join([stage.matrix, stage.vector, rows, cols])
    return [
        *([f"    double part[] = {{{parts}}};"] if operations else []),
        f"    visit_row_products<ROWS, WIDTH>({given}, [&](long long row, float {plan.local}) {{",
        *(f"        {line}" for line in _visit(plan, stage)),
        "    });",
        *(finish(plan, joined, "float") if operations else []),
    ]  # fmt: skip


def _visit(plan, stage):
    """What is done with one row's product; an output that is also reduced is computed once."""
    stored = {name: one for name, one in plan.outputs.items() if plan.axes[name]}
    reduced = [one.expression for one in plan.reduces]
    read = [name for name in names_in(*stored.values(), *reduced) if name != stage.name]
    lines = elements(plan, read, "row", "float")
    for name, one in stored.items():
        lines += [f"const float {name}_at = {_text(one, plan)};", f"{name}[row] = {name}_at;"]
    known = {one: f"{name}_at" for name, one in stored.items()}
    for position, one in enumerate(plan.reduces):
        op, value = _operation(one), known.get(one.expression) or _text(one.expression, plan)
        lines.append(f"part[{position}] = {op}{{}}(part[{position}], {op}::term({value}));")
    return lines


def _text(expression, plan):
    return at_place(expression, plan, "float")
