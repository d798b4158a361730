"""Interface between the core and its extensions: the packages in `prism_bench/extensions`.

An extension's `__init__.py` defines `EXTENSION`. It refers to code by dotted name, so that listing the extensions loads
none of their commands, pages and checks. Deleting the folder of an extension removes all that it adds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
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

    `commands` maps names of commands to their modules, each with a `command`; `pages` are pages of the site, whose
    templates are in the extension's folder `templates/site`; `checks` are functions (`module:function`) that yield
    checks of the doctor. `offers` maps what the core or another extension asks for by name (`offered`) to a function or
    class (`module:name`). `functions` (`module:function`) are public: `prism_bench` offers them by their names.
    """

    name: str
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    pages: tuple[SitePage, ...] = ()
    checks: tuple[str, ...] = ()
    offers: Mapping[str, str] = field(default_factory=dict[str, str])
    functions: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """Dotted name of the extension's package."""
        return f"prism_bench.extensions.{self.name}"

    @property
    def has_templates(self) -> bool:
        """Whether it has templates: of the site's pages, or others."""
        return files(self.package).joinpath("templates").is_dir()

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


def offered(name: str) -> Any | None:
    """Return what an extension offers by that name; None where no extension that is installed does."""
    for extension in installed():
        if name in extension.offers:
            return extension.function(extension.offers[name])
    return None


@cache
def installed() -> tuple[Extension, ...]:
    """Return every extension of the package, sorted by name."""
    home = import_module("prism_bench.extensions")
    names = sorted(module.name for module in iter_modules(home.__path__) if module.ispkg)
    return tuple(import_module(f"{home.__name__}.{name}").EXTENSION for name in names)
