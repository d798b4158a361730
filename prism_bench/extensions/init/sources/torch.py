"""PyTorch operators that C++ or Python defines: schemas and signatures."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.found import FoundOperator, Unread

# Arguments and results of a PyTorch operator, from its schema or from the annotations of its Python function.

ArgumentKind = Literal["tensor", "float", "int", "bool", "none", "other"]
_KINDS: dict[str, ArgumentKind] = {
    "Tensor": "tensor", "float": "float", "double": "float", "Scalar": "float", "int": "int", "SymInt": "int",
    "bool": "bool",
}  # fmt: skip
_TENSOR = re.compile(r"Tensor(\([^)]*\))?")
_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>\w+)\s*(=(?P<default>.*))?$", re.DOTALL)


@dataclass(frozen=True)
class OperatorArgument:
    """One argument: its `type` as written, and whether the operator writes it; a tensor that may be None is `none`."""

    name: str
    type: str
    kind: ArgumentKind
    default: str | None = None
    is_written: bool = False
    is_keyword: bool = False


@dataclass(frozen=True)
class OperatorSignature:
    """What an operator takes, and how many tensors it returns; None if it returns anything else."""

    arguments: tuple[OperatorArgument, ...]
    returned: int | None


def signature_of(operator: FoundOperator) -> OperatorSignature | None:
    """Return the operator's signature; None if neither a schema nor annotations give it."""
    if operator.schema:
        return _of_schema(operator.schema)
    if operator.language == "cpp" or not all(text for _, text in operator.arguments):
        return None
    arguments = (
        OperatorArgument(
            name,
            text,
            _annotated(text),
            operator.defaults.get(name),
            name in operator.written,
            name in operator.keywords,
        )
        for name, text in operator.arguments
    )
    return OperatorSignature(tuple(arguments), _returned(operator.returns.replace("torch.", "")))


def _of_schema(schema: str) -> OperatorSignature | None:
    before, arrow, after = schema.rpartition("->")
    inside = before[before.find("(") + 1 : before.rfind(")")] if arrow else ""
    arguments, is_keyword = list[OperatorArgument](), False
    for part in _parts(inside):
        if part == "*":
            is_keyword = True
        elif (match := _ARGUMENT.match(part)) is None:
            return None
        else:
            arguments.append(_argument(match, is_keyword))
    return OperatorSignature(tuple(arguments), _returned(after)) if arrow else None


def _argument(match: re.Match[str], is_keyword: bool) -> OperatorArgument:
    written = match["type"].strip()
    plain = re.sub(r"\([^)]*\)", "", written)
    kind: ArgumentKind = "none" if plain == "Tensor?" else _KINDS.get(plain, "other")
    return OperatorArgument(match["name"], written, kind, match["default"], "!" in written, is_keyword)


def _annotated(annotation: str) -> ArgumentKind:
    plain = annotation.replace("torch.", "").replace("typing.", "").replace(" ", "")
    return "none" if plain in ("Tensor|None", "Optional[Tensor]") else _KINDS.get(plain, "other")


def _returned(text: str) -> int | None:
    """Return how many tensors there are in `Tensor`, `(Tensor, Tensor y)`, `tuple[Tensor, Tensor]`, `()` or `None`."""
    plain = text.strip()
    if plain in ("", "()", "None"):
        return 0
    inside = re.fullmatch(r"(?:[Tt]uple\[(.*)\]|\((.*)\))", plain, re.DOTALL)
    parts = list(_parts((inside[1] or inside[2]) if inside else plain))
    return len(parts) if all(_TENSOR.fullmatch(part.split()[0]) for part in parts) else None


def _parts(text: str) -> Iterator[str]:
    """Yield what commas outside of brackets separate."""
    depth, start = 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            if part := text[start:place].strip():
                yield part
            start = place + 1


# PyTorch operators that C++ defines: the schemas in `TORCH_LIBRARY` and `TORCH_LIBRARY_FRAGMENT`.

_MACROS = ("TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT")
_NAME = re.compile(r"\s*(?:(\w+)::)?([\w.]+)\s*(\(.*->.*)?$", re.DOTALL)


def operators_of(tree: Tree) -> tuple[list[FoundOperator], list[Unread]]:
    """Return the operators that a C++ file defines, and the definitions that could not be read."""
    found: list[FoundOperator] = []
    unread: list[Unread] = []
    for node in nodes_of(tree.root, "function_definition"):
        if function_name(node, tree) in _MACROS:
            for one in _defined(node, tree):
                (found if isinstance(one, FoundOperator) else unread).append(one)  # pyright: ignore[reportArgumentType]
    return found, unread


def _defined(library: Node, tree: Tree) -> Iterator[FoundOperator | Unread]:
    parameters = next(nodes_of(library, "parameter_list"))
    namespace, handle = [tree.text(one) for one in parameters.named_children][:2]
    for call in nodes_of(library.child_by_field_name("body"), "call_expression"):
        if tree.text(call.child_by_field_name("function")) == f"{handle}.def":
            yield _operator(call, namespace, tree)


def _operator(call: Node, namespace: str, tree: Tree) -> FoundOperator | Unread:
    given = [one for one in call.child_by_field_name("arguments").named_children if one.type != "comment"]
    text = _literal(given[0], tree) if given else None
    match = _NAME.match(text) if text else None
    if match is None or text is None:
        return Unread(tree.path, line_of(call), "the operator's schema is no literal")
    schema = " ".join(text.split()) if match[3] else None
    function = tree.text(given[1]).lstrip("&") if len(given) > 1 else None
    return FoundOperator(f"{match[1] or namespace}::{match[2]}", schema, tree.path, line_of(call), "cpp", function)


def _literal(node: Node, tree: Tree) -> str | None:
    """Return the text of a string literal, or of several side by side."""
    if node.type == "raw_string_literal":
        content = next(nodes_of(node, "raw_string_content"), None)
        return tree.text(content) if content is not None else ""
    parts = list(nodes_of(node, "string_literal"))
    if node.type not in ("string_literal", "concatenated_string"):
        return None
    return "".join(str(ast.literal_eval(tree.text(part))) for part in parts)
