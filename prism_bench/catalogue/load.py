"""Load one spec file, and check a spec by building all of its cases."""

import ast
from dataclasses import replace
from pathlib import Path

from prism_bench.catalogue.catalogue import Problem
from prism_bench.catalogue.importer import BUILT_IN, execute
from prism_bench.catalogue.listing import edge_cases, timed_cases
from prism_bench.catalogue.project_source import placed
from prism_bench.errors import PrismBenchError, SpecError
from prism_bench.io.files import family_of
from prism_bench.spec import byname
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec


def load_spec(path: Path, module: str) -> KernelSpec:
    """Return the spec that the file defines, imported as `module`; raise a SpecError if it has none, or no source.

    The source is the file's neighbour with the ending `.cu`, unless the spec names another one: a path, or a text that
    is relative to the spec's folder (`source="../src/softmax.cu"`).
    """
    spec = getattr(execute(path, module), "spec", None)
    if not isinstance(spec, KernelSpec):
        raise SpecError("defines no 'spec = KernelSpec(...)'")
    return replace(placed(spec, path), name=path.stem, family=family_of(path), file=path)


def require_definition(path: Path, name: str, what: str) -> None:
    """Raise a SpecError where the file's text does not define `name` at its top level with this package.

    Nothing is run: a folder of kernels may hold a project's scripts. A file whose text cannot be parsed raises that.
    """
    names: set[str] = set()
    is_ours = False
    nodes: list[ast.AST] = [ast.parse(path.read_bytes(), str(path))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            is_ours |= isinstance(node, ast.ImportFrom) and node.level > 0
            is_ours |= any(module.partition(".")[0] in ("prism_bench", BUILT_IN) for module in modules)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    if name not in names:
        raise SpecError(f"defines no '{what}'")
    if not is_ours:
        raise SpecError(f"defines no '{what}': it imports nothing of prism_bench, and was not run")


def check_spec(spec: KernelSpec) -> None:
    """Build every case once, so that a contradiction is found here and not during a run."""
    unasked = sorted(set(spec.tune.values) - set(spec.tunable)) if spec.tune else ()
    if unasked:
        raise SpecError(f"tune: neither the launch nor a derived size asks for '{unasked[0]}'")
    variants = [(spec.with_variant(variant), variant) for variant in spec.variants]
    for one, variant in [(spec, None), *variants]:
        _build_all(one, variant)


def check_variant(spec: KernelSpec, variant: str) -> None:
    """Build every case of one variant once."""
    _build_all(spec.with_variant(variant), variant)


def _build_all(spec: KernelSpec, variant: str | None) -> None:
    for case in [*timed_cases(spec, variant), *edge_cases(spec, variant)]:
        _build(case)


def _build(case: Case) -> None:
    """Compute all that follows from spec and workload alone."""
    for argument in case.spec.arguments:
        _ = case.sizes.shape(argument.name) if isinstance(argument, Array) else argument.value(case.axes)
    _ = case.sizes.bytes_moved, case.sizes.allocated_bytes, case.sizes.flops
    case.correctness.check_golden()
    case.plan.require_default()


def problem_of(path: Path, error: BaseException) -> Problem:
    """Return what a spec file's error means to its author, with the line for errors that are not ours."""
    if isinstance(error, PrismBenchError):
        return Problem(path, str(error))
    line = byname.line_in(error, str(path)) or (error.lineno if isinstance(error, SyntaxError) else None)
    return Problem(path, f"line {line or '?'}: {type(error).__name__}: {error}")
