"""Declarations of a CUDA C++ file at its outermost level: which belong to the device, and which names they declare."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prism_bench.compilation.host_source.syntax import (
    DEVICE,
    Node,
    Tree,
    expanded,
    first_defect,
    function_name,
    line_of,
    nodes_of,
)
from prism_bench.errors import CompilationFailed

# keep: the device's; cut: the host's; reached: the device's if something of the device names it.
Side = Literal["keep", "cut", "reached"]
_CONTAINERS = (
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
)  # fmt: skip
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
_NAMES = ("identifier", "type_identifier", "namespace_identifier", "field_identifier")
_CALL = re.compile(r"^(\w+)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*;?$", re.DOTALL)
_LITERAL = re.compile(r"""R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Item:
    """One declaration: where it begins and ends in its file, what it is called in a list of cuts, and its side."""

    tree: Tree
    node: Node
    what: str
    side: Side
    names: frozenset[str] = frozenset()
    parts: tuple["Item", ...] = ()  # functions of a class, each with its own side

    def holds(self, place: int) -> bool:
        """Return whether a byte of the file is within the declaration."""
        return self.node.start_byte <= place < self.node.end_byte

    @property
    def words(self) -> frozenset[str]:
        """The names that the text uses, without those of parts that are cut."""
        text = bytearray(self.tree.code[self.node.start_byte : self.node.end_byte])
        for part in self.parts:
            if part.side == "cut":
                start = part.node.start_byte - self.node.start_byte
                text[start : part.node.end_byte - self.node.start_byte] = b" "
        return frozenset(_WORD.findall(_LITERAL.sub(" ", text.decode("utf-8", "replace"))))


def items_of(tree: Tree, is_program: bool) -> Iterator[Item]:
    """Yield the items of a file; raise a CompilationFailed with the line where its structure is not clear."""
    for node in _outermost(tree.root):
        item = _item(node, tree, is_program)
        if item is not None:
            yield item


def _outermost(node: Node) -> Iterator[Node]:
    if node.type not in _CONTAINERS or node.type == "linkage_specification" and not _has_list(node):
        yield node
        return
    for child in node.children:
        yield from _outermost(child)


def _has_list(node: Node) -> bool:
    return any(child.type == "declaration_list" for child in node.children)


def _item(node: Node, tree: Tree, is_program: bool) -> Item | None:
    """Return the item of a node; None for what has no meaning by itself: directives, comments, brackets."""
    inner = _inner(node)
    if inner.type == "function_definition":
        return _function(node, inner, tree, is_program)
    if inner.type == "ERROR" or inner.type == "expression_statement":
        return _macro_call(node, tree)
    if inner.type == "template_instantiation":
        return Item(tree, node, f"instance of {_title(inner, tree)}", "keep" if _is_device(inner, tree) else "cut")
    if inner.type in ("declaration", "field_declaration"):
        return _declaration(node, inner, tree, is_program)
    if inner.type in (
        *_TYPES,
        "type_definition",
        "alias_declaration",
        "namespace_alias_definition",
        "concept_definition",
    ):
        return _type(node, inner, tree, is_program)
    if inner.type == "using_declaration":
        of_host = re.match(r"using\s+(namespace\s+)?(::)?std\b", tree.text(inner))
        return Item(tree, node, " ".join(tree.text(inner).split()), "cut" if of_host else "keep")
    return Item(tree, node, "static_assert", "cut") if inner.type == "static_assert_declaration" else None


def _inner(node: Node) -> Node:
    """Return what a template or `extern "C"` declares."""
    while node.type in ("template_declaration", "linkage_specification"):
        following = [child for child in node.named_children if child.type not in _BEFORE]
        if not following:
            break
        node = following[-1]
    return node


_BEFORE = ("template_parameter_list", "string_literal", "requires_clause", "comment")


def _is_device(node: Node, tree: Tree) -> bool:
    return bool(tree.specifiers(node) & DEVICE)


def _title(node: Node, tree: Tree) -> str:
    return function_name(node, tree) or tree.text(node).split("(")[0].split("\n")[0][:40]


