"""The Python reference: the words of a spec first, then every package with `__all__`."""

import ast
import importlib
from pathlib import Path

import prism_bench
from docs.generated.markdown import joined

PACKAGE = Path(prism_bench.__file__).parent
LEAD = """\
You can rely on the names on this page; see [stability](../stability.md). Times are seconds, sizes bytes, rates per
second; shares are fractions of one. Errors are on [another page](troubleshooting.md)."""


def page() -> str:
    """Return a section for each package, with a directive for each name."""
    return joined(["# Python", LEAD, *(_section(module, names) for module, names in public().items())])


def public() -> dict[str, dict[str, str]]:
    """Return the classes and functions of each module: each name, and the path by which mkdocstrings finds it."""
    return {module: _offered(module) for module in ("prism_bench", *_packages())}


def _packages() -> list[str]:
    """Return the packages with `__all__` that programs use."""
    below = (
        "api",
        "backends",
        "catalogue",
        "compilation",
        "compilation.languages",
        "emulator",
        "measure",
        "monitor",
        "record.store",
        "run",
        "spec",
    )
    return [f"prism_bench.{name}" for name in below]


def _offered(module: str) -> dict[str, str]:
    imported = importlib.import_module(module)
    source = Path(str(imported.__file__)).read_text()
    origins = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.parse(source).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = prism_bench._HOME if module == "prism_bench" else {}
    names = [name for name in imported.__all__ if callable(getattr(imported, name))]
    return {name: origins.get(name) or f"{lazy.get(name, module)}.{name}" for name in names}


def _section(module: str, names: dict[str, str]) -> str:
    directives = [f"::: {path}" for path in names.values()]
    return joined([f"## {module} {{ #package-{module.split('.')[-1]} }}", *directives])
