"""Source and spec of a fused kernel, built from its program: arguments, launch, reference and tolerances."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion import stage_code
from prism_bench.extensions.fusion.expression import (
    Absolute,
    Asking,
    AskingForAll,
    Evaluator,
    Expression,
    Function,
    FunctionChoice,
    Includes,
    Name,
    SharedName,
    Values,
    absolute,
    calls_in,
    choices_in,
    cuda,
    evaluator,
    names_in,
    replaced,
    substituted,
    walk,
)
from prism_bench.extensions.fusion.plan import (
    EntryCall,
    FusionPlan,
    HostSide,
    KernelCode,
    operations,
    packed,
    planned,
    refuse,
)
from prism_bench.extensions.fusion.program import (
    AS_BITS,
    Anchor,
    Axes,
    ByHand,
    ColumnSums,
    FusionProgram,
    Input,
    Map,
    Nearest,
    Product,
    Reduce,
    RowDots,
    Scan,
    Stage,
    Within,
    axes_of,
    extents,
    in_order,
    operands,
)
from prism_bench.extensions.fusion.stage_code import tensor_entry
from prism_bench.io.files import GENERATED
from prism_bench.spec.arguments import Array, In, InOut, Out, Scalar, Scratch
from prism_bench.spec.inputs import Fill
from prism_bench.spec.kernel import Chain, KernelSpec, Launch, Rule, Variant
from prism_bench.spec.metric import Budget
from prism_bench.spec.peer import Peer, as_peer
from prism_bench.spec.tolerance import Tolerance, normwise, product, reduction

# The separate form, with which the fused kernel is compared: a launch for every stage and every function before a sum.
# Arrays between launches are in memory.

_VARIANT = "separate"


@dataclass(frozen=True)
class SeparateLaunch:
    """The launch of one stage: its kernel, and the names that it is passed."""

    stage: str
    code: KernelCode
    passed: tuple[str, ...]

    def launch(self, number: str, includes: Includes) -> Callable[..., Launch]:
        """Return the `launch` of the stage for that type."""
        return self.code.host.launch(EntryCall(number, self.code.entry, self.passed), includes)


@dataclass(frozen=True)
class SeparateForm:
    """The launches of all stages, and the arrays `between` them with their axes (none for one number)."""

    launches: tuple[SeparateLaunch, ...]
    between: Mapping[str, tuple[str, ...]]

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        """The sizes of all launches, each once: sizes of 64 bits have other names than sizes of 32 bits."""
        sizes = (size for launch in self.launches for size in launch.code.host.sizes)
        return tuple(dict.fromkeys(replace(size, name=_size_name(size)) for size in sizes))

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        """Return the workspace of all launches, each array once."""
        return tuple(dict.fromkeys(a for launch in self.launches for a in launch.code.host.scratch(number, includes)))

    def between_launches(self, number: str) -> tuple[Scratch, ...]:
        """Return the arrays that launches hand on to later ones."""
        return tuple(Scratch(name, " ".join(axes) or "1", number) for name, axes in self.between.items())

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        """Return the derived sizes of all launches; sizes of 64 bits follow from the axes."""
        wide = [size.name for size in self.sizes if size.name.startswith("wide_")]
        by_name: dict[str, Callable[..., int]] = {name: Asking((name.removeprefix("wide_"),), int) for name in wide}
        for launch in self.launches:
            by_name |= launch.code.host.derived(number, includes)
        return by_name

    def launch(self, number: str, includes: Includes) -> Callable[..., tuple[Launch, ...]]:
        """Return the host plan: the launches one after the other."""
        together = includes.value("launches.host_plan", "together")
        return together(*(launch.launch(number, includes) for launch in self.launches))


def separated(program: FusionProgram, name: str) -> SeparateForm | None:
    """Return the program's launches; None if a stage has no separate launch or workspaces of a name differ in shape."""
    stages = tuple(_alone(program.stages))
    if len(stages) < 2 or not all(_can_be_alone(stage, program) for stage in stages):
        return None
    ordered = in_order(program, stages)
    axes = axes_of(program, ordered)
    form = SeparateForm(
        tuple(_launch(program, stage, axes, f"{name}_alone_{stage.name}") for stage in ordered),
        {stage.name: axes[stage.name] for stage in ordered if stage.name not in program.outputs},
    )
    workspaces = {array for launch in form.launches for array in launch.code.host.workspace.items()}
    return form if len(workspaces) == len({name for name, _ in workspaces}) else None