def _function(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    name = function_name(inner, tree) or ""
    specifiers = tree.specifiers(inner)
    names = frozenset(_WORD.findall(name)[-1:])
    if specifiers & DEVICE:
        return Item(tree, node, f"function {name}", "keep", names)
    _require_whole(node, tree)
    depends = b"constexpr" in specifiers or not is_program and b"__host__" not in specifiers
    return Item(tree, node, f"function {_title(inner, tree)}", "reached" if depends else "cut", names)


def _require_whole(node: Node, tree: Tree) -> None:
    """Raise a CompilationFailed where brackets do not match: a macro hides some, and the end is somewhere else."""
    text = _LITERAL.sub(" ", tree.text(node))
    for pair in ("{}", "()"):
        if text.count(pair[0]) != text.count(pair[1]):
            raise unclear(node, tree)


def unclear(node: Node, tree: Tree) -> CompilationFailed:
    """Return the error for code whose structure is not clear, with the line that is in the way."""
    defect = first_defect(node) or node
    line = tree.code.decode("utf-8", "replace").splitlines()[defect.start_point[0]].strip()
    return CompilationFailed(
        f"{tree.path}:{line_of(defect)}: cannot separate host code from device code at '{line[:60]}': the brackets do "
        'not match without the preprocessor. compiler="nvcc" in the spec takes the file as it is'
    )


def _macro_call(node: Node, tree: Tree) -> Item:
    """Return the side of `INSTANTIATE(float)`: the device's where the macro holds `__device__` or `__global__`."""
    call = _CALL.match(tree.text(node).strip())
    if call is None:
        raise unclear(node, tree)
    words = expanded(call[1].encode(), tree.macros)
    if words & DEVICE and b"<<<" in words:
        raise unclear(node, tree)
    return Item(tree, node, f"macro {call[1]}", "keep" if words & DEVICE else "cut")


def _declaration(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    specifiers = tree.specifiers(inner)
    words = set(
        re.findall(rb"__(?:constant|device|global|shared|managed)__", tree.code[inner.start_byte : inner.end_byte])
    )
    declarators = [child for index, child in enumerate(inner.children)
                   if inner.field_name_for_child(index) == "declarator"]  # fmt: skip
    names = frozenset(tree.text(n) for one in declarators for n in [next(nodes_of(one, *_NAMES), None)] if n)
    title = ", ".join(sorted(names)) or tree.text(inner).split("{")[0].strip()[:40]
    if words or specifiers & DEVICE:
        return Item(tree, node, f"variable {title}", "keep", names)
    if any(one.type == "function_declarator" for one in declarators) and is_program:
        return Item(tree, node, f"declaration of {title}", "reached" if b"constexpr" in specifiers else "cut", names)
    own = [child for child in inner.children if child.type in _TYPES]
    return Item(tree, node, f"variable {title}", "reached", names.union(*(_type_names(one, tree) for one in own)))


def _type(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    first_line = tree.text(inner).split("{")[0].split("=")[0].split(";")[0]
    names = _type_names(inner, tree)
    parts = tuple(_methods(inner, tree)) if is_program else ()
    body = _LITERAL.sub(" ", tree.text(inner))
    side: Side = "keep" if "__device__" in body or "__global__" in body or _has_specifier(inner, tree) else "reached"
    return Item(tree, node, " ".join(first_line.split())[:60], side, names, parts)


def _has_specifier(node: Node, tree: Tree) -> bool:
    """Return whether a function of the class is the device's by a macro."""
    return any(_is_device(one, tree) for one in nodes_of(node, "function_definition"))


def _type_names(node: Node, tree: Tree) -> frozenset[str]:
    """Return the names that a type's declaration declares: its own, those of enumerators, those of a typedef."""
    named = [node.child_by_field_name("name")]
    named += list(nodes_of(node, "enumerator"))
    if node.type == "type_definition":
        named += [child for child in node.children if child.type == "type_identifier"]
        named += [one for child in node.children if child.type in _TYPES for one in [child.child_by_field_name("name")]]
        named += [next(nodes_of(one, *_NAMES)) for one in node.children if one.type.endswith("_declarator")]
    found = (_WORD.match(tree.text(one).split("::")[-1]) for one in named if one is not None)
    return frozenset(match[0] for match in found if match)


def _methods(node: Node, tree: Tree) -> Iterator[Item]:
    """Yield the functions of a class that only the host can call."""
    body = node.child_by_field_name("body")
    for member in body.children if body is not None else ():
        inner = _inner(member)
        declares = inner.type in ("function_definition", "declaration", "field_declaration")
        head = next(nodes_of(inner, "function_declarator"), None) if declares else None
        if head is None or head.child_by_field_name("declarator").type == "parenthesized_declarator":
            continue  # a pointer to a function is data
        specifiers = tree.specifiers(inner)
        default = any(one.type in ("default_method_clause", "delete_method_clause") for one in inner.children)
        if not (specifiers & (DEVICE | {b"constexpr"}) or default):
            yield Item(tree, member, f"function {_title(inner, tree)}", "cut")
