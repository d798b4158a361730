"""The float64 reference of a plan, and how far each output may be off, as Python functions in text."""

import re

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import (
    Binary,
    Call,
    Choice,
    Function,
    absolute,
    functions_in,
    names_in,
    python,
    walk,
)
from prism_bench.extensions.fusion.expression import flops as operations
from prism_bench.extensions.fusion.plan import Plan
from prism_bench.extensions.fusion.shapes import extents, operands
from prism_bench.extensions.fusion.stages import AS_BITS, ColumnSums, Nearest, Product, Reduce, RowDots, Scan, Within


def reference(plan: Plan, name: str) -> str:
    """`def name(...)` over float64 arrays: the anchors one after the other, then the outputs."""
    values = [(one.name, _value(one)) for one in plan.anchors]
    results = {output: python(one) for output, one in plan.outputs.items()}
    lines = []
    for stage, value in values:
        for output, result in results.items():
            if result in value and result != output:
                lines.append(f"    {output} = {result}")
                value, results[output] = value.replace(result, output), output
        lines.append(f"    {stage} = {value}")
    if lines and list(results.values()) == [plan.anchors[-1].name]:
        lines[-1] = lines[-1].replace(f"{plan.anchors[-1].name} =", "return", 1)
    else:
        lines.append(f"    return {', '.join(results.values())}")
    return _function(plan, name, lines, plan.anchors, plan.outputs.values())


def sizes(plan: Plan, suffix: str) -> dict[str, tuple[str, str]]:
    """By output: the name and the text of the function that gives the absolute terms of each element."""
    return {
        output: (f"{output}_size{suffix}", _size(plan, output, f"{output}_size{suffix}")) for output in plan.outputs
    }


def _size(plan, output, name):
    needed = _needed(plan, plan.outputs[output])
    known = (*(one.name for one in needed), *extents(plan.program, plan.stages))
    for expression in (plan.outputs[output], *(e for one in needed for e in one.expressions)):
        _refuse_unsized(plan, expression)
    result = absolute(plan.outputs[output], known)
    lines = [f"    {one.name} = {_size_of(one, known)}" for one in needed]
    if needed and python(result) == needed[-1].name:
        lines[-1] = f"    return {_size_of(needed[-1], known)}"
    else:
        lines.append(f"    return {python(result)}")
    return _function(plan, name, lines, needed, [plan.outputs[output]])


def _refuse_unsized(plan, expression):
    """The size of a function is taken at values; those of stages are not at hand where only their sizes are."""
    stages = {one.name for one in plan.anchors if not isinstance(one, Scan)}  # a scan's result is exact
    for part in walk(expression):
        unsized = isinstance(part, Call) and isinstance(part.function, Function) and part.function.stretch is None
        if unsized and stages & set(names_in(part)):
            raise SpecError(
                f"how far '{part.function.name}' of '{names_in(part)[0]}' is off cannot be derived: it has no stretch"
            )


def _needed(plan, expression):
    """The anchors that an expression goes back to, in order."""
    wanted, found = set(names_in(expression)), []
    for one in reversed(plan.anchors):
        if one.name in wanted:
            found.insert(0, one)
            wanted |= set(operands(one))
    return tuple(found)


def _value(stage):
    return _text(stage, [python(e) for e in stage.expressions], lambda name: name, "reduced")


def _size_of(stage, known):
    return _text(
        stage, [python(absolute(e, known)) for e in stage.expressions], lambda name: f"xp.abs({name})", "reduced_size"
    )