def _alone(stages: Sequence[Stage]) -> Iterator[Stage]:
    """Yield the stages, with a map before each sum of more than a name."""
    for stage in stages:
        inner = stage.expressions[0] if isinstance(stage, ColumnSums | Reduce) else None
        if inner is None or isinstance(inner, Name):
            yield stage
            continue
        terms = Map(f"{stage.name}_terms", inner)
        yield terms
        if isinstance(stage, ColumnSums):
            yield replace(stage, weights=Name(terms.name))
        elif isinstance(stage, Reduce):
            yield replace(stage, expression=Name(terms.name))


def _can_be_alone(stage: Stage, program: FusionProgram) -> bool:
    """Return whether a stage has a separate launch, which needs only arrays from the host."""
    plain = isinstance(stage, Map | ColumnSums) or (isinstance(stage, Reduce) and not stage.chosen)
    return plain and not set(operands(stage)) & set(extents(program, ()))


def _launch(program: FusionProgram, stage: Stage, axes: Axes, entry: str) -> SeparateLaunch:
    """Return the launch of a program of only that stage; its inputs are in memory."""
    read = [name for name in operands(stage) if axes[name]]
    into = stage.into if isinstance(stage, Map) else None
    arrays = [operand.name for operand in program.inputs if operand.name in {*read, into}]
    arrays += [name for name in dict.fromkeys(read) if name not in arrays]
    if not arrays and isinstance(stage, Map):
        return _of_numbers(program, stage, entry)
    alone = replace(
        program,
        inputs=tuple(Input(name, " ".join(axes[name])) for name in arrays),
        stages=(stage,),
        outputs=(stage.name,),
        forms={},
        by_hand=None,
    )
    plan = planned(alone)
    tiled = plan.tiled
    code = (
        stage_code.columns_write(plan, tiled, entry)
        if isinstance(tiled, ColumnSums)
        else stage_code.sums_write(plan, entry)
    )
    outputs = [name for name in plan.outputs if name not in plan.overwritten]
    inputs, sizes = [operand.name for operand in plan.inputs], map(_size_name, code.host.sizes)
    return SeparateLaunch(stage.name, code, (*inputs, *outputs, *code.host.workspace, *plan.scalars, *sizes))


def _size_name(size: Scalar) -> str:
    """Return the name of a size in the form's arguments: sizes of 64 and 32 bits differ."""
    return f"wide_{size.name}" if size.dtype == "int64" else size.name


@dataclass(frozen=True)
class _OneThreadHost(HostSide):
    """Host side of a single thread, which needs only its arguments."""

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        entry = call.entry.format(includes.value("arrays.map_arrays", "NUMBERS")[call.number])
        return Asking((), lambda: Launch(1, 1, entry=entry, arguments=call.arguments))


def _of_numbers(program: FusionProgram, stage: Map, entry: str) -> SeparateLaunch:
    """Return the launch of a single thread, for numbers that follow from sums."""
    read = names_in(stage.expression)
    scalars = [name for name in read if name in program.scalars]
    sums_read = [name for name in read if name not in scalars]
    taken = [*(f"const T* {name}" for name in sums_read), f"T* {stage.name}", *(f"T {name}" for name in scalars)]
    text = cuda(replaced(stage.expression, {name: Name(f"*{name}") for name in sums_read}))
    head = packed(f"template <class T>\n__global__ void __launch_bounds__(1)\n    {entry}(", taken, ") {")
    code = KernelCode((), f"{head}\n    *{stage.name} = {text};\n}}", f"{entry}<{{}}>", _OneThreadHost())
    return SeparateLaunch(stage.name, code, (*sums_read, stage.name, *scalars))


# The float64 reference of a plan and the tolerance of each output, as functions that ask for values by name.

_NUMPY = ("xp", "special")  # modules that functions ask for


