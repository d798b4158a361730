"""Sums over the columns of a matrix: weights come out of a map over rows, a map over columns takes the sums further."""

from prism_bench.extensions.fusion.expression import names_in
from prism_bench.extensions.fusion.plan import Plan
from prism_bench.extensions.fusion.refusals import cannot_fuse
from prism_bench.extensions.fusion.written import Written, at_place, elements, headers_of, signature

_LAUNCH = "Launch(tiles * splits, 256, entry=entry.format(NUMBERS[dtype]), arguments=passed)"


def write(plan: Plan, entry: str) -> Written:
    """The kernel around one ColumnSums stage."""
    stage = plan.tiled
    if plan.choices:
        raise cannot_fuse(stage.name, f"'{plan.choices[0].parameter}' chooses a function, which is for products alone")
    rows, columns = plan.axes[stage.matrix]
    after = [
        "T* parts",
        "unsigned int* arrived",
        *(f"T {name}" for name in plan.scalars),
        f"int {rows}",
        f"int {columns}",
        "int splits",
    ]
    head = signature(f"template <class T>\n__global__ void __launch_bounds__(256)\n    {entry}(", plan, "T", after)
    return Written(
        headers=("column_sums.cuh", *headers_of(plan)),
        kernels="\n".join([head, *_body(plan, stage, rows, columns), "}"]),
        entry=f"{entry}<{{}}>",
        scratch=(f'Scratch("parts", "splits {columns}", dtype)', 'Scratch("arrived", "tiles", "uint32")'),
        sizes=(f'Size("{rows}")', f'Size("{columns}")', 'Size("splits")'),
        launch=f"return lambda tiles, splits: {_LAUNCH}",
        shared={"column_sums": ("derived",), "map_arrays": ("NUMBERS",)},
        derived=_derived(rows, columns),
    )  # fmt: skip


def _derived(rows, columns):
    tiles = f'lambda {columns}: derived(dtype)["tiles"]({columns})'
    return f'{{"tiles": {tiles}, "splits": lambda {rows}, {columns}: derived(dtype)["splits"]({rows}, {columns})}}'


def _body(plan, stage, rows, columns):
    read = names_in(*plan.outputs.values())
    vectors = [name for name in read if name in {one.name for one in plan.inputs}]
    given = ", ".join([stage.matrix, "weight", "parts", "arrived", rows, columns, "splits", f"&{plan.local}"])
    return [
        "    const auto weight = [=](int row) {",
        *(f"        {line}" for line in elements(plan, names_in(stage.weights), "row")),
        f"        return {at_place(stage.weights, plan)};",
        "    };",
        f"    T {plan.local};",
        f"    if (!column_sums({given})) return;",
        "    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;",
        f"    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= {columns}) return;",
        *(f"    {line}" for line in elements(plan, vectors, "column")),
        *(f"    {name}[column] = {at_place(one, plan)};" for name, one in plan.outputs.items()),
    ]
