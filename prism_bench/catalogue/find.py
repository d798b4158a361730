"""Find every spec of a catalogue folder, and name the files that cannot be used."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from prism_bench.catalogue.catalogue import Catalogue, Problem
from prism_bench.catalogue.implementations import implementations, with_implementation
from prism_bench.catalogue.importer import catalogue_package, execute, module_name
from prism_bench.catalogue.kept_checks import KeptChecks
from prism_bench.catalogue.load import check_spec, check_variant, load_spec, problem_of, require_definition
from prism_bench.compilation.languages.language import language_in
from prism_bench.errors import SpecError, UsageError
from prism_bench.io import project
from prism_bench.io.files import GENERATED, SHARED, default_folder, family_of
from prism_bench.spec.kernel import KernelSpec


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
                spec = with_implementation(spec, name, file, module_of(file))
                if not self.checked:
                    check_variant(spec, name)
                self.kernels[spec.name] = spec
            except (Exception, SystemExit) as error:  # whatever a file raises must not stop the others
                self.problems.append(problem_of(file, error))
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
            found.problems.append(problem_of(path, error))
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
