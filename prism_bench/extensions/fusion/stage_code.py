"""CUDA code of each kind of stage: reductions, matrix products, and scans over pairs of points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.extensions.fusion.expression import (
    Asking,
    Expression,
    FunctionChoice,
    Includes,
    Name,
    cuda,
    names_in,
    replaced,
    terms,
)
from prism_bench.extensions.fusion.plan import (
    EntryCall,
    FusionPlan,
    HostSide,
    KernelCode,
    at_place,
    cannot_fuse,
    elements,
    epilogue,
    folded,
    function,
    grid_scratch,
    grid_workspace,
    headers_of,
    packed,
    signature,
    template_of,
)
from prism_bench.extensions.fusion.program import REDUCTIONS, ColumnSums, Product, Reduce, RowDots, Within
from prism_bench.spec.arguments import Scalar, Scratch, Size
from prism_bench.spec.kernel import Launch

# Maps and reductions along vectors: a grid of any size walks them, the last block to finish adds the parts up.

_GRID_ARGUMENTS = ("double* by_block", "unsigned int* arrived")  # of a kernel with sums over the grid


@dataclass(frozen=True)
class _SumsHost(HostSide):
    """Blocks along the longest of the axes, with `count` reductions."""

    axes: tuple[str, ...]
    count: int

    @property
    def workspace(self) -> Mapping[str, str]:
        return grid_workspace("most blocks", self.count)

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return tuple(Size(axis, "int64") for axis in self.axes)

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return includes.value("arrays.map_arrays", "sum_scratch")(self.count) if self.count else ()

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        if not self.count:
            launch = includes.value("arrays.map_arrays", "launch_map")(call.entry, arguments=call.arguments)
            return Asking(self.axes[:1], launch(call.number))
        sum_launch = includes.value("arrays.map_arrays", "sum_launch")
        entry = call.entry.format(includes.value("arrays.map_arrays", "NUMBERS")[call.number])
        return Asking(
            (*self.axes, "device"),
            lambda *sizes: sum_launch(entry, max(sizes[:-1]), sizes[-1], call.arguments, call.number),
        )


def sums_write(plan: FusionPlan, entry: str) -> KernelCode:
    """Return the kernel of maps and reductions over one axis or several."""
    parameter = "reduce" if plan.chosen else next((choice.parameter for choice in plan.choices), None)
    if parameter:
        raise cannot_fuse(plan.stages[0].name, f"the parameter '{parameter}' chooses for RowDots and Product alone")
    axes, count = plan.axes_read(), len(plan.reduces)
    maps = {name: expression for name, expression in plan.outputs.items() if plan.axes[name]}
    if not count and len({plan.axes[name] for name in maps}) > 1:
        raise cannot_fuse(list(maps)[-1], "it maps over another axis than the outputs before it")
    scratch = _GRID_ARGUMENTS if count else ()
    after = [*scratch, *(f"T {name}" for name in plan.scalars), *(f"long long {axis}" for axis in axes)]
    bounds = "512, RESIDENT<T>" if count else "256"
    head = f"template <class T>\n__global__ void __launch_bounds__({bounds})\n    {entry}("
    body: list[str] = []
    for name, expression in maps.items():
        text, vectors = _function(plan, f"{name}_of", expression)
        body.append(packed(f"{text}\n    map_arrays(", [name, *plan.axes[name], f"{name}_of", *vectors], ");"))
    body += _reductions(plan) if count else []
    only_sums = all(reduce.how == "sum" for reduce in plan.reduces)
    header = "arrays/map_arrays.cuh" if only_sums else "sums/grid_reduce.cuh"
    return KernelCode(
        headers=tuple(dict.fromkeys([*headers_of(plan), header])),
        kernels="\n".join([signature(head, plan, "T", after), *body, "}"]),
        entry=f"{entry}<{{}}>",
        host=_SumsHost(axes, count),
    )


def _function(plan: FusionPlan, name: str, expression: Expression) -> tuple[str, list[str]]:
    """Return a lambda of the vectors in an expression, and their names."""
    vectors = [vector for vector in names_in(expression) if plan.axes[vector]]
    captured = "=" if set(names_in(expression)) - set(vectors) else ""
    return function(name, ", ".join(f"T {vector}" for vector in vectors), captured, cuda(expression)), vectors


def _reductions(plan: FusionPlan) -> list[str]:
    """Return the terms, the threads' parts, and the statements of the last block."""
    lines, parts = [], []
    for stage in plan.reduces:
        text, vectors = _function(plan, f"{stage.name}_term", stage.expression)
        lines.append(text)
        call = "thread_sum<T>" if stage.how == "sum" else f"thread_reduce<T, {REDUCTIONS[stage.hows[0]]}>"
        axis = plan.axes[vectors[0]][0]
        parts.append(f"{call}({', '.join([axis, f'{stage.name}_term', *vectors])})")
    lines.append(packed("    double part[] = {", parts, "};"))
    only_sums = all(reduce.how == "sum" for reduce in plan.reduces)
    functors = ", ".join(REDUCTIONS[reduce.hows[0]] for reduce in plan.reduces)
    call = "grid_sums" if only_sums else f"grid_reduce<{functors}>"
    return lines + finish(plan, f"{call}(part, by_block, arrived)")


