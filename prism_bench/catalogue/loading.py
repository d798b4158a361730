"""Loading of specs: find every spec of a folder, import it with its forms, and check it by building its cases."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from prism_bench.catalogue.catalogue import Catalogue, KeptChecks, Problem, edge_cases, timed_cases
from prism_bench.catalogue.importer import BUILT_IN, catalogue_package, execute, module_name
from prism_bench.catalogue.project_reference import with_project_references
from prism_bench.catalogue.project_source import placed
from prism_bench.compilation.languages.language import Placeholder, language, language_in, reading_builtins
from prism_bench.errors import PrismBenchError, SpecError, UsageError
from prism_bench.io import project
from prism_bench.io.files import GENERATED, SHARED, default_folder, family_of
from prism_bench.spec import arguments
from prism_bench.spec.arguments import Array
from prism_bench.spec.kernel import KernelSpec, Variant, no_launch
from prism_bench.spec.workload import Edge, Workload


def discover(folder: Path | str | None = None) -> Catalogue:
    """Return the catalogue of a folder, the built-in one by default.

    A broken pair becomes a problem, not an exception; raise UsageError for a missing folder.
    """
    root = Path(folder) if folder else default_folder()
    if not root.is_dir():
        raise UsageError(f"no catalogue at {root}: a catalogue is a folder of <family>/<name>.cu and <name>.py")
    checks = KeptChecks(root)
    specs = _Specs(checks.has_passed(), root.resolve() == default_folder().resolve())
    package = catalogue_package(root)
    for path in _pairs(root, "py"):
        try:
            if not specs.is_built_in:
                require_definition(path, "spec", "spec = KernelSpec(...)")
            spec = load_spec(path, module_name(package, root, path))
            specs.add(spec)
            specs.add_forms(spec, path, partial(module_name, package, root))
        except (Exception, SystemExit) as error:  # no error of a spec may stop the other kernels
            specs.problems.append(_problem_of(path, error))
    for path in sorted(root.glob("*/*.*.py")):
        name = path.name.partition(".")[0]
        if language_in(path) and not (path.parent / f"{name}.py").is_file():
            specs.problems.append(Problem(path, f"has no spec {name}.py next to it"))
    specs.problems += list(_sources_without_spec(root, specs))
    aliases = _aliases(specs)
    if not specs.problems:
        checks.keep()
    return Catalogue(root, specs.kernels, tuple(specs.problems), aliases)


@cache
def built_in() -> Catalogue:
    """Return the built-in catalogue, which a process reads once; callers must not change it."""
    return discover()


def of_project(folder: Path | None = None) -> Catalogue:
    """Return the catalogue of a folder, by default the current project's, else the built-in catalogue.

    Its budgets are in the folder that the project configures. Raise UsageError for a missing folder or an invalid
    configuration.
    """
    configuration = project.current()
    configured = configuration.catalogue if configuration and folder is None else None
    catalogue = discover(folder or (project.relative(configured) if configured else None))
    if configuration and configuration.has(catalogue.folder):
        budgets = configuration.budgets
        return replace(catalogue, budgets=project.relative(budgets) if budgets else None)
    return catalogue


def load_module(root: Path, path: Path) -> ModuleType:
    """Return the module of one spec file of the catalogue `root`; errors of the file are raised."""
    return execute(path, module_name(catalogue_package(root), root, path))


@dataclass
class _Specs:
    """Specs by name, and problems, in the order of the files. The cases of a `checked` catalogue are not built.

    Files of catalogues other than the built-in one are run only if their text defines a spec or variant.
    """

    checked: bool = False
    is_built_in: bool = False
    kernels: dict[str, KernelSpec] = field(default_factory=dict[str, KernelSpec])
    problems: list[Problem] = field(default_factory=list[Problem])

    def add(self, spec: KernelSpec) -> None:
        """Add a spec; raise an error if it contradicts itself or another spec."""
        if spec.name in self.kernels:
            raise SpecError(f"kernel '{spec.name}' is in family '{self.kernels[spec.name].family}' too")
        if not self.checked:
            check_spec(spec)
        self.kernels[spec.name] = spec

    def add_forms(self, spec: KernelSpec, path: Path, module_of: Callable[[Path], str]) -> None:
        """Add the forms in other languages next to a spec's file; a broken form is a problem, the others are added."""
        for file in sorted(path.parent.glob(f"{path.stem}.*.py")):
            name = language_in(file)
            if name is None:
                continue
            try:
                if not self.is_built_in:
                    require_definition(file, "variant", "variant = Variant(...)")
                spec = _with_form(spec, name, file, module_of(file))
                if not self.checked:
                    check_variant(spec, name)
                self.kernels[spec.name] = spec
            except (Exception, SystemExit) as error:  # no error of a file may stop the others
                self.problems.append(_problem_of(file, error))
                spec = self.kernels[spec.name]


def _pairs(root: Path, suffix: str) -> list[Path]:
    """Return files of that suffix in the family folders, then generated files.

    Hidden folders belong to editors, families share `include` and `peers`, and `__init__.py` is for type checkers.
    """
    paths = [*sorted(root.glob(f"*/*.{suffix}")), *sorted(root.glob(f"*/{GENERATED}/*.{suffix}"))]
    families = [path for path in paths if family_of(path) not in SHARED and path.name != "__init__.py"]
    return [path for path in families if not family_of(path).startswith(".") and not language_in(path)]