@dataclass(frozen=True)
class _StageValue:
    """Stage to compute: its expressions themselves, or the sizes of their absolute terms (`sized`)."""

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
            terms = evaluator(self.expressions[0], includes)
            if stage.how == "sum":
                return lambda values: terms(values).sum()
            reduced = includes.value("sums.grid_reduce", "reduced_size" if self.sized else "reduced")
            return lambda values: reduced(terms(values), values["reduce"] if stage.chosen else stage.how, values["xp"])
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
        """Return the function that reads an input, or its absolute values if `sized`."""

        def read(values: Values) -> Any:
            array = widened(values[name], values["xp"]) if widened else values[name]
            return values["xp"].abs(array) if self.sized else array

        return read


def _scanned(stage: Scan, includes: Includes) -> Evaluator:
    def points(values: Values) -> tuple[Any, ...]:
        return tuple(values[name] for name in stage.points)

    if isinstance(stage, Nearest):
        kth_distance = includes.value("neighbours.neighbours", "kth_distance")
        return lambda values: kth_distance(points(values), values["k"], values["xp"])
    nearer_than = includes.value("neighbours.neighbours", "nearer_than")
    return lambda values: nearer_than(points(values), values[stage.radius], values["xp"])


def _has_bits(stage: Product) -> bool:
    """Return whether operands of some precision are stored as bits."""
    return bool(set(AS_BITS) & set(stage.precisions))


def _modules(expressions: Iterable[Expression]) -> set[str]:
    """Return the modules that the functions in the expressions ask for."""
    expressions = tuple(expressions)
    has_absolute = any(isinstance(part, Absolute) for expression in expressions for part in walk(expression))
    modules = {"xp"} if has_absolute else set[str]()
    for call in calls_in(*expressions):
        function = call.function
        modules |= set(_NUMPY if isinstance(function, FunctionChoice) else function.value.asks)
    return modules


def reference(plan: FusionPlan, includes: Includes) -> Callable[..., Any]:
    """Return the reference of a spec: the anchors in order, then the outputs.

    An output that an anchor takes further is computed once.
    """
    results = dict(plan.outputs)
    steps: list[tuple[str, Evaluator]] = []
    for anchor in plan.anchors:
        expressions = anchor.expressions
        for output, result in results.items():
            if result != Name(output) and any(result in walk(expression) for expression in expressions):
                steps.append((output, evaluator(result, includes)))
                expressions = tuple(substituted(expression, {result: Name(output)}) for expression in expressions)
                results[output] = Name(output)
        steps.append((anchor.name, _StageValue(anchor, expressions).evaluator(includes)))
    outputs = [evaluator(result, includes) for result in results.values()]

    def referred(values: Values) -> Any:
        known = dict(values)
        for name, step in steps:
            known[name] = step(known)
        return tuple(output(known) for output in outputs) if len(outputs) > 1 else outputs[0](known)

    asked = {module for anchor in plan.anchors for module in _StageValue(anchor, anchor.expressions).asks}
    asked |= _modules(plan.outputs.values())
    return AskingForAll(_asked(plan, plan.anchors, plan.outputs.values(), asked), referred)


def sizes(plan: FusionPlan, includes: Includes) -> dict[str, Callable[..., Any]]:
    """Return, by output, the function that gives the absolute terms of each element."""
    return {output: _size(plan, output, includes) for output in plan.outputs}


def _size(plan: FusionPlan, output: str, includes: Includes) -> Callable[..., Any]:
    expression = plan.outputs[output]
    needed = _needed(plan, expression)
    for part in (expression, *(e for anchor in needed for e in anchor.expressions)):
        _refuse_unsized(plan, part)
    known = (*(anchor.name for anchor in needed), *extents(plan.program, plan.stages))
    result = absolute(expression, known)
    computed = [
        _StageValue(anchor, tuple(absolute(e, known) for e in anchor.expressions), not isinstance(anchor, Scan))
        for anchor in needed
    ]
    steps = [(stage_value.stage.name, stage_value.evaluator(includes)) for stage_value in computed]
    size = evaluator(result, includes)

    def sized(values: Values) -> Any:
        named = dict(values)
        for name, step in steps:
            named[name] = step(named)
        return size(named)

    asked = {module for stage_value in computed for module in stage_value.asks} | _modules([result])
    return AskingForAll(_asked(plan, needed, [expression], asked), sized)


