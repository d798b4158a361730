"""PyTorch operators that C++ defines: the schemas in `TORCH_LIBRARY` and `TORCH_LIBRARY_FRAGMENT`."""

import ast
import re
from collections.abc import Iterator

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.found import FoundOperator, Unread

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
    return "".join(str(ast.literal_eval(tree.text(one))) for one in parts)
