"""The Python reference: the words of a spec first, then every room that names what it offers."""

import ast
import importlib
from pathlib import Path

import prism_bench
from docs.generated.markdown import joined

PACKAGE = Path(prism_bench.__file__).parent
LEAD = """\
What stands here is what may be relied on. Times are seconds, sizes bytes, rates per second; shares are fractions of
one. Errors are told on [a page of their own](troubleshooting.md)."""


def page() -> str:
    """A section for the package and one for each room, with a directive for each name."""
    return joined(["# Python", LEAD, *(_section(module, names) for module, names in public().items())])


def public() -> dict[str, dict[str, str]]:
    """By module its classes and functions: each name, and the object that it is, as mkdocstrings finds it."""
    return {module: _offered(module) for module in ("prism_bench", *_rooms())}


def _rooms():
    """The rooms whose `__init__.py` says what they offer, except the pages and alerts that commands alone use."""
    found = [path for path in sorted(PACKAGE.glob("*/__init__.py")) if "__all__" in path.read_text()]
    return [f"prism_bench.{path.parent.name}" for path in found if path.parent.name not in ("alerts", "doctor")]


def _offered(module):
    source = Path(importlib.import_module(module).__file__).read_text()
    origins = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.parse(source).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = prism_bench._HOME if module == "prism_bench" else {}
    room = importlib.import_module(module)
    names = [name for name in room.__all__ if callable(getattr(room, name))]
    return {name: origins.get(name) or f"{lazy.get(name, module)}.{name}" for name in names}


def _section(module, names):
    directives = [f"::: {path}" for path in names.values()]
    return joined([f"## {module} {{ #room-{module.split('.')[-1]} }}", *directives])