def _refuse_unsized(plan: FusionPlan, expression: Expression) -> None:
    """Raise SpecError for a function without a stretch of a stage, of which only the size is known."""
    stages = {anchor.name for anchor in plan.anchors if not isinstance(anchor, Scan)}  # a scan's result is exact
    for call in calls_in(expression):
        unsized = isinstance(call.function, Function) and call.function.stretch is None
        if isinstance(call.function, Function) and unsized and stages & set(names_in(call)):
            raise SpecError(
                f"how far '{call.function.name}' of '{names_in(call)[0]}' is off cannot be derived: it has no stretch"
            )


def _needed(plan: FusionPlan, expression: Expression) -> tuple[Anchor, ...]:
    """Return the anchors on which an expression depends, in order."""
    wanted, anchors = set(names_in(expression)), []
    for anchor in reversed(plan.anchors):
        if anchor.name in wanted:
            anchors.insert(0, anchor)
            wanted |= set(operands(anchor))
    return tuple(anchors)


def _asked(
    plan: FusionPlan, anchors: Sequence[Anchor], expressions: Iterable[Expression], modules: set[str]
) -> tuple[str, ...]:
    """Return the names that a function of these asks for: inputs, scalars, extents, choices and modules."""
    every = [*expressions, *(e for anchor in anchors for e in anchor.expressions)]
    read = {operand for anchor in anchors for operand in operands(anchor)} | set(names_in(*every))
    read |= {"k"} if any(isinstance(anchor, Nearest) for anchor in anchors) else set()
    names = [operand.name for operand in plan.program.inputs]
    names += [*plan.program.scalars, *extents(plan.program, plan.stages)]
    chosen = [choice.parameter for choice in choices_in(*every)]
    chosen += ["reduce"] if any(isinstance(anchor, Reduce) and anchor.chosen for anchor in anchors) else []
    return (*(name for name in names if name in read), *chosen, *(name for name in _NUMPY if name in modules))


# The CUDA source of a program: a kernel for each of its forms and each separate stage.

# As generated sources have it, whose bytes are hashed; `prism-bench fuse --write` writes them.
_BY = "by `prism-bench fuse` from {}.py: change that and run it again."


@dataclass(frozen=True)
class FusedForm:
    """Form of a program: its plan, its generated kernel, and its separate launches if it has them."""

    plan: FusionPlan
    code: KernelCode
    separate: SeparateForm | None = None


@dataclass(frozen=True)
class FusedProgram:
    """A program called `name`, whose kernel is `main`; `forms` have other stages."""

    name: str
    program: FusionProgram
    main: FusedForm
    forms: dict[str, FusedForm]

    def source(self) -> str:
        """Return the CUDA source."""
        every = [self.main, *self.forms.values()]
        separate = [launch.code for launch in self.main.separate.launches] if self.main.separate else []
        headers = {header for code in (*(form.code for form in every), *separate) for header in code.headers}
        # By the name without its folder: moving a header does not change the order, and so the code.
        ordered = sorted(headers, key=lambda header: header.rpartition("/")[2])
        includes = "\n".join(f'#include "{header}"' for header in ordered)
        kernels = [
            f"// Stages: {', '.join(stage.name for stage in form.plan.stages)}.\n{form.code.kernels}" for form in every
        ]
        if separate:
            kernels += ["// Every stage in a separate launch.", *(code.kernels for code in separate)]
        return f"// Written {_BY.format(self.name)}\n{includes}\n\n" + "\n\n".join(kernels) + "\n"


def fused_program(program: FusionProgram, name: str) -> FusedProgram:
    """Return the forms of a program; raise SpecError with the reason if a form cannot be fused."""
    main = _form(program, None, f"{name}_generated")
    forms = {key: _form(program, form.stages, f"{name}_generated_{key}") for key, form in program.forms.items()}
    with_steps = FusedForm(main.plan, main.code, separated(program, name))
    return FusedProgram(name, program, with_steps, forms)


def _form(program: FusionProgram, stages: Sequence[Stage] | None, entry: str) -> FusedForm:
    plan = planned(program, stages)
    refuse(plan)
    return FusedForm(plan, written(plan, entry))


