"""From the programs of a catalogue to files: the source and the spec of each, the same bytes every time."""

import importlib.util
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import PrismBenchError, SpecError, unknown
from prism_bench.extensions.fusion import columns, neighbours, products, references, rows, sums
from prism_bench.extensions.fusion.layout import laid_out
from prism_bench.extensions.fusion.literals import literal, mapping
from prism_bench.extensions.fusion.plan import Plan, planned
from prism_bench.extensions.fusion.program import Program
from prism_bench.extensions.fusion.refusals import refuse
from prism_bench.extensions.fusion.separate import separated
from prism_bench.extensions.fusion.spec_text import Part, functions, peer_texts, rules, spec, tuple_of
from prism_bench.extensions.fusion.stages import REDUCTIONS, ColumnSums, Product, RowDots
from prism_bench.extensions.fusion.written import Written

PUBLIC = """Budget Chain Golden In InOut KernelSpec Launch Out Rule Scalar Scratch Size Variant Workload normwise
product reduction"""
SHARED = {  # what a spec may need of kernels/include, whatever its functions are
    "fused_product": ("ELEMENTS", "operand", "product_launch", "tensor_edges"), "gemm_tile": ("TILE_RULE",),
    "tensor_tile": ("TENSOR_RULE", "required"),
    "torch_peers": ("compiled", "in_tf32"), "host_plan": ("together",),
    "map_arrays": ("NUMBERS", "ROUNDING", "in_double", "launch_map", "sum_launch", "sum_scratch"),
}  # fmt: skip
_BY = "by `prism-bench fuse` from fusions/{}.py: change that and run it again."


@dataclass(frozen=True)
class Declaration:
    """A program where it is declared: `kernels/<family>/fusions/<name>.py`."""

    path: Path
    program: Program

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def folder(self) -> Path:
        """Where the generated files go."""
        return self.path.parents[1] / "generated"


def declarations(folder: Path, wanted: Iterable[str] = ()) -> list[Declaration]:
    """The programs of a catalogue, or those called so; SpecError or UsageError says what is wrong with which."""
    paths = {path.stem: path for path in sorted(folder.glob("*/fusions/*.py"))}
    for name in wanted:
        if name not in paths:
            raise unknown("program", name, paths)
    return [_load(paths[name]) for name in wanted or paths]


def _load(path):
    loading = importlib.util.spec_from_file_location(f"prism_bench_fusions.{path.parents[1].name}.{path.stem}", path)
    module = importlib.util.module_from_spec(loading)
    sys.modules[loading.name] = module
    try:
        loading.loader.exec_module(module)
    except PrismBenchError as error:
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:
        raise SpecError(f"{path}: {type(error).__name__}: {error}") from error
    program = getattr(module, "program", None)
    if not isinstance(program, Program):
        raise SpecError(f"{path}: defines no 'program = Program(...)'")
    return Declaration(path, program)


def write(plan: Plan, entry: str) -> Written:
    """The kernel of a plan, by the stage that walks its matrix; maps and reductions alone walk vectors."""
    kinds = {ColumnSums: columns, RowDots: rows, Product: products}
    kind = neighbours if plan.scans else kinds.get(type(plan.tiled), sums)
    if kind in (rows, products, neighbours) and "float64" in plan.program.numbers:
        stage = plan.tiled or plan.scans[0]
        raise SpecError(f"stage '{stage.name}' comes in float32 and, on tensor cores, less; not in float64")
    return kind.write(plan, entry)


def generated(declaration: Declaration) -> dict[Path, str]:
    """The text of every file of a program, by path."""
    program, name = declaration.program, declaration.name
    try:
        parts = {"": _part(program, None, name, "")}
        for key, form in program.forms.items():
            parts[key] = _part(program, form.stages, name, f"_{key}")
        source, text = _source(program, parts, name), _spec(program, parts, name)
    except SpecError as error:
        raise SpecError(f"{declaration.path}: {error}") from error
    return {declaration.folder / f"{name}.cu": source, declaration.folder / f"{name}.py": text}


