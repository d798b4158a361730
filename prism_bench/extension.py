"""Interface between the core and its extensions: the packages in `prism_bench/extensions`.

An extension's `__init__.py` defines `EXTENSION`. It refers to code by dotted name, so that listing the extensions loads
none of their commands, pages and checks. Deleting the folder of an extension removes all that it adds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class SitePage:
    """One page of the site.

    `name` is its file name and template, `title` its name in the menu, `function` (`module:function`) returns the page
    of a context. `guide` is the documentation's page on how its content is measured, `guides/fusion.html`.
    """

    name: str
    title: str
    function: str
    guide: str


@dataclass(frozen=True)
class Extension:
    """What an extension adds to the core.

    `commands` are modules with a `NAME` and a `command`; `pages` are pages of the site, whose templates are in the
    extension's folder `templates/site`; `checks` are functions (`module:function`) that yield checks of the doctor.
    `programs` (`module:class`) offers whole programs to other extensions (`run.task_worker.Programs`), and `readers`
    (`module:function`) returns readers of files, as subjects of the study that damages such files. `rules` are keys
    that it reads from `[rules]` of a device's file of budgets. `functions` (`module:function`) are public:
    `prism_bench` offers them by their names.
    """

    name: str
    commands: tuple[str, ...] = ()
    pages: tuple[SitePage, ...] = ()
    checks: tuple[str, ...] = ()
    programs: str | None = None
    readers: str | None = None
    rules: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """Dotted name of the extension's package."""
        return f"prism_bench.extensions.{self.name}"

    @property
    def has_templates(self) -> bool:
        """Whether it has templates: of the site's pages, or others."""
        return files(self.package).joinpath("templates").is_dir()

    def command_modules(self) -> tuple[ModuleType, ...]:
        """Import the modules of the extension's commands."""
        return tuple(import_module(f"{self.package}.{module}") for module in self.commands)

    def function(self, reference: str) -> Callable[..., Any]:
        """Return the function that `reference` (`module:function`, relative to the package) names."""
        module, _, name = reference.partition(":")
        return getattr(import_module(f"{self.package}.{module}"), name)


def public_function(name: str) -> Callable[..., Any] | None:
    """Return the public function of that name of an extension; None where no extension that is installed has one."""
    for extension in installed():
        for reference in extension.functions:
            if reference.partition(":")[2] == name:
                return extension.function(reference)
    return None


@cache
def installed() -> tuple[Extension, ...]:
    """Return every extension of the package, sorted by name."""
    home = import_module("prism_bench.extensions")
    names = sorted(module.name for module in iter_modules(home.__path__) if module.ispkg)
    return tuple(import_module(f"{home.__name__}.{name}").EXTENSION for name in names)
