"""The spec beside a generated source, as text: the functions of each form, then the spec itself."""

import inspect
from dataclasses import dataclass

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion import references, separate_text
from prism_bench.extensions.fusion.literals import literal, mapping
from prism_bench.extensions.fusion.plan import Plan
from prism_bench.extensions.fusion.products import tensor_entry
from prism_bench.extensions.fusion.program import Program
from prism_bench.extensions.fusion.separate import Separate
from prism_bench.extensions.fusion.stages import AS_BITS, Product
from prism_bench.extensions.fusion.written import Written


@dataclass(frozen=True)
class Part:
    """One form of a program: its plan, what its kind of launch wrote, the suffix of its functions, and its steps in
    separate launches where it has them.
    """

    plan: Plan
    written: Written
    suffix: str = ""
    separate: Separate | None = None

    @property
    def is_product(self) -> bool:
        return isinstance(self.plan.tiled, Product)


def functions(part: Part) -> str:
    """The functions of one form: arguments, launch, reference, sizes, tolerance."""
    plan, suffix = part.plan, part.suffix
    sizes = references.sizes(plan, suffix)
    kind = "precision" if part.is_product else "dtype"
    launch = f'def launch{suffix}({kind}, entry="{part.written.entry}", passed=None):'
    return "\n\n\n".join([
        _arguments(part, kind),
        f"{launch}\n    {part.written.launch}",
        references.reference(plan, f"reference{suffix}"),
        *(text for _, text in sizes.values()),
        _tolerance(part, {output: name for output, (name, _) in sizes.items()}),
        *(separate_text.functions(part.separate, _given(part), plan.scalars) if part.separate else ()),
    ])  # fmt: skip


def _given(part):
    """Inputs and outputs."""
    plan, dtype = part.plan, "" if part.is_product else ", dtype"
    outputs = [
        f'Out("{name}", "{" ".join(plan.axes[name]) or 1}"{dtype})'
        for name in plan.outputs
        if name not in plan.overwritten
    ]
    return [_input(part, one) for one in plan.inputs], outputs


def _arguments(part, kind):
    plan, (inputs, outputs) = part.plan, _given(part)
    number = "" if part.is_product else ", dtype"
    scalars = [f'Scalar("{name}"{number})' for name in plan.scalars]
    scratch, given = part.written.scratch, ["*inputs", *(["*outputs"] if outputs else [])]
    return "\n".join([
        f"def arguments{part.suffix}({kind}):",
        f"    inputs = {tuple_of(inputs)}",
        *([f"    outputs = {tuple_of(outputs)}"] if outputs else []),
        f"    return {tuple_of([*given, *scratch, *scalars, *part.written.sizes])}",
    ])  # fmt: skip


def tuple_of(parts: list[str]) -> str:
    """A tuple of what the parts say."""
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _input(part, one):
    if part.is_product and one.name in (part.plan.tiled.left, part.plan.tiled.right):
        return f'operand("{one.name}", "{one.shape}", precision)'
    word = "InOut" if one.name in part.plan.overwritten else "In"
    fill = f", fill={one.fill.name}" if one.fill else ""
    return f'{word}("{one.name}", "{one.shape}"{"" if part.is_product else ", dtype"}{fill})'


def _tolerance(part, sizes):
    if part.is_product:
        depth = part.plan.axes[part.plan.tiled.left][1]
        (name,) = sizes.values()
        return "\n".join([
            f"def tolerance{part.suffix}(precision):",
            '    if precision != "float32":',
            "        return normwise(ELEMENTS[precision][3])",
            f"    return product({name}, depth=lambda {depth}: {depth} + 8)",
        ]) if len(part.plan.tiled.precisions) > 1 else "\n".join([
            f"def tolerance{part.suffix}(precision):",
            f"    return product({name}, depth=lambda {depth}: {depth} + 8)",
        ])  # fmt: skip
    each = [f'"{output}": reduction({name}, terms=ROUNDING[dtype])' for output, name in sizes.items()]
    return f"def tolerance{part.suffix}(dtype):\n    return {{{', '.join(each)}}}"


def spec(program: Program, parts: dict[str, Part], name: str) -> str:
    """`spec = KernelSpec(...)` with its variants."""
    main = parts[""]
    first = '"float32"'
    fields = {
        "entry": f'"{name}_generated"',
        "arguments": f"arguments({first})",
        "parameters": mapping(_parameters(main)),
        "derived": main.written.derived.replace("dtype", first) or "{}",
        "rules": "(TILE_RULE, *RULES)" if main.is_product else tuple_of(rules(main)),
        "launch": f"launch({first})",
        "reference": "reference",
        "tolerance": f"tolerance({first})",
        "peers": _peers(program),
        "flops": references.flops(main.plan),
        "workloads": mapping(program.workloads),
        "edges": "EDGES" if main.is_product else literal(program.edges),
        "golden": literal(program.golden),
        "aliases": literal(program.aliases),
        "replaces": literal(program.replaces),
    }
    if main.separate:
        fields["chains"] = separate_text.chain(name, main.separate)
    if main.plan.scans:
        fields["traffic_factor"] = "None"
    variants = list(_variants(program, parts))
    kept = {key: value for key, value in fields.items() if value not in ("{}", "()", "")}
    return "\n".join([
        "spec = KernelSpec(",
        *(f"    {key}={value}," for key, value in kept.items()),
        f"    budgets={_budgets(main)},",
        *(["    variants={", *variants, "    },"] if variants else []),
        ")",
    ])  # fmt: skip


