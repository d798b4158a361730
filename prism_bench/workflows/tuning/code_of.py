"""Python code as texts to hash: a function's syntax without annotations and docstrings, and the values of its names.

The texts are the same in every version of Python and in every folder. A catalogue's definitions are identified by their
code, everything else by its name.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache, partial
from inspect import CO_VARARGS, CO_VARKEYWORDS, unwrap
from pathlib import Path
from sys import modules
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from prism_bench.catalogue.project_reference import ProjectReference

_NO_CODE = ("annotation", "returns", "type_comment", "type_params", "ctx", "kind")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))


class CodeWords:
    """Texts of values; functions, classes and modules of files below `folders` are followed into their code."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder.resolve() for folder in folders]
        self._seen: set[int] = set()

    def of(self, value: object) -> Iterator[str]:
        """Yield the texts of a value; code that was met before is not repeated."""
        if isinstance(value, Enum):
            yield f"{type(value).__qualname__}.{value.name}"
        elif isinstance(value, _PLAIN):
            yield repr(value)
        elif isinstance(value, Mapping):
            for key, element in sorted(cast("Mapping[object, object]", value).items(), key=lambda item: repr(item[0])):
                yield from (f"{key!r}:", *self.of(element))
        elif isinstance(value, list | tuple):
            yield from ("(", *(word for element in cast("Sequence[object]", value) for word in self.of(element)), ")")
        elif isinstance(value, set | frozenset):
            yield repr(sorted(map(repr, cast("set[object]", value))))
        else:
            yield from self._of_object(value)

    def _of_object(self, value: object) -> Iterator[str]:
        """Yield the texts of an object that is not a plain value; of an unknown object its class and attributes."""
        inner = value if isinstance(value, FunctionType) else unwrap(cast("Any", value))
        if isinstance(inner, partial):
            yield from self.of((inner.func, inner.args, inner.keywords))
        elif isinstance(inner, MethodType):
            yield from self.of((inner.__func__, inner.__self__))
        elif isinstance(inner, FunctionType):
            yield from self._of_function(inner)
        elif isinstance(inner, type):
            yield from self._of_class(inner)
        elif isinstance(inner, ModuleType):
            yield inner.__name__.rpartition(".")[2] if self._own(_file(inner)) else inner.__name__
        elif isinstance(inner, ProjectReference):  # its module is not imported here
            yield from inner.code_words()
        elif hasattr(inner, "tobytes"):  # an array
            array = cast("Any", inner)
            yield f"{array.dtype} {array.shape} {array.tobytes().hex()}"
        elif hasattr(inner, "__qualname__"):  # built in
            yield f"{getattr(inner, '__module__', '')}.{cast('Any', inner).__qualname__}"
        else:
            yield from (*self._of_class(type(inner)), *self.of(_attributes(inner)))

    def _of_function(self, function: FunctionType) -> Iterator[str]:
        """Yield the code of a catalogue's function, else its name; its closure; the values of its names."""
        if id(function) in self._seen:
            yield function.__qualname__
            return
        self._seen.add(id(function))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closed = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
        yield from self.of((closed, function.__defaults__, function.__kwdefaults__))
        if not self._own(function.__code__.co_filename):
            yield f"{function.__module__}.{function.__qualname__}"
            return
        nodes = _nodes_of(function.__code__)
        bound = {argument.arg for node in nodes for argument in _arguments(node)} | set(closed)
        for node in nodes:
            yield _written(node)
            yield from self._of_names(node, function.__globals__, bound)
        if not nodes:  # made from a text: no syntax to read
            yield function.__code__.co_code.hex()

    def _of_class(self, kind: type) -> Iterator[str]:
        module = modules.get(kind.__module__)
        file = _file(module) if module else None
        if module is None or file is None or not self._own(file):
            yield f"{kind.__module__}.{kind.__qualname__}"
            return
        if id(kind) in self._seen:
            yield kind.__qualname__
            return
        self._seen.add(id(kind))
        for node in ast.walk(_tree(Path(file).read_text())):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                yield _written(node)
                yield from self._of_names(node, vars(module), set())

    def _of_names(self, node: ast.AST, names: Mapping[str, object], bound: set[str]) -> Iterator[str]:
        """Yield the texts of the globals in the code; of the catalogue's modules only those of the used attributes."""
        for part in _parts(node):
            if isinstance(part, ast.Name) and part.id not in bound and part.id in names:
                value = names[part.id]
                if not (isinstance(value, ModuleType) and self._own(_file(value))):
                    yield from self.of(value)
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id not in bound:
                module = names.get(part.value.id)
                if isinstance(module, ModuleType) and self._own(_file(module)):
                    yield from self.of(getattr(module, part.attr, None))

    def _own(self, file: str | None) -> bool:
        path = Path(file).resolve() if file else None
        return path is not None and any(path.is_relative_to(folder) for folder in self._folders)


def _file(module: ModuleType) -> str | None:
    """Return the file of a module; None for a module built into the interpreter, such as `sys`."""
    return getattr(module, "__file__", None)


def _attributes(value: object) -> dict[str, object]:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(getattr(value, "__dict__", {}))


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises while it is empty
    except ValueError:
        return False
    return True


@lru_cache(maxsize=512)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _nodes_of(code: CodeType) -> list[ast.FunctionDef | ast.Lambda]:
    """Return the syntax of a function: the innermost node on its first line that contains its instructions.

    Without columns of instructions, return all functions of that line that have its arguments.
    """
    path = Path(code.co_filename)
    tree = _tree(path.read_text()) if path.is_file() else ast.Module([], [])
    starred = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + starred]
    values = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and _first_line(node) == code.co_firstlineno
        and tuple(argument.arg for argument in _arguments(node)) == names
    ]
    around = [node for node in values if all(_is_in(place, node) for place in _places(code))]
    return around[-1:] or values  # ast.walk goes outside in: the last is the innermost


def _arguments(node: ast.AST) -> list[ast.arg]:
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return []
    arguments = node.args
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _first_line(node: ast.FunctionDef | ast.Lambda) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _places(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """Yield first line, first column, last line and last column of every instruction that has them."""
    for line, last_line, column, last_column in code.co_positions():
        if line is None or last_line is None or column is None or last_column is None:
            continue
        if (line, column) < (last_line, last_column):
            yield line, column, last_line, last_column


def _is_in(place: tuple[int, int, int, int], node: ast.FunctionDef | ast.Lambda) -> bool:
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return (node.lineno, node.col_offset) <= place[:2] and place[2:] <= end


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and all code below it."""
    yield node
    for _, value in _kept(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _parts(child)


def _written(value: object) -> str:
    """Return syntax as a text that is the same in every version of Python: empty fields are left out."""
    if isinstance(value, ast.AST):
        return f"{type(value).__name__}({','.join(f'{name}={_written(child)}' for name, child in _kept(value))})"
    if isinstance(value, list):
        return f"[{','.join(map(_written, cast('list[object]', value)))}]"
    return repr(value)


def _kept(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a node that are code, without docstrings."""
    for name, value in ast.iter_fields(node):
        if name in _NO_CODE:
            continue
        kept = (
            [child for child in cast("list[object]", value) if not _is_text(child)]
            if isinstance(value, list)
            else value
        )
        if kept is not None and kept != []:
            yield name, kept


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