def _sources_without_spec(root: Path, specs: _Specs) -> Iterator[Problem]:
    """Yield a problem for each source that no spec uses and after which no spec or broken spec is named."""
    variants = [variant for spec in specs.kernels.values() for variant in spec.variants.values()]
    used: set[object] = {spec.source for spec in specs.kernels.values()}
    used |= {variant.changes.get("source") for variant in variants}
    names = {(spec.family, spec.name) for spec in specs.kernels.values()}
    names |= {(family_of(problem.path), problem.path.stem) for problem in specs.problems}
    for path in _pairs(root, "cu"):
        if path not in used and (family_of(path), path.stem) not in names:
            yield Problem(path, f"has no spec {path.stem}.py next to it")


def _aliases(specs: _Specs) -> dict[str, str]:
    """Return the kernel's name by alias; an alias that is taken is a problem."""
    aliases: dict[str, str] = {}
    for spec in specs.kernels.values():
        for alias in spec.aliases:
            if alias in specs.kernels or alias in aliases:
                specs.problems.append(Problem(spec.file or Path(spec.name), f"alias '{alias}' is taken"))
            else:
                aliases[alias] = spec.name
    return aliases


# One spec: load it, and check it by building all of its cases.


def load_spec(path: Path, module: str) -> KernelSpec:
    """Return the spec that the file defines, imported as `module`; raise SpecError without a spec or its source.

    The source is the file with the suffix `.cu` next to it, unless the spec names another file: a path, or a text
    relative to the spec's folder (`source="../src/softmax.cu"`).
    """
    spec = getattr(execute(path, module), "spec", None)
    if not isinstance(spec, KernelSpec):
        raise SpecError("defines no 'spec = KernelSpec(...)'")
    return replace(with_project_references(placed(spec, path), path), name=path.stem, family=family_of(path), file=path)


def require_definition(path: Path, name: str, what: str) -> None:
    """Raise SpecError if the file's text does not define `name` at its top level and import this package.

    Nothing is run, because a folder of kernels may have a project's scripts. A text that cannot be parsed raises
    SyntaxError.
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
    """Build every case once, so that contradictions are found now and not during a run."""
    unused = sorted(set(spec.tune.values) - set(spec.tunable)) if spec.tune else ()
    if unused:
        raise SpecError(f"tune: neither the launch nor a derived size asks for '{unused[0]}'")
    variants = [(spec.with_variant(variant), variant) for variant in spec.variants]
    for form, variant in [(spec, None), *variants]:
        _build_all(form, variant)


def check_variant(spec: KernelSpec, variant: str) -> None:
    """Build every case of one variant once."""
    _build_all(spec.with_variant(variant), variant)


def _build_all(spec: KernelSpec, variant: str | None) -> None:
    """Compute everything that spec and workload determine."""
    for case in [*timed_cases(spec, variant), *edge_cases(spec, variant)]:
        for argument in case.spec.arguments:
            _ = case.sizes.shape(argument.name) if isinstance(argument, Array) else argument.value(case.axes)
        _ = case.sizes.bytes_moved, case.sizes.allocated_bytes, case.sizes.flops
        case.correctness.check_golden()
        case.plan.require_default()


def _problem_of(path: Path, error: BaseException) -> Problem:
    """Return an error of a spec file as a problem, with the line if the error is not ours."""
    if isinstance(error, PrismBenchError):
        return Problem(path, str(error))
    line = arguments.line_in(error, str(path)) or (error.lineno if isinstance(error, SyntaxError) else None)
    return Problem(path, f"line {line or '?'}: {type(error).__name__}: {error}")


# Forms of a kernel in other languages: the files `softmax.<language>.py` next to a spec, each a variant.
#
# Such a file defines its kernel and `variant = Variant("meaning", entry=..., launch=...)` with the differences from the
# spec, as variants within the spec do. It has the spec's edges, without the values that they pin of the spec's tuning
# space, and its own `more_edges`. It is read without importing its compiler.

# Fields that a form does not inherit from the spec, because they belong to the spec's CUDA C++.
_NOT_INHERITED: Mapping[str, Any] = {
    "tune": None, "options": (), "requires": None, "budgets": (), "cards": (), "callable": None,
}  # fmt: skip

_MORE_EDGES = "more_edges"  # of a form; specs have no such field


def _with_form(spec: KernelSpec, name: str, path: Path, module: str) -> KernelSpec:
    """Return the spec with another variant, named after its language; raise SpecError if the file declares none."""
    if name in spec.variants:
        raise SpecError(f"{spec.name} has a variant '{name}' already")
    declared = getattr(execute(path, module, reading_builtins(language(name), name)), "variant", None)
    if not isinstance(declared, Variant):
        raise SpecError("defines no 'variant = Variant(...)'")
    of_call = {"launch": no_launch, "entry": ""} if "callable" in declared.changes else {}
    changes = {**_NOT_INHERITED, **of_call, **declared.changes, "source": path, "language": name}
    changes["edges"] = (*changes.get("edges", _unpinned(spec)), *changes.pop(_MORE_EDGES, ()))
    for field_name, value in changes.items():
        if isinstance(value, Placeholder):
            raise SpecError(f"variant: {field_name} comes from a module that is not imported here; name it as text")
    return replace(spec, variants={**spec.variants, name: Variant(declared.meaning, **changes)})


def _unpinned(spec: KernelSpec) -> tuple[Workload | Edge, ...]:
    """Return the spec's edges, each once, without values that they pin of its tuning space: a form has its own."""
    tuned = set(spec.tune.values) if spec.tune else set[str]()

    def free(workload: Workload) -> Workload:
        return Workload(**{axis: value for axis, value in workload.items() if axis not in tuned})

    edges = (
        replace(edge, workload=free(edge.workload)) if isinstance(edge, Edge) else free(edge) for edge in spec.edges
    )
    return tuple(dict.fromkeys(edges))