def _peers(program, form="{}"):
    """The library calls, and those of them that torch.compile makes another of."""
    made = {peer: function.__name__ for peer, function in program.peers.items()}
    made |= {f"{peer}_compiled": f"compiled({made[peer]})" for peer in program.compiled}
    made = {peer: form.format(call) for peer, call in made.items()}
    return f"{{{', '.join(f'{literal(peer)}: {call}' for peer, call in made.items())}}}"


def _budgets(part):
    if part.plan.scans:
        return "()"
    metric = '"peer_ratio"' if part.is_product else '"bandwidth_share"'
    return f'tuple(Budget({metric}, at_least=0.85, label=label) for label in ("S1", "S2"))'


def _parameters(part):
    chosen = {choice.parameter: choice.default for choice in part.plan.choices}
    reduce = {"reduce": part.plan.chosen.hows[0]} if part.plan.chosen else {}
    k = {"k": part.plan.nearest.k} if part.plan.nearest else {}
    return {**({"tile": "auto"} if part.is_product else {}), **part.plan.program.scalars, **chosen, **reduce, **k}


def rules(part: Part) -> list[str]:
    """What scalars and choices must keep."""
    found = [f'Rule("a finite {name}", lambda {name}: abs({name}) < float("inf"))' for name in part.plan.scalars]
    for choice in part.plan.choices:
        known, parameter = ", ".join(choice.functions), choice.parameter
        found.append(f'Rule("{parameter} is one of {known}", lambda {parameter}: {parameter} in {parameter.upper()})')
    if part.plan.nearest:
        axis = part.plan.axes[part.plan.nearest.name][0]
        found.append(f'Rule("1 <= k < {axis} and k <= 64", lambda {axis}, k: 1 <= k < {axis} and k <= 64)')
    for name in part.plan.clouds:
        for width in part.plan.axes[name][1:]:
            found.append(f'Rule("{width} from 1 to 8", lambda {width}: 1 <= {width} <= 8)')
    if part.plan.chosen:
        hows = part.plan.chosen.hows
        found.append(f'Rule("reduce is one of {", ".join(hows)}", lambda reduce: reduce in REDUCE)')
    return found


def _variants(program, parts):
    for key, form in program.forms.items():
        part = parts[key]
        yield from _variant(key, form.meaning, {
            "arguments": f'arguments{part.suffix}("float32")', "launch": f'launch{part.suffix}("float32")',
            "reference": f"reference{part.suffix}", "tolerance": f'tolerance{part.suffix}("float32")',
            "flops": references.flops(part.plan), "golden": "()", "budgets": "()", "only_labels": '("S0",)',
        })  # fmt: skip
    main = parts[""]
    if "float64" in program.numbers:
        changes = {"derived": main.written.derived.replace("dtype", '"float64"')} if main.written.derived else {}
        if "S1" not in program.workloads:
            changes["only_labels"] = literal(tuple(program.workloads))
        given = ", ".join(["arguments", "launch", "tolerance", *(f"{name}={value}" for name, value in changes.items())])
        yield f'        "f64": in_double({given}),'
    if main.separate:
        separate = separate_text.changes(main.separate, '"float32"')
        yield from _variant(separate_text.VARIANT, "every stage in a launch of its own", separate)
    if program.by_hand:
        yield from _variant("by_hand", "written by hand", _by_hand(program, '"float32"', program.by_hand.entry))
    for precision in main.plan.tiled.precisions[1:] if main.is_product else ():
        yield from _on_tensor_cores(program, main, precision)


def _variant(key, meaning, changes):
    yield f'        "{key}": Variant('
    yield f'            "{meaning}",'
    yield from (f"            {name}={value}," for name, value in changes.items())
    yield "        ),"


def _by_hand(program, kind, entry):
    passed = f", {literal(program.by_hand.arguments)}" if program.by_hand.arguments else ""
    return {"source": "BY_HAND", "launch": f'launch({kind}, "{entry}"{passed})'}


def _on_tensor_cores(program, part, precision):
    entry = tensor_entry(part.plan, part.written.entry.partition("<")[0])
    small, forms = precision != "float16", {"tf32": "in_tf32({})"}
    rows, depth = part.plan.axes[part.plan.tiled.left]
    sizes = f'"{rows}", "{part.plan.axes[part.plan.tiled.right][1]}", "{depth}"'
    changes = {
        "arguments": f'arguments("{precision}")', "rules": "(TENSOR_RULE, *RULES)",
        "launch": f'launch("{precision}", "{entry}")', "tolerance": f'tolerance("{precision}")',
        "arithmetic": '"tensor"',
        "peers": _peers(program, forms.get(precision, "{}")) if precision not in AS_BITS else "{}",
        "edges": f'(*(edge for edge in EDGES if "tile" not in edge), *tensor_edges("{precision}", {sizes}))',
        "golden": "()", "budgets": "()", "requires": "required",
        "only_labels": literal(tuple(label for label in program.workloads if not small or label != "S2")),
    }  # fmt: skip
    yield from _variant(precision, f"tensor cores, {precision} operands, float32 sums", changes)
    if not small and program.by_hand and program.by_hand.tensor:
        by_hand = _by_hand(program, f'"{precision}"', program.by_hand.tensor)
        yield from _variant(
            f"{precision}_by_hand", "written by hand, on the tensor cores", {**changes, **by_hand, "peers": "{}"}
        )


def peer_texts(program: Program) -> str:
    """The text of the peers' functions, which must stand by themselves."""
    texts = []
    for name, function in program.peers.items():
        free = inspect.getclosurevars(function)
        if function.__name__ == "<lambda>" or free.globals or free.nonlocals:
            raise SpecError(f"peer '{name}' must be a function of its own that names nothing outside itself")
        texts.append(inspect.getsource(function).rstrip())
    return "\n\n\n".join(texts)
