"""Interface between the core and its extensions: the packages in `prism_bench/extensions`.

An extension's `__init__.py` defines `EXTENSION`. It refers to code by dotted name, so that listing the extensions loads
none of their commands, pages and checks. Deleting the folder of an extension removes all that it adds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
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
    checks of the doctor. `offers` maps names to functions or classes (`module:name`). A name with a blank is for the
    core and other extensions (`offered`); any other name is public: `prism_bench.judge`.

    Headers in the extension's folder `include` are found by every compiler of CUDA C++ (`header_folders`).

    `reads` maps the words of a command to the function (`module:function`) that returns the title of a file that this
    command reads, such as `a claim`, for its path, and None for any other file.
    """

    name: str
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    pages: tuple[SitePage, ...] = ()
    checks: tuple[str, ...] = ()
    offers: Mapping[str, str] = field(default_factory=dict[str, str])
    reads: Mapping[str, str] = field(default_factory=dict[str, str])

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


def offered(name: str) -> Any | None:
    """Return the function or class that an installed extension offers by that name; None without such an extension."""
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


@cache
def header_folders() -> tuple[Path, ...]:
    """Return the folders of headers of the installed extensions, which are not imported for that."""
    return tuple(sorted(Path(__file__).with_name("extensions").glob("*/include")))
