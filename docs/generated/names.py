"""The index: every name of the program, with a link to its page."""

from collections.abc import Iterator
from itertools import groupby

from docs.generated import catalogue, commands, python
from docs.generated.markdown import code, joined, table
from prism_bench import errors

CATALOGUE = "catalogue"


def page() -> str:
    """Return all names by their first letter."""
    entries = sorted({*_kernels(), *_commands(), *_errors(), *_python()}, key=lambda one: (one[0].lower(), one))
    groups = groupby(entries, key=lambda one: one[0][0].upper())
    sections = [joined([f"## {letter}", table(("name", "what it is"), map(_row, group))]) for letter, group in groups]
    return joined(["# Index", "Kernels with their aliases and variants, commands, errors and Python names.", *sections])


def _row(entry: tuple[str, str, str]) -> tuple[str, str]:
    name, kind, link = entry
    return f"[{code(name)}]({link})", kind


def _kernels() -> Iterator[tuple[str, str, str]]:
    for spec in catalogue.found().kernels.values():
        link = f"{CATALOGUE}/{spec.family}.md#{spec.name}"
        yield spec.name, f"kernel of {spec.family}", link
        yield from ((alias, f"another name of {code(spec.name)}", link) for alias in spec.aliases)
        yield from ((f"{spec.name}:{variant}", f"variant of {code(spec.name)}", link) for variant in spec.variants)


def _commands() -> list[tuple[str, str, str]]:
    return [(name, "command", f"commands.md#{name}") for name in commands.commands()]


def _errors() -> list[tuple[str, str, str]]:
    return [(kind.__name__, "error", f"troubleshooting.md#{kind.__name__.lower()}") for kind in errors.kinds()]


def _python() -> Iterator[tuple[str, str, str]]:
    for module, names in python.public().items():
        yield from ((name, f"of {code(module)}", f"python.md#{path}") for name, path in names.items())
