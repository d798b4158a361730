"""Sources in Python: a kernel's file and what it imports of its catalogue, as texts and as a hash."""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from prism_bench.io.files import family_folder, first_in, shared_with


def python_files(source: Path) -> tuple[Path, ...]:
    """Return a kernel's file, then the catalogue's own files that it imports, directly or not."""
    return tuple(path for path, _ in _found(source))


def python_texts(source: Path) -> tuple[str, ...]:
    """Return the texts of those files."""
    return tuple(text for _, text in _found(source))


def python_hash(source: Path) -> str:
    """Return a hash of those files without their comments."""
    digest = hashlib.sha256()
    for text in python_texts(source):
        digest.update(ast.dump(ast.parse(text)).encode())
    return digest.hexdigest()


def _found(source: Path) -> Iterator[tuple[Path, str]]:
    return _reached(source, (family_folder(source), *shared_with(source)), set())


def _reached(path: Path, folders: Sequence[Path], seen: set[Path]) -> Iterator[tuple[Path, str]]:
    seen.add(path.resolve())
    text = path.read_text()
    yield path, text
    for name in _imported(text):
        found = first_in((path.parent, *folders), f"{name}.py")
        if found and found.resolve() not in seen:
            yield from _reached(found, folders, seen)


@lru_cache(maxsize=512)
def _imported(text: str) -> tuple[str, ...]:
    """Return the last parts of the names of what a file imports relatively: `rows` of `..include.rows`."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.level]
    named = [[(node.module or "").rpartition(".")[2], *(alias.name for alias in node.names)] for node in nodes]
    return tuple(name for names in named for name in names)