def written(plan: FusionPlan, entry: str) -> KernelCode:
    """Return the kernel of a plan, by the stage that walks its matrix; without such a stage, it walks vectors."""
    tiled = plan.tiled
    in_double = "float64" in plan.program.numbers
    for stage in [*([tiled] if isinstance(tiled, RowDots | Product) else []), *plan.scans] if in_double else []:
        raise SpecError(f"stage '{stage.name}' comes in float32 and, on tensor cores, less; not in float64")
    if plan.scans:
        return stage_code.neighbours_write(plan, entry)
    if isinstance(tiled, ColumnSums):
        return stage_code.columns_write(plan, tiled, entry)
    if isinstance(tiled, RowDots):
        return stage_code.rows_write(plan, tiled, entry)
    return stage_code.write(plan, tiled, entry) if isinstance(tiled, Product) else stage_code.sums_write(plan, entry)


# The spec of a fused kernel.

_FLOAT = "float32"


class SourceOutdated(SpecError):
    """A generated source is missing, or is not what its program generates.

    The program changed, or the generator did, after `prism-bench fuse --write` last wrote the source. Run it again.
    """

    def __init__(self, message: str, program: FusionProgram) -> None:
        super().__init__(message)
        self.program = program


def fuse(program: FusionProgram, module: str) -> KernelSpec:
    """Return the spec of a program in the spec file that is loaded as `module`: `spec = fuse(program, __name__)`.

    Its source is generated/<name>.cu in the family's folder. Raise SourceOutdated if the program generates another
    source, SpecError with the reason if the program cannot be fused.
    """
    path = Path(str(sys.modules[module].__file__))
    fused = fused_program(program, path.stem)
    source = generated_source(path)
    if not source.is_file() or source.read_text() != fused.source():
        state = "is not what its program generates" if source.is_file() else "is not written yet"
        raise SourceOutdated(
            f"{GENERATED}/{source.name} {state}; `prism-bench fuse --write {path.stem}` writes it", program
        )
    includes = Includes(module.rpartition(".")[0].rpartition(".")[0])
    return _FusedSpec(fused, path, includes).spec()


def generated_source(path: Path) -> Path:
    """Return the path of the source of the program in this spec file."""
    return path.parent / GENERATED / f"{path.stem}.cu"


