"""Loading of specs: find every spec of a folder, import it, and check it by building its cases."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from prism_bench.catalogue.catalogue import Catalogue, KeptChecks, Problem, edge_cases, timed_cases
from prism_bench.catalogue.importer import BUILT_IN, catalogue_package, execute, module_name
from prism_bench.catalogue.project_source import placed
from prism_bench.compilation.languages.language import Placeholder, language, language_in, reading_builtins
from prism_bench.errors import PrismBenchError, SpecError, UsageError
from prism_bench.io import project
from prism_bench.io.files import GENERATED, SHARED, default_folder, family_of
from prism_bench.spec import arguments
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec, Variant, no_launch
from prism_bench.spec.workload import Edge, Workload

# Forms of a kernel in other languages: the files `softmax.<language>.py` next to a spec, each a variant.
#
# Such a file defines its kernel and `variant = Variant("meaning", entry=..., launch=...)` with what differs from the
# spec, as variants within the spec do. It has the spec's edges, without what they pin of the spec's
# tuning space, and its own `more_edges`. It is read without importing its compiler.

# What an implementation does not inherit from the spec, whose CUDA C++ it belongs to.
_OWN: Mapping[str, Any] = {"tune": None, "options": (), "requires": None, "budgets": (), "cards": (), "callable": None}

_MORE_EDGES = "more_edges"  # of a form, which no spec has as a field


def implementations(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield language and file of each implementation next to the spec file."""
    for file in sorted(path.parent.glob(f"{path.stem}.*.py")):
        name = language_in(file)
        if name is not None:
            yield name, file


def _with_implementation(spec: KernelSpec, name: str, path: Path, module: str) -> KernelSpec:
    """Return the spec with a variant more, called as its language; raise a SpecError where the file declares none."""
    if name in spec.variants:
        raise SpecError(f"{spec.name} has a variant '{name}' already")
    declared = getattr(execute(path, module, reading_builtins(language(name), name)), "variant", None)
    if not isinstance(declared, Variant):
        raise SpecError("defines no 'variant = Variant(...)'")
    own = _OWN if "callable" not in declared.changes else {**_OWN, "launch": no_launch, "entry": ""}
    changes = {**own, **declared.changes, "source": path, "language": name}
    changes["edges"] = (*changes.get("edges", _unpinned(spec)), *changes.pop(_MORE_EDGES, ()))
    _refuse_placeholders(changes)
    return replace(spec, variants={**spec.variants, name: Variant(declared.meaning, **changes)})


def _unpinned(spec: KernelSpec) -> tuple[Workload | Edge, ...]:
    """Return the spec's edges, each once, without what they pin of the spec's tuning space: a form has its own."""
    tuned = set(spec.tune.values) if spec.tune else set[str]()

    def free(workload: Workload) -> Workload:
        return Workload(**{axis: value for axis, value in workload.items() if axis not in tuned})

    edges = (replace(one, workload=free(one.workload)) if isinstance(one, Edge) else free(one) for one in spec.edges)
    return tuple(dict.fromkeys(edges))


def _refuse_placeholders(changes: Mapping[str, object]) -> None:
    """Raise a SpecError where a field of the variant is something of the language's modules."""
    for name, value in changes.items():
        if isinstance(value, Placeholder):
            raise SpecError(f"variant: {name} comes from a module that is not imported here; name it as text")


# Load one spec file, and check a spec by building all of its cases.


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


def _problem_of(path: Path, error: BaseException) -> Problem:
    """Return what a spec file's error means to its author, with the line for errors that are not ours."""
    if isinstance(error, PrismBenchError):
        return Problem(path, str(error))
    line = arguments.line_in(error, str(path)) or (error.lineno if isinstance(error, SyntaxError) else None)
    return Problem(path, f"line {line or '?'}: {type(error).__name__}: {error}")


# Find every spec of a catalogue folder, and name the files that cannot be used.


@dataclass
class _Found:
    """Specs by name, and problems, in the order in which they were found. Of a `checked` catalogue no case is built.

    Files of any catalogue but the built-in one are run only where their text defines what is looked for.
    """

    checked: bool = False
    is_built_in: bool = False
    kernels: dict[str, KernelSpec] = field(default_factory=dict[str, KernelSpec])
    problems: list[Problem] = field(default_factory=list[Problem])

    def add(self, spec: KernelSpec) -> None:
        """Add a spec that contradicts neither itself nor the others; raise an error otherwise."""
        if spec.name in self.kernels:
            raise SpecError(f"kernel '{spec.name}' is in family '{self.kernels[spec.name].family}' too")
        if not self.checked:
            check_spec(spec)
        self.kernels[spec.name] = spec

    def add_forms(self, spec: KernelSpec, path: Path, module_of: Callable[[Path], str]) -> None:
        """Add the forms in other languages next to a spec's file, each by itself: a broken one is a problem."""
        for name, file in implementations(path):
            try:
                if not self.is_built_in:
                    require_definition(file, "variant", "variant = Variant(...)")
                spec = _with_implementation(spec, name, file, module_of(file))
                if not self.checked:
                    check_variant(spec, name)
                self.kernels[spec.name] = spec
            except (Exception, SystemExit) as error:  # whatever a file raises must not stop the others
                self.problems.append(_problem_of(file, error))
                spec = self.kernels[spec.name]


