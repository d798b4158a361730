"""Sources in Python: a kernel's file and what it imports of its catalogue, as texts and as a hash."""

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from prism_bench.io.files import SHARED, family_folder, first_in, shared_folders


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
    return _reached(source, family_folder(source).parent, set())


def _reached(path: Path, catalogue: Path, seen: set[Path]) -> Iterator[tuple[Path, str]]:
    seen.add(path.resolve())
    text = path.read_text()
    yield path, text
    for level, module in _imported(text):
        file = _module_file(_package(path, catalogue), level, module, catalogue)
        if file and file.resolve() not in seen:
            yield from _reached(file, catalogue, seen)


def _package(path: Path, catalogue: Path) -> tuple[str, ...]:
    """Return the folders of a file below its catalogue; of a shared file those below `include` or `peers` with it."""
    for kind in SHARED:
        for root in shared_folders(catalogue, kind):
            if path.is_relative_to(root):
                return (kind, *path.relative_to(root).parent.parts)
    return path.relative_to(catalogue).parent.parts


def _module_file(package: tuple[str, ...], level: int, module: tuple[str, ...], catalogue: Path) -> Path | None:
    """Return the file of a module that is imported relatively in `package`; None where it has none."""
    if level > len(package) + 1:
        return None
    first, *rest = (*package[: len(package) + 1 - level], *module)
    roots = next((shared_folders(catalogue, kind) for kind in SHARED if kind == first), (catalogue / first,))
    return first_in(roots, f"{'/'.join(rest)}.py") if rest else first_in((catalogue,), f"{first}.py")


@lru_cache(maxsize=512)
def _imported(text: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Return what a file imports relatively, as its level and all names that may be modules."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.level]
    return tuple(
        (node.level, tuple(name.split(".")))
        for node in nodes
        for name in filter(
            None, (node.module, *(f"{node.module or ''}.{alias.name}".lstrip(".") for alias in node.names))
        )
    )
