"""Sources in Python: a kernel's file and what it imports of its catalogue, as texts and as a hash."""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from prism_bench.files import family_folder, first_in, shared_with


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


def _imported(text: str) -> Iterator[str]:
    """Yield the last parts of the names of what a file imports relatively: `rows` of `..include.rows`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield (node.module or "").rpartition(".")[2]
            yield from (alias.name for alias in node.names)
