"""PyTorch operators that C++ or Python defines: schemas and signatures."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.expressions import arguments_in
from prism_bench.extensions.init.sources.kernels import FoundOperator, Unread

# Arguments and results of a PyTorch operator, from its schema or from the annotations of its Python function.

ArgumentKind = Literal["tensor", "float", "int", "bool", "none", "other"]
_KINDS: dict[str, ArgumentKind] = {
    "Tensor": "tensor", "float": "float", "double": "float", "Scalar": "float", "int": "int", "SymInt": "int",
    "bool": "bool", "Tensor?": "none", "Tensor|None": "none", "Optional[Tensor]": "none",
}  # fmt: skip
_TENSOR = re.compile(r"Tensor(\([^)]*\))?")
_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>\w+)\s*(=(?P<default>.*))?$", re.DOTALL)


@dataclass(frozen=True)
class OperatorArgument:
    """An argument: its `type` as written, and whether the operator writes it; an optional tensor is of kind `none`."""

    name: str
    type: str
    kind: ArgumentKind
    default: str | None = None
    is_written: bool = False
    is_keyword: bool = False


@dataclass(frozen=True)
class OperatorSignature:
    """Arguments of an operator, and the number of returned tensors; None for results of other types."""

    arguments: tuple[OperatorArgument, ...]
    returned: int | None


def signature_of(operator: FoundOperator) -> OperatorSignature | None:
    """Return the operator's signature; None if neither a schema nor annotations give it."""
    if operator.schema:
        return _of_schema(operator.schema)
    if operator.language == "cpp" or not all(text for _, text in operator.arguments):
        return None
    arguments: list[OperatorArgument] = []
    for name, text in operator.arguments:
        kind = _KINDS.get(text.replace("torch.", "").replace("typing.", "").replace(" ", ""), "other")
        is_written, is_keyword = name in operator.written, name in operator.keywords
        arguments.append(OperatorArgument(name, text, kind, operator.defaults.get(name), is_written, is_keyword))
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
            text = match["type"].strip()
            kind = _KINDS.get(re.sub(r"\([^)]*\)", "", text), "other")
            arguments.append(OperatorArgument(match["name"], text, kind, match["default"], "!" in text, is_keyword))
    return OperatorSignature(tuple(arguments), _returned(after)) if arrow else None


def _returned(text: str) -> int | None:
    """Return the number of tensors in `Tensor`, `(Tensor, Tensor y)`, `tuple[Tensor, Tensor]`, `()` or `None`."""
    plain = text.strip()
    if plain in ("", "()", "None"):
        return 0
    inside = re.fullmatch(r"(?:[Tt]uple\[(.*)\]|\((.*)\))", plain, re.DOTALL)
    parts = list(_parts((inside[1] or inside[2]) if inside else plain))
    return len(parts) if all(_TENSOR.fullmatch(part.split()[0]) for part in parts) else None


def _parts(text: str) -> Iterator[str]:
    """Split a text at the commas outside of brackets."""
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
    operators: list[FoundOperator] = []
    unread: list[Unread] = []
    for library in nodes_of(tree.root, "function_definition"):
        if function_name(library, tree) in _MACROS:
            parameters = next(nodes_of(library, "parameter_list"))
            namespace, handle = map(tree.text, parameters.named_children[:2])
            for call in nodes_of(library.child_by_field_name("body"), "call_expression"):
                if tree.text(call.child_by_field_name("function")) == f"{handle}.def":
                    operator = _operator(call, namespace, tree)
                    if operator:
                        operators.append(operator)
                    else:
                        unread.append(Unread(tree.path, line_of(call), "the operator's schema is no literal"))
    return operators, unread


def _operator(call: Node, namespace: str, tree: Tree) -> FoundOperator | None:
    """Return the operator that `m.def(...)` defines; None if its schema is no literal."""
    arguments = arguments_in(call.child_by_field_name("arguments"))
    text = _literal(arguments[0], tree) if arguments else None
    match = _NAME.match(text) if text else None
    if match is None or text is None:
        return None
    schema = " ".join(text.split()) if match[3] else None
    function = tree.text(arguments[1]).lstrip("&") if len(arguments) > 1 else None
    return FoundOperator(f"{match[1] or namespace}::{match[2]}", schema, tree.path, line_of(call), "cpp", function)


def _literal(node: Node, tree: Tree) -> str | None:
    """Return the text of a string literal, or of adjacent literals."""
    if node.type == "raw_string_literal":
        content = next(nodes_of(node, "raw_string_content"), None)
        return tree.text(content) if content is not None else ""
    parts = list(nodes_of(node, "string_literal"))
    if node.type not in ("string_literal", "concatenated_string"):
        return None
    return "".join(str(ast.literal_eval(tree.text(part))) for part in parts)