@dataclass(frozen=True)
class _FusedSpec:
    """Builder of the spec of a program declared in the file `path`; `includes` is the catalogue's shared Python."""

    fused: FusedProgram
    path: Path
    includes: Includes

    @property
    def program(self) -> FusionProgram:
        """The program."""
        return self.fused.program

    @property
    def plan(self) -> FusionPlan:
        """The plan of the kernel itself."""
        return self.fused.main.plan

    @property
    def product(self) -> Product | None:
        """The product that the kernel is made around, if there is one."""
        return self.plan.tiled if isinstance(self.plan.tiled, Product) else None

    def spec(self) -> KernelSpec:
        """Return the spec with its variants."""
        program, main = self.program, self.fused.main
        steps = main.separate
        name = self.fused.name
        chains = (Chain(name, {"baseline": _VARIANT, "full": None}, tuple(steps.between)),) if steps else ()
        return KernelSpec(
            entry=f"{name}_generated",
            **self._of_form(main, _FLOAT),
            parameters=self._parameters(),
            derived=main.code.host.derived(_FLOAT, self.includes),
            rules=(*([self._shared("products.gemm_tile", "PRODUCT_RULE")] if self.product else []), *self._rules()),
            peers=self.program.peers,
            workloads=program.workloads,
            edges=program.edges,
            golden=program.golden,
            aliases=program.aliases,
            replaces=program.replaces,
            chains=chains,
            traffic_factor=None if self.plan.scans else 4.0,
            budgets=self._budgets(),
            variants=self._variants(),
            source=generated_source(self.path),
        )

    def _shared(self, module: str, name: str) -> Any:
        return self.includes.value(module, name)

    def _of_form(self, form: FusedForm, number: str) -> dict[str, Any]:
        """Return the fields that depend on a form's stages."""
        return {
            "arguments": self._arguments(form, number),
            "launch": self._launch(form, number),
            "reference": reference(form.plan, self.includes),
            "tolerance": self._tolerance(form, number),
            "flops": operations(form.plan),
        }

    def _launch(self, form: FusedForm, number: str, by: ByHand | None = None) -> Callable[..., Any]:
        """Return the launch of the form, or of the hand-written entry that takes its place."""
        call = EntryCall(number, by.entry, by.arguments) if by else EntryCall(number, form.code.entry)
        return form.code.host.launch(call, self.includes)

    def _arguments(self, form: FusedForm, number: str) -> tuple[Array | Scalar, ...]:
        host, kind = form.code.host, _FLOAT if self.product else number
        scalars = tuple(Scalar(name, kind) for name in form.plan.scalars)
        return (*self._arrays(form.plan, number), *host.scratch(kind, self.includes), *scalars, *host.sizes)

    def _arrays(self, plan: FusionPlan, number: str) -> tuple[Array, ...]:
        """Return inputs and outputs; the operands of a product in its precision, its other arrays in float32."""
        kind = _FLOAT if self.product else number
        inputs = tuple(self._input(plan, operand, number) for operand in plan.inputs)
        written = (name for name in plan.outputs if name not in plan.overwritten)
        return (*inputs, *(Out(name, " ".join(plan.axes[name]) or "1", kind) for name in written))

    def _input(self, plan: FusionPlan, operand: Input, number: str) -> Array:
        if self.product and operand.name in (self.product.left, self.product.right):
            return self._shared("products.fused_product", "operand")(operand.name, operand.shape, number)
        array, kind = InOut if operand.name in plan.overwritten else In, _FLOAT if self.product else number
        fill = (
            self._shared(operand.fill.module, operand.fill.name)
            if isinstance(operand.fill, SharedName)
            else operand.fill
        )
        return (
            array(operand.name, operand.shape, kind, fill)
            if isinstance(fill, Fill)
            else array(operand.name, operand.shape, kind)
        )

    def _tolerance(self, form: FusedForm, number: str) -> Tolerance | Mapping[str, Tolerance]:
        term_sizes = sizes(form.plan, self.includes)
        if not self.product:
            rounding = self._shared("arrays.map_arrays", "ROUNDING")[number]
            return {output: reduction(size, terms=rounding) for output, size in term_sizes.items()}
        (size,) = term_sizes.values()
        depth = Asking((form.plan.axes[self.product.left][1],), lambda extent: extent + 8)
        if number != _FLOAT:
            return normwise(self._shared("products.fused_product", "ELEMENTS")[number][3], size, depth)
        return product(size, depth)

    def _parameters(self) -> dict[str, object]:
        plan, parameters = self.plan, dict[str, object]({"tile": "auto"} if self.product else {})
        parameters |= self.program.scalars
        parameters |= {choice.parameter: choice.default for choice in plan.choices}
        parameters |= {"reduce": plan.chosen.hows[0]} if plan.chosen else {}
        return parameters | ({"k": plan.nearest.k} if plan.nearest else {})

    def _rules(self) -> list[Rule]:
        """Return the rules of scalars and choices."""
        plan = self.plan
        rules = [
            Rule(f"a finite {name}", Asking((name,), lambda value: abs(value) < float("inf"))) for name in plan.scalars
        ]
        rules += [_one_of(choice.parameter, tuple(choice.functions)) for choice in plan.choices]
        if plan.nearest:
            axis = plan.axes[plan.nearest.name][0]
            rules.append(Rule(f"1 <= k < {axis} and k <= 64", Asking((axis, "k"), lambda n, k: 1 <= k < n and k <= 64)))
        for width in (width for name in plan.clouds for width in plan.axes[name][1:]):
            rules.append(Rule(f"{width} from 1 to 8", Asking((width,), lambda extent: 1 <= extent <= 8)))
        return [*rules, *([_one_of("reduce", plan.chosen.hows)] if plan.chosen else [])]

    def _budgets(self) -> tuple[Budget, ...]:
        if self.plan.scans:
            return ()
        metric = "peer_ratio" if self.product else "bandwidth_share"
        return tuple(Budget(metric, at_least=0.85, label=label) for label in ("S1", "S2"))

    def _variants(self) -> dict[str, Variant]:
        program, main, variants = self.program, self.fused.main, dict[str, Variant]()
        for key, form in self.fused.forms.items():
            changes = {**self._of_form(form, _FLOAT), "golden": (), "budgets": (), "only_labels": ("S0",)}
            variants[key] = Variant(program.forms[key].meaning, **changes)
        if "float64" in program.numbers:
            variants["f64"] = self._in_double()
        if main.separate:
            variants[_VARIANT] = self._separate(main.separate)
        if program.by_hand:
            launch = self._launch(main, _FLOAT, program.by_hand)
            variants["by_hand"] = Variant("hand-written", source=self._by_hand, launch=launch)
        if product := self.product:
            for precision in product.precisions[1:]:
                variants |= self._on_tensor_cores(product, precision)
        return variants

    @property
    def _by_hand(self) -> Path:
        """The hand-written source."""
        return self.path.with_suffix(".cu")

    def _in_double(self) -> Variant:
        main, changes = self.fused.main, dict[str, object]()
        derived = main.code.host.derived("float64", self.includes)
        changes |= {"derived": derived} if derived else {}
        changes |= {} if "S1" in self.program.workloads else {"only_labels": tuple(self.program.workloads)}
        of_number = (
            lambda number: self._arguments(main, number),
            lambda number: self._launch(main, number),
            lambda number: self._tolerance(main, number),
        )
        return self._shared("arrays.map_arrays", "in_double")(*of_number, **changes)

    def _separate(self, form: SeparateForm) -> Variant:
        """Return the variant in which every stage is a separate launch."""
        scalars = (Scalar(name, _FLOAT) for name in self.plan.scalars)
        workspace = (*form.between_launches(_FLOAT), *form.scratch(_FLOAT, self.includes))
        return Variant(
            "every stage in a separate launch",
            arguments=(*self._arrays(self.plan, _FLOAT), *workspace, *scalars, *form.sizes),
            launch=form.launch(_FLOAT, self.includes),
            derived=form.derived(_FLOAT, self.includes),
            golden=(),
            budgets=(),
            before=self.fused.name,
        )

    def _on_tensor_cores(self, stage: Product, precision: str) -> dict[str, Variant]:
        """Return the variants with operands of that precision: the generated one, and the hand-written one for half."""
        program, main = self.program, self.fused.main
        changes = self._tensor_changes(stage, precision)
        entry = tensor_entry(main.plan, main.code.entry.partition("<")[0])
        changes["launch"] = self._launch(main, precision, ByHand(entry))
        meaning = f"tensor cores, {precision} operands, float32 sums"
        variants = {precision: Variant(meaning, **changes, peers=self._tensor_peers(precision))}
        if precision == "float16" and program.by_hand and program.by_hand.tensor:
            launch = self._launch(main, precision, ByHand(program.by_hand.tensor, program.by_hand.arguments))
            changes |= {"launch": launch, "source": self._by_hand, "peers": {}}
            variants[f"{precision}_by_hand"] = Variant("hand-written, on the tensor cores", **changes)
        return variants

    def _tensor_changes(self, stage: Product, precision: str) -> dict[str, Any]:
        (rows, depth), columns = self.plan.axes[stage.left], self.plan.axes[stage.right][1]
        edges = tuple(edge for edge in self.program.edges if "tile" not in edge)
        labels = (label for label in self.program.workloads if precision == "float16" or label != "S2")
        return {
            "arguments": self._arguments(self.fused.main, precision),
            "rules": (self._shared("tensor_cores.tensor_tile", "TENSOR_RULE"), *self._rules()),
            "tolerance": self._tolerance(self.fused.main, precision),
            "arithmetic": self._shared("products.fused_product", "arithmetic_of")(precision),
            "edges": (*edges, *self._shared("products.fused_product", "tensor_edges")(precision, rows, columns, depth)),
            "golden": (),
            "budgets": (),
            "requires": self._shared("tensor_cores.tensor_tile", "required"),
            "only_labels": tuple(labels),
        }

    def _tensor_peers(self, precision: str) -> Mapping[str, Peer | Callable[..., Any]]:
        """Return the peers with operands of that precision; PyTorch has no matrices of bits."""
        peers = self.program.peers
        if precision in AS_BITS:
            return {}
        if precision != "tf32":
            return peers
        in_tf32 = self.includes.peer("torch_peers", "in_tf32")
        whole = {name: as_peer(peer) for name, peer in peers.items()}
        return {
            name: replace(peer, call=in_tf32(peer.call)) for name, peer in whole.items() if peer.library.name == "torch"
        }


def _one_of(parameter: str, known: tuple[str, ...]) -> Rule:
    return Rule(f"{parameter} is one of {', '.join(known)}", Asking((parameter,), lambda value: value in known))