def discover(folder: Path | str | None = None) -> Catalogue:
    """Return the catalogue of a folder, the built-in one by default.

    A broken pair becomes a problem, never an exception; a missing folder is a UsageError.
    """
    root = Path(folder) if folder else default_folder()
    if not root.is_dir():
        raise UsageError(f"no catalogue at {root}: a catalogue is a folder of <family>/<name>.cu and <name>.py")
    checks = KeptChecks(root)
    found = _Found(checks.has_passed(), root.resolve() == default_folder().resolve())
    package = catalogue_package(root)
    for path in _pairs(root, "py"):
        try:
            if not found.is_built_in:
                require_definition(path, "spec", "spec = KernelSpec(...)")
            spec = load_spec(path, module_name(package, root, path))
            found.add(spec)
            found.add_forms(spec, path, partial(module_name, package, root))
        except (Exception, SystemExit) as error:  # whatever a spec raises must not stop the other kernels
            found.problems.append(_problem_of(path, error))
    found.problems += list(_forms_without_spec(root, found))
    found.problems += list(_sources_without_spec(root, found))
    aliases = _aliases(found)
    if not found.problems:
        checks.keep()
    return Catalogue(root, found.kernels, tuple(found.problems), aliases)


@cache
def built_in() -> Catalogue:
    """Return the built-in catalogue, which a process reads once, for all that only look at it."""
    return discover()


def of_project(folder: Path | None = None) -> Catalogue:
    """Return the catalogue of a folder, by default that of the current project, else the built-in one.

    Its budgets are where the project configures them. Raise a UsageError for a missing folder or a configuration that
    is not right.
    """
    configuration = project.current()
    configured = configuration.catalogue if configuration and folder is None else None
    found = discover(folder or (project.relative(configured) if configured else None))
    if configuration and configuration.has(found.folder):
        budgets = configuration.budgets
        return replace(found, budgets=project.relative(budgets) if budgets else None)
    return found


def load_module(root: Path, path: Path) -> ModuleType:
    """Return the module of one spec file of the catalogue `root`; what the file raises is raised."""
    return execute(path, module_name(catalogue_package(root), root, path))


def _pairs(root: Path, suffix: str) -> list[Path]:
    """Return files of that suffix in the family folders, then the generated ones.

    Hidden folders belong to editors, families share `include` and `peers`, and `__init__.py` is for type checkers.
    """
    paths = [*sorted(root.glob(f"*/*.{suffix}")), *sorted(root.glob(f"*/{GENERATED}/*.{suffix}"))]
    families = [path for path in paths if family_of(path) not in SHARED and path.name != "__init__.py"]
    return [path for path in families if not family_of(path).startswith(".") and not language_in(path)]


def _forms_without_spec(root: Path, found: _Found) -> Iterator[Problem]:
    """Yield a problem for each form in another language whose spec is not there."""
    for path in sorted(root.glob("*/*.*.py")):
        name = path.name.partition(".")[0]
        if language_in(path) and not (path.parent / f"{name}.py").is_file():
            yield Problem(path, f"has no spec {name}.py next to it")


def _sources_without_spec(root: Path, found: _Found) -> Iterator[Problem]:
    """Yield a problem for each source that neither a spec uses nor a spec or broken spec is named like."""
    used = {source for spec in found.kernels.values() for source in _sources(spec)}
    names = {(spec.family, spec.name) for spec in found.kernels.values()}
    names |= {(family_of(problem.path), problem.path.stem) for problem in found.problems}
    for path in _pairs(root, "cu"):
        if path not in used and (family_of(path), path.stem) not in names:
            yield Problem(path, f"has no spec {path.stem}.py next to it")


def _sources(spec: KernelSpec) -> Iterator[object]:
    """Yield the source files of a spec and its variants."""
    yield spec.source
    for variant in spec.variants.values():
        yield variant.changes.get("source")


def _aliases(found: _Found) -> dict[str, str]:
    """Return the name of the kernel that each alias means; one that is taken already is a problem."""
    aliases: dict[str, str] = {}
    for spec in found.kernels.values():
        for alias in spec.aliases:
            if alias in found.kernels or alias in aliases:
                found.problems.append(Problem(spec.file or Path(spec.name), f"alias '{alias}' is taken"))
            else:
                aliases[alias] = spec.name
    return aliases
