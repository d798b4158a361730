"""Lines of a kernel's source that count: without comments, blank lines and docstrings."""

import ast
from functools import lru_cache
from pathlib import Path

from prism_bench.compilation.code_text import without_comments
from prism_bench.compilation.program import cuda_texts
from prism_bench.compilation.python_source import python_texts
from prism_bench.compilation.toolchain import is_prebuilt


def source_lines(source: Path) -> tuple[int, int] | None:
    """Return the lines of a kernel's file, and those of the catalogue's own files that it includes.

    Of Python only decorated functions count: a form's launch and its tests are no part of the kernel. None of machine
    code.
    """
    if is_prebuilt(source):
        return None
    is_python = source.suffix == ".py"
    counts = list(map(_of_python if is_python else _of_cuda, (python_texts if is_python else cuda_texts)(source)))
    return counts[0], sum(counts[1:])


@lru_cache(maxsize=512)  # a site asks for the same files on many pages
def _of_cuda(text: str) -> int:
    return len(without_comments(text).splitlines())


@lru_cache(maxsize=512)
def _of_python(text: str) -> int:
    """Return the lines of all decorated functions; comments and blank lines have no node."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lines: set[int] = set()
    for function in functions:
        if function.decorator_list:
            lines |= _lines(function)
    return len(lines)


def _lines(function: ast.FunctionDef) -> set[int]:
    """Return the lines that a function's nodes begin or end at, without those of its docstring."""
    first = function.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    body = function.body[1:] if is_text else function.body
    parts: list[ast.AST] = [*function.decorator_list, function.args, *body]
    nodes = [node for part in parts for node in ast.walk(part) if hasattr(node, "lineno")]
    return {function.lineno} | {getattr(node, end) for node in nodes for end in ("lineno", "end_lineno")}