def _part(program, stages, name, suffix):
    plan = planned(program, stages)
    refuse(plan)
    return Part(plan, write(plan, f"{name}_generated{suffix}"), suffix, None if suffix else separated(program, name))


def _source(program, parts, name):
    steps = _steps(parts)
    headers = dict.fromkeys(header for one in _written(parts) for header in one.headers)
    includes = "\n".join(f'#include "{header}"' for header in sorted(headers))
    kernels = "\n\n".join(f"{_stages(part)}{part.written.kernels}" for part in parts.values())
    if steps:
        kernels = "\n\n".join([kernels, "// Every stage in a launch of its own.", *(one.kernels for one in steps)])
    return "\n".join([f"// Written {_BY.format(name)}", includes, "", kernels, ""])


def _steps(parts):
    """The launches of the form that fuses nothing."""
    return [one.written for one in parts[""].separate.steps] if parts[""].separate else []


def _written(parts):
    return [*(part.written for part in parts.values()), *_steps(parts)]


def _stages(part):
    """What the kernel fuses, above it."""
    text = ", ".join(stage.name for stage in part.plan.stages)
    return f"// Stages: {text}.\n"


def _spec(program, parts, name):
    main = parts[""]
    tables = [_table(choice) for choice in main.plan.choices]
    if main.plan.chosen:
        tables.append(f"REDUCE = {mapping({how: REDUCTIONS[how] for how in main.plan.chosen.hows})}")
    edges = f"EDGES = {literal(program.edges)}" if main.is_product else ""
    held = f"RULES = {tuple_of(rules(main))}" if main.is_product else ""
    by_hand = f'BY_HAND = Path(__file__).parents[1] / "{name}.cu"' if program.by_hand else ""
    body = "\n\n\n".join(
        one for one in ("\n".join(filter(None, [by_hand, *tables, held, edges])), *map(functions, parts.values()),
                        peer_texts(program), spec(program, parts, name)) if one
    )  # fmt: skip
    head = f'"""{program.summary}\n\nWritten {_BY.format(name)}\n"""'
    apart = "\n\n\n" if body.startswith("def ") else "\n\n"
    return f"{head}\n\n{_imports(program, parts, body)}{apart}{laid_out(body)}\n"


def _table(choice):
    lines = [
        f'    "{name}": ("{one.functor}", {one.value.name}, {one.stretch}, {one.at_zero}),'
        for name, one in choice.functions.items()
    ]
    return "\n".join([f"{choice.parameter.upper()} = {{  # functor, float64 form, stretch, size at 0", *lines, "}"])


def _imports(program, parts, body):
    """What the body names, sorted as the linter wants it."""
    shared = {module: set(names) for module, names in SHARED.items()}
    for used in [*(references.shared(part.plan) for part in parts.values()), *(one.shared for one in _written(parts))]:
        for module, names in used.items():
            shared.setdefault(module, set()).update(names)
    for one in program.inputs:
        if one.fill:
            shared.setdefault(one.fill.module, set()).add(one.fill.name)
    lines = ["from pathlib import Path", ""] if "Path(" in body else []
    lines += ["import numpy as np"] if "np." in body else []
    for module, names in sorted(shared.items()):
        lines += _import(f"prism_bench_catalogue.include.{module}", sorted(names, key=_order), body)
    return "\n".join([*lines, "", *_import("prism_bench", PUBLIC.split(), body)])


def _order(name):
    """Constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _import(module, names, body):
    used = [name for name in names if re.search(rf"\b{name}\b", body)]
    line = f"from {module} import {', '.join(used)}"
    if len(line) > 120:
        line = f"from {module} import (\n{''.join(f'    {name},{chr(10)}' for name in used)})"
    return [line] if used else []
