"""What is launched, as a hash: the kernel's source with its headers, and the part of its spec that is no comment.

A choice made for one such hash says nothing about another.
"""

import ast
import hashlib
import re

from prism_bench.compilation import source_hash
from prism_bench.files import first_in, shared_with
from prism_bench.kernel import KernelSpec

_SHARED = re.compile(r"^from prism_bench_catalogue\.include\.(\w+) import", re.MULTILINE)


def launched(spec: KernelSpec) -> str:
    """The hash of `spec`'s source, own headers and spec file, with what that imports from the catalogue."""
    source = spec.source
    digest = hashlib.sha256(source_hash(source).encode())
    for text in _texts(source.with_suffix(".py"), shared_with(source), set()):
        digest.update(_without_words(text).encode())
    return digest.hexdigest()[:16]


def _texts(path, folders, seen):
    """The texts of a spec and of what it imports from `include/`, directly or not."""
    seen.add(path)
    text = path.read_text()
    yield text
    for name in _SHARED.findall(text):
        other = first_in(folders, f"{name}.py")
        if other and other not in seen:
            yield from _texts(other, folders, seen)


def _without_words(text):
    """The code without comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_words(one)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_words(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