def finish(plan: FusionPlan, joined: str, number: str = "T") -> list[str]:
    """Return the last lines of a kernel with reductions: numbers that follow from them, stored by one thread."""
    stored = {name: expression for name, expression in plan.outputs.items() if not plan.axes[name]}
    lines = [f"    if (!{joined}) return;"]
    used = set(names_in(*stored.values()))
    lines += [
        f"    const double {stage.name}_all = part[{position}];"
        for position, stage in enumerate(plan.reduces)
        if stage.name in used
    ]
    whole = {reduce.name: Name(f"{reduce.name}_all") for reduce in plan.reduces}
    for name, expression in stored.items():
        lines.append(f"    *{name} = static_cast<{number}>({cuda(replaced(expression, whole), 'double')});")
    return lines


# Products of matrices with an epilogue, on the FMA units and on the tensor cores.

_GLOBAL = "__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)"
_TENSOR_TEMPLATE = ("class T", "bool LEFT_ALONG", "bool RIGHT_ALONG", "int WIDTH")


@dataclass(frozen=True)
class _ProductHost(HostSide):
    """Tiles of the result; `extents` name rows, columns and depth, `choices` the functions that parameters choose.

    `matrices` are the operands and the result.
    """

    extents: tuple[str, str, str]
    choices: tuple[FunctionChoice, ...]
    matrices: tuple[str, str, str]

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return tuple(Size(extent) for extent in self.extents)

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        product_launch = includes.value("products.fused_product", "product_launch")

        def launched(*values: Any) -> Launch:
            *sizes, tile = values[:4]
            names = zip(self.choices, values[4:-1], strict=True)
            functors = {choice.parameter: choice.functions[name].functor for choice, name in names}
            keywords = {"tile": tile, "arguments": call.arguments, "matrices": self.matrices}
            return product_launch(call.entry, call.number, tuple(sizes), values[-1], **keywords, **functors)

        return Asking((*self.extents, "tile", *(choice.parameter for choice in self.choices), "device"), launched)


def write(plan: FusionPlan, stage: Product, entry: str) -> KernelCode:
    """Return the kernels around one Product stage: one for float32, one for all operands of the tensor cores."""
    rows, depth = plan.axes[stage.left]
    sizes = (rows, plan.axes[stage.right][1], depth)
    on_tensor = len(stage.precisions) > 1
    head = f"{template_of(plan, 'class T', 'int WIDTH')}\n{_GLOBAL}\n    {entry}("
    kernels = [_kernel(plan, stage, head, sizes, "multiply_matrices<T, WIDTH, false>({}, epilogue);")]
    kernels += [_tensor(plan, stage, entry, sizes)] if on_tensor else []
    return KernelCode(
        headers=("products/gemm.cuh", *(("tensor_cores/tensor_product.cuh",) if on_tensor else ()), *headers_of(plan)),
        kernels="\n\n".join(kernels),
        entry=f"{entry}<{{tile}}, {{width}}{_chosen(plan)}>",
        host=_ProductHost(sizes, plan.choices, (stage.left, stage.right, next(iter(plan.outputs)))),
    )


