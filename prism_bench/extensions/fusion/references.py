"""The float64 reference of a plan, and how far each output may be off, as functions that ask by name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.asking import AskingForAll
from prism_bench.extensions.fusion.evaluation import Evaluator, Values, evaluator
from prism_bench.extensions.fusion.expression import (
    Absolute,
    Expression,
    Function,
    FunctionChoice,
    Name,
    absolute,
    calls_in,
    choices_in,
    names_in,
    substituted,
    walk,
)
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.shapes import extents, operands
from prism_bench.extensions.fusion.stages import (
    AS_BITS,
    Anchor,
    ColumnSums,
    Nearest,
    Product,
    Reduce,
    RowDots,
    Scan,
    Within,
)

NUMPY = ("xp", "special")  # modules that functions ask for


@dataclass(frozen=True)
class StageValue:
    """A stage to compute: its expressions as they are, or as the sizes of their absolute terms."""

    stage: Anchor
    expressions: tuple[Expression, ...]
    sized: bool = False

    @property
    def asks(self) -> set[str]:
        """The modules that it needs."""
        stage = self.stage
        of_modules = isinstance(stage, Nearest | Within) or (isinstance(stage, Reduce) and stage.how != "sum")
        of_modules = of_modules or self.sized or (isinstance(stage, Product) and _has_bits(stage))
        return _modules(self.expressions) | ({"xp"} if of_modules else set())

    def evaluator(self, includes: Includes) -> Evaluator:
        """Return the function of values by name that computes the stage."""
        stage = self.stage
        if isinstance(stage, Reduce):
            return self._reduced(stage, includes)
        if isinstance(stage, Nearest | Within):
            return _scanned(stage, includes)
        if isinstance(stage, ColumnSums):
            matrix, weights = self._array(stage.matrix), evaluator(self.expressions[0], includes)
            return lambda values: matrix(values).T @ weights(values)
        if isinstance(stage, RowDots):
            matrix, vector = self._array(stage.matrix), self._array(stage.vector)
            return lambda values: matrix(values) @ vector(values)
        wide = includes.value("numbers.bfloat", "wide") if _has_bits(stage) else None
        left, right = self._array(stage.left, wide), self._array(stage.right, wide)
        return lambda values: left(values) @ right(values)

    def _array(self, name: str, widened: Callable[..., Any] | None = None) -> Evaluator:
        """Return what reads an input, of its absolute values where sizes are wanted."""

        def read(values: Values) -> Any:
            array = widened(values[name], values["xp"]) if widened else values[name]
            return values["xp"].abs(array) if self.sized else array

        return read

    def _reduced(self, stage: Reduce, includes: Includes) -> Evaluator:
        terms = evaluator(self.expressions[0], includes)
        if stage.how == "sum":
            return lambda values: terms(values).sum()
        reduced = includes.value("sums.grid_reduce", "reduced_size" if self.sized else "reduced")
        return lambda values: reduced(terms(values), values["reduce"] if stage.chosen else stage.how, values["xp"])


def _scanned(stage: Scan, includes: Includes) -> Evaluator:
    def points(values: Values) -> tuple[Any, ...]:
        return tuple(values[name] for name in stage.points)

    if isinstance(stage, Nearest):
        kth_distance = includes.value("neighbours.neighbours", "kth_distance")
        return lambda values: kth_distance(points(values), values["k"], values["xp"])
    nearer_than = includes.value("neighbours.neighbours", "nearer_than")
    return lambda values: nearer_than(points(values), values[stage.radius], values["xp"])


def _has_bits(stage: Product) -> bool:
    """Return whether operands of some precision travel as bits."""
    return bool(set(AS_BITS) & set(stage.precisions))


def _modules(expressions: Iterable[Expression]) -> set[str]:
    """Return the modules that the functions in the expressions ask for."""
    expressions = tuple(expressions)
    found = {"xp"} if any(isinstance(part, Absolute) for one in expressions for part in walk(one)) else set()
    for call in calls_in(*expressions):
        function = call.function
        found |= set(NUMPY if isinstance(function, FunctionChoice) else function.value.asks)
    return found


def reference(plan: FusionPlan, includes: Includes) -> Callable[..., Any]:
    """Return the reference of a spec: the anchors one after the other, then the outputs.

    An output that an anchor takes further is computed once.
    """
    results = dict(plan.outputs)
    steps: list[tuple[str, Evaluator]] = []
    for anchor in plan.anchors:
        expressions = anchor.expressions
        for output, result in results.items():
            if result != Name(output) and any(result in walk(one) for one in expressions):
                steps.append((output, evaluator(result, includes)))
                expressions = tuple(substituted(one, {result: Name(output)}) for one in expressions)
                results[output] = Name(output)
        steps.append((anchor.name, StageValue(anchor, expressions).evaluator(includes)))
    outputs = [evaluator(one, includes) for one in results.values()]

    def referred(values: Values) -> Any:
        known = dict(values)
        for name, step in steps:
            known[name] = step(known)
        return tuple(output(known) for output in outputs) if len(outputs) > 1 else outputs[0](known)

    asked = {module for one in plan.anchors for module in StageValue(one, one.expressions).asks}
    asked |= _modules(plan.outputs.values())
    return AskingForAll(_asked(plan, plan.anchors, plan.outputs.values(), asked), referred)


def sizes(plan: FusionPlan, includes: Includes) -> dict[str, Callable[..., Any]]:
    """Return, by output, the function that gives the absolute terms of each element."""
    return {output: _size(plan, output, includes) for output in plan.outputs}


def _size(plan: FusionPlan, output: str, includes: Includes) -> Callable[..., Any]:
    expression = plan.outputs[output]
    needed = _needed(plan, expression)
    for one in (expression, *(e for anchor in needed for e in anchor.expressions)):
        _refuse_unsized(plan, one)
    known = (*(one.name for one in needed), *extents(plan.program, plan.stages))
    result = absolute(expression, known)
    computed = [
        StageValue(one, tuple(absolute(e, known) for e in one.expressions), not isinstance(one, Scan)) for one in needed
    ]

    steps, size = [(one.stage.name, one.evaluator(includes)) for one in computed], evaluator(result, includes)

    def sized(values: Values) -> Any:
        found = dict(values)
        for name, step in steps:
            found[name] = step(found)
        return size(found)

    asked = {module for one in computed for module in one.asks} | _modules([result])
    return AskingForAll(_asked(plan, needed, [expression], asked), sized)


def _refuse_unsized(plan: FusionPlan, expression: Expression) -> None:
    """Refuse a function whose size is taken at values where only the sizes of stages are at hand."""
    stages = {one.name for one in plan.anchors if not isinstance(one, Scan)}  # a scan's result is exact
    for call in calls_in(expression):
        unsized = isinstance(call.function, Function) and call.function.stretch is None
        if isinstance(call.function, Function) and unsized and stages & set(names_in(call)):
            raise SpecError(
                f"how far '{call.function.name}' of '{names_in(call)[0]}' is off cannot be derived: it has no stretch"
            )


def _needed(plan: FusionPlan, expression: Expression) -> tuple[Anchor, ...]:
    """Return the anchors that an expression goes back to, in order."""
    wanted, found = set(names_in(expression)), []
    for one in reversed(plan.anchors):
        if one.name in wanted:
            found.insert(0, one)
            wanted |= set(operands(one))
    return tuple(found)


def _asked(
    plan: FusionPlan, anchors: Sequence[Anchor], expressions: Iterable[Expression], modules: set[str]
) -> tuple[str, ...]:
    """Return what a function of these asks for: inputs, scalars and extents that they read, choices, and modules."""
    every = [*expressions, *(e for one in anchors for e in one.expressions)]
    read = {operand for one in anchors for operand in operands(one)} | set(names_in(*every))
    read |= {"k"} if any(isinstance(one, Nearest) for one in anchors) else set()
    given = [one.name for one in plan.program.inputs]
    given += [*plan.program.scalars, *extents(plan.program, plan.stages)]
    chosen = [one.parameter for one in choices_in(*every)]
    chosen += ["reduce"] if any(isinstance(one, Reduce) and one.chosen for one in anchors) else []
    return (*(one for one in given if one in read), *chosen, *(one for one in NUMPY if one in modules))
