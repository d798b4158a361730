"""Imports between the files of a package, and the layers that they have to keep.

Imports inside functions and under `TYPE_CHECKING` count as well. An import of a package counts for its `__init__`, an
import of a module not for the packages around it.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# A package imports from its own layer and from lower ones.
LAYERS: Sequence[Sequence[str]] = (
    ("errors", "units", "extension", "display", "spec", "record", "io"),
    ("catalogue", "compilation", "emulator", "backends", "measure", "monitor", "profilers"),
    ("run", "analysis", "workflows", "api"),
    ("report", "cli", "doctor", "pytest_plugin", "extensions"),
)
# The facade and the entry point are on no layer.
DOORS = ("prism_bench", "prism_bench.__main__")

Edges = Mapping[str, Mapping[str, int]]  # for each module those that it imports, with the line of the first import


@dataclass(frozen=True)
class UpwardImport:
    """A module that imports from a higher layer, with the line."""

    module: str
    imported: str
    line: int


def modules(package: Path, without: Iterable[str] = DOORS) -> dict[str, Path]:
    """Return the files of the package in the folder by their dotted names, which begin with the folder's name."""
    named: dict[str, Path] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in named.items() if name not in without}


def edges(modules: Mapping[str, Path]) -> dict[str, dict[str, int]]:
    """Return for each of the modules the others of them that it imports, with the line of the first import."""
    found: dict[str, dict[str, int]] = {name: {} for name in modules}
    for name, path in modules.items():
        for line, imported in imports(path, name):
            target = imported if imported in modules else imported.rpartition(".")[0]
            if target in modules and target != name:
                found[name][target] = min(line, found[name].get(target, line))
    return found


def imports(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything that the file of the module `name` imports."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*around, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def circles(edges: Edges) -> list[list[str]]:
    """Return the groups of modules that reach each other: strongly connected components, by Kosaraju's algorithm."""
    importers: dict[str, dict[str, int]] = {name: {} for name in edges}
    for name, imported in edges.items():
        for target, line in imported.items():
            importers[target][name] = line
    finished = [name for tree in _trees(edges, edges) for name in tree]
    return sorted(sorted(tree) for tree in _trees(importers, reversed(finished)) if len(tree) > 1)


def _trees(edges: Edges, starts: Iterable[str]) -> Iterator[list[str]]:
    """Yield what each start reaches first, in the order in which a depth-first search leaves it."""
    seen: set[str] = set()
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        tree, path = list[str](), [(start, iter(edges[start]))]
        while path:
            name, targets = path[-1]
            unseen = next((target for target in targets if target not in seen), None)
            if unseen is None:
                tree.append(name)
                path.pop()
            else:
                seen.add(unseen)
                path.append((unseen, iter(edges[unseen])))
        yield tree


def upward(edges: Edges, layers: Sequence[Sequence[str]] = LAYERS) -> list[UpwardImport]:
    """Return the imports from a higher layer; a package without a layer is not looked at."""
    level = {package: number for number, packages in enumerate(layers) for package in packages}

    def layer_of(module: str) -> int | None:
        return level.get(module.split(".")[1]) if "." in module else None

    return [
        UpwardImport(name, other, line)
        for name, imported in edges.items()
        for other, line in imported.items()
        if (here := layer_of(name)) is not None and (there := layer_of(other)) is not None and there > here
    ]
