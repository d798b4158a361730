"""Identity of what is launched: a hash of the kernel's source with its headers, and of the code of its spec.

A choice that was made for one hash is stale for another. Comments, docstrings and annotations are no part of it.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from prism_bench.compilation import source_hash
from prism_bench.files import family_folder, first_in, shared_with
from prism_bench.kernel import KernelSpec

_SHARED = "prism_bench_catalogue.include"  # how specs of version 0.1 import what they share


def launched(spec: KernelSpec) -> str:
    """Return the hash of the source, its own headers and the spec file, with what that imports from the catalogue."""
    source = spec.source
    assert source is not None, f"{spec.name} comes from no catalogue"
    digest = hashlib.sha256(source_hash(source).encode())
    places = (source.with_suffix(".py"), family_folder(source) / f"{spec.name}.py")
    for path in [place for place in places if place.is_file()][:1]:
        for code in _codes(path, shared_with(source), set()):
            digest.update(code.encode())
    return digest.hexdigest()[:16]


def _codes(path: Path, folders: Sequence[Path], seen: set[Path]) -> Iterator[str]:
    """Yield the code of a spec and of what it imports from `include/`, directly or not."""
    seen.add(path)
    tree = ast.parse(path.read_text())
    yield _code(tree)
    for name in _shared_modules(tree):
        other = first_in(folders, f"{name}.py")
        if other and other not in seen:
            yield from _codes(other, folders, seen)


def _shared_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of `include/` that a file imports: `..include.rows`, in `include/` itself `.rows`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = node.module or ""
        if node.level or module.startswith(_SHARED):
            name = module.removeprefix(_SHARED if not node.level else "include").lstrip(".")
            yield from [name] if name else [alias.name for alias in node.names]


def _code(tree: ast.Module) -> str:
    """Return the code without comments, docstrings, annotations and imports that only these use."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            setattr(node, "body", [one for one in body if not _is_text(one)] or [ast.Pass()])  # noqa: B010 - many types
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        node.names = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] in used]
    empty = [node for node in imports if not node.names]
    tree.body = [node for node in tree.body if node not in empty]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
