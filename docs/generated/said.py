"""Messages of the program's errors and findings, read from its source."""

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import prism_bench

PACKAGE = Path(prism_bench.__file__).parent
UNKNOWN = "..."


@dataclass(frozen=True)
class Said:
    """The arguments of one call of `word`, as text with `<name>` for what is put in; `place` is the file."""

    word: str
    place: str
    texts: tuple[str, ...]


def said(words: Container[str], below: str = "") -> Iterator[Said]:
    """Yield every call of one of the words in the files of the package, or of the folder `below` in it."""
    for path in sorted((PACKAGE / below).rglob("*.py")):
        place = path.relative_to(PACKAGE.parent).as_posix()
        for node in _calls(path):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in words:
                yield Said(name, place, tuple(_text(one) for one in node.args))


@cache
def _calls(path: Path) -> list[ast.Call]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]


def _text(node: ast.expr) -> str:
    """Return the text of an expression, with values that are known only at run time in angle brackets."""
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=parts):
            return "".join(map(_text, parts))
        case ast.FormattedValue(value=value):
            return f"<{_name(value)}>"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case ast.IfExp(body=one, orelse=other):
            return f"{_text(one)} / {_text(other)}"
    return f"<{_name(node)}>"


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name.strip("_").lower()
        case ast.Attribute(attr=name) if not name.startswith("_"):
            return name
    return UNKNOWN
