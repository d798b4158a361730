"""Old import paths of the public API: `prism_bench.fusion` is `prism_bench.extensions.fusion`, with a warning.

A finder in `sys.meta_path` answers for the old names alone, and loads nothing before one is imported. It is the first
of all finders, because the path of a moved package would give a second copy of its modules. An old name gives the
module at the new place itself: its classes are the same objects.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

# Old packages and modules with their new names; what is below a package moved with it.
MOVED = {
    "prism_bench.analysis.bound": "prism_bench.analysis.bounds.bound",
    "prism_bench.workbench": "prism_bench.run",
    "prism_bench.workbench.callable": "prism_bench.api.callable",
    "prism_bench.workbench.identity": "prism_bench.record.identity",
    "prism_bench.workbench.inspected": "prism_bench.api.inspected",
    "prism_bench.workbench.online": "prism_bench.api.online",
    "prism_bench.workbench.prepare": "prism_bench.api.catalogue_kernel",
    "prism_bench.workbench.products": "prism_bench.api.products",
    "prism_bench.fusion": "prism_bench.extensions.fusion",
    "prism_bench.memory": "prism_bench.extensions.memory",
    "prism_bench.persistent": "prism_bench.extensions.persistent",
    "prism_bench.pipelines": "prism_bench.extensions.pipelines",
}


def new_name(old: str) -> str | None:
    """Return where the module of that old name is now, None where it never moved."""
    parent, _, rest = old.rpartition(".")
    if old in MOVED:
        return MOVED[old]
    above = new_name(parent) if parent else None
    return f"{above}.{rest}" if above else None


class _MovedLoader(Loader):
    """Loads the module at its new place under its old name."""

    def __init__(self, old: str, target: str) -> None:
        self._old, self._target = old, target
        self._own: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module at the new place, with a DeprecationWarning at the import of the old name."""
        message = f"{self._old} is now {self._target}; the old name goes in 0.3"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        module = import_module(self._target)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back: the import system has set that of the old name."""
        module.__spec__ = self._own


class MovedFinder(MetaPathFinder):
    """Finds modules under their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that loads the module at its new place; None for names that never moved."""
        new = new_name(fullname)
        if new is None or not _exists(new):
            return None
        return ModuleSpec(fullname, _MovedLoader(fullname, new))


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # an extension that was deleted
        return False


# Names that changed in the packages that the reference of 0.1 lists.
RENAMED = {
    "prism_bench.extensions.fusion": {
        "Choice": "FunctionChoice", "Form": "ProgramForm", "Program": "FusionProgram", "Shared": "SharedName",
    },
    "prism_bench.extensions.memory": {"Limits": "PoolLimits"},
    "prism_bench.record.store": {"Place": "RecordPlace"},
}  # fmt: skip


def under_new_name(module: str, name: str) -> object:
    """Return what `name` of the module is called now, with a DeprecationWarning; an AttributeError for other names."""
    new = RENAMED.get(module, {}).get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    message = f"{module}.{name} is now {new}; the old name goes in 0.3"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return getattr(import_module(module), new)


def install() -> None:
    """Answer for the old names from now on."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedFinder())