def tensor_entry(plan: FusionPlan, entry: str) -> str:
    """Return the entry for tensor cores, with {} for the template arguments of the launch."""
    return f"{entry}_tensor<{{tile}}{_chosen(plan)}>"


def _chosen(plan: FusionPlan) -> str:
    return "".join(f", {{{choice.parameter}}}" for choice in plan.choices)


def _tensor(plan: FusionPlan, stage: Product, entry: str, sizes: tuple[str, ...]) -> str:
    head = (
        f"extern __shared__ __align__(128) unsigned char stages[];\n\n{template_of(plan, *_TENSOR_TEMPLATE)}\n"
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
    after = [*(f"float {name}" for name in plan.scalars), *(f"int {size}" for size in sizes)]
    passed = ", ".join([stage.left, stage.right, bias or "nullptr", next(iter(plan.outputs)), *sizes])
    captured = "=" if plan.scalars else ""
    return "\n".join(
        [
            signature(head, plan, "float", after, types),
            f"    const auto epilogue = [{captured}](float sums) {{ return {cuda(expression, 'float')}; }};",
            f"    {call.format(passed)}",
            "}",
        ]
    )


# Products of a matrix's rows with a vector, with a map and reductions over the rows.


@dataclass(frozen=True)
class _RowsHost(HostSide):
    """Blocks of rows; `count` reductions, of which the parameter `reduce` selects the kind if `chosen`."""

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
        return grid_scratch("blocks", self.count)

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        template, threads = (includes.value("products.row_products", name) for name in ("row_template", "row_threads"))

        def launched(cols: int, blocks: int, *reduce: str) -> Launch:
            entry = call.entry.format(template(*(REDUCTIONS[how] for how in reduce), cols))
            return Launch(blocks, threads(cols), entry=entry, arguments=call.arguments)

        return Asking((self.cols, "blocks", *(("reduce",) if self.chosen else ())), launched)

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {"blocks": Asking((self.rows, self.cols), includes.value("products.row_products", "row_blocks"))}


def rows_write(plan: FusionPlan, stage: RowDots, entry: str) -> KernelCode:
    """Return the kernel around one RowDots stage."""
    if plan.choices:
        raise cannot_fuse(stage.name, f"'{plan.choices[0].parameter}' chooses a function, which is for products alone")
    rows, cols = plan.axes[stage.matrix]
    scratch = _GRID_ARGUMENTS if plan.reduces else ()
    after = [*scratch, *(f"float {name}" for name in plan.scalars), f"int {rows}", f"int {cols}"]
    template = f"template <{'class Op, ' if plan.chosen else ''}int ROWS, int WIDTH>"
    head = signature(f"{template}\n__global__ void __launch_bounds__(512)\n    {entry}(", plan, "float", after)
    count = len(plan.reduces)
    return KernelCode(
        headers=("products/row_products.cuh", *(("sums/grid_reduce.cuh",) if count else ()), *headers_of(plan)),
        kernels="\n".join([head, *_body(plan, stage, rows, cols), "}"]),
        entry=f"{entry}<{{}}>",
        host=_RowsHost(rows, cols, count, plan.chosen is not None),
    )


def _operation(stage: Reduce) -> str:
    return "Op" if stage.chosen else REDUCTIONS[stage.hows[0]]


def _body(plan: FusionPlan, stage: RowDots, rows: str, cols: str) -> list[str]:
    operations = [_operation(reduce) for reduce in plan.reduces]
    parts = ", ".join(f"{operation}::nothing()" for operation in operations)
    joined = f"grid_reduce<{', '.join(operations)}>(part, by_block, arrived)"
    passed = ", ".join([stage.matrix, stage.vector, rows, cols])
    return [
        *([f"    double part[] = {{{parts}}};"] if operations else []),
        f"    visit_row_products<ROWS, WIDTH>({passed}, [&](long long row, float {plan.local(stage)}) {{",
        *(f"        {line}" for line in _visit(plan, stage)),
        "    });",
        *(finish(plan, joined, "float") if operations else []),
    ]


def _visit(plan: FusionPlan, stage: RowDots) -> list[str]:
    """Return the statements for a row's product; an output that is also reduced is computed once."""
    stored = {name: expression for name, expression in plan.outputs.items() if plan.axes[name]}
    reduced = [reduce.expression for reduce in plan.reduces]
    read = [name for name in names_in(*stored.values(), *reduced) if name != stage.name]
    lines = elements(plan, read, "row", "float")
    for name, expression in stored.items():
        lines += [f"const float {name}_at = {_text(expression, plan, stage)};", f"{name}[row] = {name}_at;"]
    known = {expression: f"{name}_at" for name, expression in stored.items()}
    for position, reduce in enumerate(plan.reduces):
        op, value = _operation(reduce), known.get(reduce.expression) or _text(reduce.expression, plan, stage)
        lines.append(f"part[{position}] = {op}{{}}(part[{position}], {op}::term({value}));")
    return lines


def _text(expression: Expression, plan: FusionPlan, stage: RowDots) -> str:
    return at_place(expression, plan, stage, "float")


# Sums over the columns of a matrix: weights come from a map over rows, the sums go into a map over columns.


@dataclass(frozen=True)
class _ColumnsHost(HostSide):
    """Tiles of columns, the rows of each shared by `splits` blocks."""

    rows: str
    columns: str

    @property
    def workspace(self) -> Mapping[str, str]:
        return {"parts": f"splits {self.columns}", "arrived": "tiles"}

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return Size(self.rows), Size(self.columns), Size("splits")

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return Scratch("parts", f"splits {self.columns}", number), Scratch("arrived", "tiles", "uint32")

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        entry = call.entry.format(includes.value("arrays.map_arrays", "NUMBERS")[call.number])
        return Asking(
            ("tiles", "splits"),
            lambda tiles, splits: Launch(tiles * splits, 256, entry=entry, arguments=call.arguments),
        )

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        sizes: dict[str, Any] = includes.value("sums.column_sums", "derived")(number)
        return {
            "tiles": Asking((self.columns,), sizes["tiles"]),
            "splits": Asking((self.rows, self.columns), sizes["splits"]),
        }


def columns_write(plan: FusionPlan, stage: ColumnSums, entry: str) -> KernelCode:
    """Return the kernel around one ColumnSums stage."""
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
    return KernelCode(
        headers=("sums/column_sums.cuh", *headers_of(plan)),
        kernels="\n".join([head, *_columns_body(plan, stage, rows, columns), "}"]),
        entry=f"{entry}<{{}}>",
        host=_ColumnsHost(rows, columns),
    )


def _columns_body(plan: FusionPlan, stage: ColumnSums, rows: str, columns: str) -> list[str]:
    local, read = plan.local(stage), names_in(*plan.outputs.values())
    vectors = [name for name in read if name in {operand.name for operand in plan.inputs}]
    passed = ", ".join([stage.matrix, "weight", "parts", "arrived", rows, columns, "splits", f"&{local}"])
    return [
        "    const auto weight = [=](int row) {",
        *(f"        {line}" for line in elements(plan, names_in(stage.weights), "row")),
        f"        return {at_place(stage.weights, plan, stage)};",
        "    };",
        f"    T {local};",
        f"    if (!column_sums({passed})) return;",
        "    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;",
        f"    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= {columns}) return;",
        *(f"    {line}" for line in elements(plan, vectors, "column")),
        *(f"    {name}[column] = {at_place(expression, plan, stage)};" for name, expression in plan.outputs.items()),
    ]


# Scans over all pairs of points: the distance of the k-th neighbour, neighbours within it, and sums over the points.
#
# A warp has its points' results in every lane, so that a scan can use the results of another without waiting.

_CLOUD = 3  # arrays of points that Cloud takes


@dataclass(frozen=True)
class _NeighboursHost(HostSide):
    """Warps of points along `axis`; `template` names what the launch puts into the entry before a warp's points."""

    axis: str
    template: tuple[str, ...]
    count: int

    @property
    def workspace(self) -> Mapping[str, str]:
        return grid_workspace("blocks", self.count)

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return (Size(self.axis),)

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return grid_scratch("blocks", self.count)

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        by_warps, own_points = (includes.value("neighbours.te_points", name) for name in ("by_warps", "own_points"))

        def launched(n: int, *values: Any) -> Launch:
            *template, device = values
            points_each = own_points(n, device)
            return by_warps(
                call.entry.format(", ".join(map(str, [*template, points_each]))), n, points_each, call.arguments
            )

        return Asking((self.axis, *self.template, "device"), launched)

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {"blocks": Asking((self.axis,), lambda n: max(1, -(-n // 8)))} if self.count else {}


def neighbours_write(plan: FusionPlan, entry: str) -> KernelCode:
    """Return the kernel around the scans of a plan."""
    axis, count = plan.axes[plan.clouds[0]][0], len(plan.reduces)
    dims = [width for name in plan.clouds for width in plan.axes[name][1:]]
    template = ", ".join([*(f"int {dim}" for dim in dims), *(["int k"] if plan.nearest else []), "int OWN"])
    scratch = _GRID_ARGUMENTS if count else ()
    after = [*scratch, *(f"float {name}" for name in plan.scalars), f"int {axis}"]
    head = f"template <{template}>\n__global__ void __launch_bounds__(TE_THREADS)\n    {entry}("
    return KernelCode(
        headers=("neighbours/te_points.cuh", *(("sums/grid_reduce.cuh",) if count else ()), *headers_of(plan)),
        kernels="\n".join([signature(head, plan, "float", after), *_neighbours_body(plan, axis), "}"]),
        entry=f"{entry}<{{}}>",
        host=_NeighboursHost(axis, (*dims, *(["k"] if plan.nearest else [])), count),
    )


def _neighbours_body(plan: FusionPlan, axis: str) -> list[str]:
    widths = [plan.axes[name][1] if len(plan.axes[name]) == 2 else "1" for name in plan.clouds]
    padded = ", ".join(widths + ["0"] * (_CLOUD - len(widths)))
    arrays = ", ".join([*plan.clouds, *["nullptr"] * (_CLOUD - len(widths))])
    lines = [
        f"    using Points = Cloud<{padded}>;",
        f"    const Points points{{{arrays}, {axis}}};",
        "    const WarpPoints<Points, OWN> own(points);",
    ]
    if plan.nearest:
        name, apart = plan.nearest.name, _apart(plan, plan.nearest.points, widths)
        lines += [
            f"    float {name}_of[OWN];",
            f"    const auto apart = [&](int p, const float(&other)[Points::D]) {{ return {apart}; }};",
            f"    find_radii<k>(points, own, apart, {name}_of);",
        ]
    counts = [scan for scan in plan.scans if isinstance(scan, Within)]
    return lines + (_counts(plan, counts, widths, axis) if counts else []) + _by_point(plan, axis)


def _range(first: int, last: int, widths: Sequence[str]) -> str:
    """Return the distance in the coordinates of the arrays number `first` to `last`."""
    begin, end = (" + ".join(widths[:at]) or "0" for at in (first, last + 1))
    return f"distance<{begin}, {end}>(own.at[p], other)"


def _apart(plan: FusionPlan, names: Sequence[str], widths: Sequence[str]) -> str:
    """Return the distance over all these arrays; neighbouring ones are one range."""
    places = sorted(plan.clouds.index(name) for name in names)
    begins = [place for place in places if place - 1 not in places]
    ends = [place for place in places if place + 1 not in places]
    text = ""
    for begin, end in zip(begins, ends, strict=True):
        part = _range(begin, end, widths)
        text = f"fmaxf({text}, {part})" if text else part
    return text


def _counts(plan: FusionPlan, counts: Sequence[Within], widths: Sequence[str], axis: str) -> list[str]:
    """Return a visit of all pairs for all counts; an array's distances serve each count that uses it."""
    lines = [f"    int {', '.join(f'{count.name}_of[OWN] = {{}}' for count in counts)};"]
    lines += [
        line for name in dict.fromkeys(count.radius for count in counts) for line in _radius_input(plan, name, axis)
    ]
    lines.append("    own.visit(points, [&](int p, int, const float(&other)[Points::D]) {")
    for name, radius in dict.fromkeys((name, count.radius) for count in counts for name in count.points):
        place = plan.clouds.index(name)
        apart = _range(place, place, widths)
        lines.append(f"        const bool {_near(name, radius)} = {apart} < {radius}_of[p];")
    lines += [
        f"        {count.name}_of[p] += {' & '.join(_near(name, count.radius) for name in count.points)};"
        for count in counts
    ]
    sums = (f"{count.name}_of[p] = __reduce_add_sync(FULL_WARP, {count.name}_of[p]);" for count in counts)
    return [
        *lines,
        "    });",
        "#pragma unroll",
        "    for (int p = 0; p < OWN; ++p) {",
        *(f"        {line}" for line in sums),
        "    }",
    ]


def _near(name: str, radius: str) -> str:
    return f"near_in_{name}_by_{radius}"


def _radius_input(plan: FusionPlan, radius: str, axis: str) -> list[str]:
    """Return the statements that read the radii of the warp's points, if they are an input."""
    if plan.nearest and radius == plan.nearest.name:
        return []
    read = f"own.first + p < {axis} ? {radius}[own.first + p] : 0.0f"
    return [
        f"    float {radius}_of[OWN];",
        "#pragma unroll",
        f"    for (int p = 0; p < OWN; ++p) {radius}_of[p] = {read};",
    ]


def _by_point(plan: FusionPlan, axis: str) -> list[str]:
    """Return the statements of a lane for each point of its warp: store its outputs and add its terms."""
    stored = {name: expression for name, expression in plan.outputs.items() if plan.axes[name]}
    operations = [REDUCTIONS[reduce.hows[0]] for reduce in plan.reduces]
    nothing = [f"{operation}::nothing()" for operation in operations]
    lines = [packed("    double part[] = {", nothing, "};")] if nothing else []
    lines += [
        "#pragma unroll",
        "    for (int p = 0; p < OWN; ++p) {",
        "        const int point = own.first + p;",
        f"        if (threadIdx.x % 32 != p || point >= {axis}) continue;",
    ]
    lines += [f"        {name}[point] = {_at_point(expression, plan)};" for name, expression in stored.items()]
    for position, (stage, op) in enumerate(zip(plan.reduces, operations, strict=True)):
        text = _at_point(stage.expression, plan, "double")
        lines.append(folded(f"        const double {stage.name}_term = ", terms(text), ";"))
        lines.append(f"        part[{position}] = {op}{{}}(part[{position}], {op}::term({stage.name}_term));")
    joined = f"grid_reduce<{', '.join(operations)}>(part, by_block, arrived)"
    return [*lines, "    }", *(finish(plan, joined, "float") if operations else [])]


def _at_point(expression: Expression, plan: FusionPlan, number: str = "float") -> str:
    scans = {scan.name: Name(f"{scan.name}_of[p]") for scan in plan.scans}
    vectors = {name: Name(f"{name}[point]") for name in names_in(expression) if plan.axes[name] and name not in scans}
    return cuda(replaced(expression, scans | vectors), number)