def _text(stage, expressions, array, reduced):
    if isinstance(stage, Reduce):
        (expression,) = expressions
        if stage.how == "sum":
            return f"({expression}).sum()" if isinstance(stage.expression, Binary) else f"{expression}.sum()"
        return f"{reduced}({expression}, {'reduce' if stage.chosen else repr(stage.how)}, xp)".replace("'", '"')
    if isinstance(stage, Nearest):
        return f"kth_distance({_tuple(stage.points)}, k, xp)"
    if isinstance(stage, Within):
        return f"nearer_than({_tuple(stage.points)}, {stage.radius}, xp)"
    if isinstance(stage, ColumnSums):
        return f"{array(stage.matrix)}.T @ ({expressions[0]})"
    if isinstance(stage, RowDots):
        return f"{array(stage.matrix)} @ {array(stage.vector)}"
    wide = (f"wide({name}, xp)" if set(AS_BITS) & set(stage.precisions) else name for name in (stage.left, stage.right))
    return " @ ".join(array(one) for one in wide)


def _tuple(names):
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _function(plan, name, lines, anchors, expressions):
    """The function around the lines, asking for what they hold, in the program's order."""
    expressions = [*expressions, *(e for one in anchors for e in one.expressions)]
    read = {operand for one in anchors for operand in operands(one)} | set(names_in(*expressions))
    numbers = extents(plan.program, plan.stages)
    given = [*(one.name for one in plan.program.inputs), *plan.program.scalars, *numbers]
    read |= {"k"} if any(isinstance(one, Nearest) for one in anchors) else set()
    text = "\n".join(lines)
    chosen = [f.parameter for f in functions_in(*expressions) if isinstance(f, Choice)]
    chosen += ["reduce"] if any(isinstance(one, Reduce) and one.chosen for one in anchors) else []
    modules = [one for one in ("xp", "special") if re.search(rf"\b{one}\b", text)]
    asks = [*(one for one in given if one in read), *(one for one in chosen if one in text), *modules]
    return f"def {name}({', '.join(asks)}):\n{text}"


def shared(plan: Plan) -> dict[str, set[str]]:
    """What references and sizes use of kernels/include: names by module."""
    found: dict[str, set[str]] = {}

    def use(module, name):
        if module:
            found.setdefault(module, set()).add(name)

    for function in functions_in(*plan.expressions):
        for one in function.functions.values() if isinstance(function, Choice) else (function,):
            for part in (one.value, one.size) if one.stretch is None else (one.value,):
                use(*(("", "") if part is None else (part.module, part.name)))
    if any(one.how != "sum" for one in plan.reduces):
        found.setdefault("grid_reduce", set()).update(("reduced", "reduced_size"))
    for one in plan.scans:
        use("neighbours", "kth_distance" if isinstance(one, Nearest) else "nearer_than")
    if isinstance(plan.tiled, Product) and set(AS_BITS) & set(plan.tiled.precisions):
        use("bfloat", "wide")
    return found


def flops(plan: Plan) -> str:
    """`lambda m, n: 2 * m * n + 3 * m`: a function call or an operator counts, a product's step counts two."""
    counts: dict[tuple, int] = {}

    def add(axes, count):
        if axes and count:
            counts[axes] = counts.get(axes, 0) + count

    for one in plan.anchors:
        if isinstance(one, Reduce):
            add(_axes(plan, one.expression), operations(one.expression) + (2 if one.how == "squares" else 1))
        elif isinstance(one, Scan):
            _add_pairs(plan, one, add)
        elif isinstance(one, Product):
            add((*plan.axes[one.left], plan.axes[one.right][1]), 2)
        else:
            add(plan.axes[one.matrix], 2)
            add(plan.axes[one.matrix][:1], sum(operations(e) for e in one.expressions))
    for name, one in plan.outputs.items():
        add(plan.axes[name], operations(one))
    axes = tuple(dict.fromkeys(axis for term in counts for axis in term))
    return f"lambda {', '.join(axes)}: {' + '.join(' * '.join([str(n), *term]) for term, n in counts.items())}"


def _add_pairs(plan, scan, add):
    """Two operations a coordinate, and a comparison with the k nearest, or with the radius in every array."""
    along = plan.axes[scan.name]
    for name in scan.points:
        add((*along, *plan.axes[name]), 2)
    add((*along, *along), 1 if isinstance(scan, Nearest) else len(scan.points))


def _axes(plan, expression):
    return next(plan.axes[name] for name in names_in(expression) if plan.axes[name])
