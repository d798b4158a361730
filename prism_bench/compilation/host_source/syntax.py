"""Syntax trees of CUDA C++ by tree-sitter's grammar, and the declarations at a file's outermost level."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from prism_bench.errors import BackendUnavailable, CompilationFailed

# Trees.

# A node of a tree: tree_sitter.Node, which is imported only when a file is read.
Node = Any
# Attributes that the grammar does not know; they become blanks of the same length before parsing.
_ATTRIBUTES = re.compile(
    rb"__(?:cluster_dims|maxnreg|block_size|minnctapersm)__\s*\((?:[^()]|\([^()]*\))*\)|__grid_constant__\b"
)
_DEVICE = frozenset({b"__device__", b"__global__"})
_WORD = re.compile(rb"[A-Za-z_]\w*")
_LONE = re.compile(rb"^(\w+)[ \t]*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)[ \t]*(?://[^\n]*)?$", re.MULTILINE)
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?((?:[^\n\\]|\\.|\\\r?\n)*)", re.MULTILINE)
_SPECIFIERS = frozenset(
    b"__device__ __global__ __host__ __forceinline__ __noinline__ __inline__ inline static constexpr const extern "
    b"__restrict__ __restrict restrict volatile".split()
)


@dataclass(frozen=True)
class Macro:
    """A `#define` with the identifiers of its replacement.

    `only_identifiers`: the replacement has nothing else; `is_specifiers`: all are specifiers such as `__device__`.
    """

    takes_arguments: bool
    identifiers: frozenset[bytes]
    only_identifiers: bool = False
    is_specifiers: bool = False


@dataclass(frozen=True)
class _MacroCall:
    """A call of a macro as a line outside of functions, `INSTANTIATE(float)`; hidden from the parser.

    `is_device`: the macro expands to `__device__` or `__global__`, directly or through other macros.
    """

    name: str
    start: int
    end: int
    is_device: bool


@dataclass
class Tree:
    """A parsed source. `masked` are specifier macros hidden from the parser: start, end and their specifiers."""

    path: Path
    code: bytes
    root: Node
    macros: dict[bytes, Macro]
    masked: list[tuple[int, int, frozenset[bytes]]] = field(default_factory=list[tuple[int, int, frozenset[bytes]]])
    calls: list[_MacroCall] = field(default_factory=list[_MacroCall])

    def text(self, node: Node) -> str:
        """Return the source text of a node."""
        return self.code[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def specifiers(self, node: Node) -> frozenset[bytes]:
        """Return the specifiers of a declaration or function before its body, those in macros too."""
        body = node.child_by_field_name("body")
        end = body.start_byte if body else node.end_byte
        specifiers = set(_WORD.findall(self.code[node.start_byte : end])) & _SPECIFIERS
        for start, stop, of_macro in self.masked:
            specifiers |= of_macro if self.first_byte(node) <= start and stop <= end else set()
        return frozenset(specifiers)

    def first_byte(self, node: Node) -> int:
        """Return the first byte of a node, with the masked macros before it."""
        start = node.start_byte
        for begin, stop, _ in reversed(self.masked):
            if stop <= start and not self.code[stop:start].strip():
                start = begin
        return start


def parse(path: Path, code: bytes, macros: dict[bytes, Macro] | None = None) -> Tree:
    """Return the syntax tree of CUDA C++; `macros` are the macros of the headers before it."""
    known = _with_specifiers({**(macros or {}), **macros_of(code)})
    text, masked = _masked(code, known)
    calls = _lone_calls(text, known)
    for call in calls:
        _blank(text, call.start, call.end)
    return Tree(path, code, _parser().parse(bytes(text)).root_node, known, masked, calls)


def _expanded(name: bytes, macros: dict[bytes, Macro]) -> set[bytes]:
    """Return the identifiers that a macro expands to, directly or through other macros."""
    identifiers: set[bytes] = set()
    waiting = [name]
    while waiting:
        macro = macros.get(waiting.pop())
        fresh = macro.identifiers - identifiers if macro else set[bytes]()
        identifiers |= fresh
        waiting += fresh
    return identifiers


def _lone_calls(text: bytearray, macros: dict[bytes, Macro]) -> list[_MacroCall]:
    """Return the calls of macros that begin a line and have nothing after them: no `;`, no body."""
    calls: list[_MacroCall] = []
    for match in _LONE.finditer(text):
        name = match[1]
        macro, following = macros.get(name), text[match.end() :].lstrip()[:1]
        if (macro.takes_arguments if macro else name.isupper()) and following not in (b"{", b":"):
            is_device = bool(_expanded(name, macros) & _DEVICE)
            calls.append(_MacroCall(name.decode(), match.start(), match.end(), is_device))
    return calls


def macros_of(code: bytes) -> dict[bytes, Macro]:
    """Return the macros that a text defines; of two definitions the last."""
    macros: dict[bytes, Macro] = {}
    for match in _DEFINE.finditer(code):
        identifiers = frozenset(_WORD.findall(match[3]))
        value = re.sub(rb"//.*|/\*.*?\*/", b"", match[3])
        only_identifiers = not match[2] and not re.search(rb"[^\w\s\\]", value)
        macros[match[1]] = Macro(bool(match[2]), identifiers, only_identifiers)
    return macros


def _with_specifiers(macros: dict[bytes, Macro]) -> dict[bytes, Macro]:
    """Return the macros with `is_specifiers` set, directly or through other macros, and such macros expanded."""
    known = dict(macros)
    for _ in range(4):  # HD made of DEVICE made of __device__
        plain = {name: macro.identifiers for name, macro in known.items() if macro.is_specifiers}
        for name, macro in known.items():
            if macro.only_identifiers and macro.identifiers and macro.identifiers <= _SPECIFIERS | plain.keys():
                expanded = frozenset(w for word in macro.identifiers for w in plain.get(word, {word}))
                known[name] = Macro(macro.takes_arguments, expanded, True, True)
    return known


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and its descendants, in the order of the source."""
    waiting = [node]  # no recursion: a stranger's expression may be nested thousands deep
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting += reversed(inner.children)


def nodes_of(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the node and its descendants that are of these kinds."""
    return (inner for inner in walk(node) if inner.type in kinds)


def line_of(node: Node) -> int:
    """Return the line in which a node begins, from 1."""
    return node.start_point[0] + 1


def first_defect(node: Node) -> Node | None:
    """Return the first node that the parser could not understand, or None."""
    if not node.has_error:
        return None
    return next((inner for inner in walk(node) if inner.type == "ERROR" or inner.is_missing), node)


def _masked(code: bytes, macros: dict[bytes, Macro]) -> tuple[bytearray, list[tuple[int, int, frozenset[bytes]]]]:
    """Return the code with blanks for specifier macros and unknown attributes, and their start, end and specifiers."""
    text, masked = bytearray(code), []
    directives = [match.span() for match in _DEFINE.finditer(code)]
    for match in _ATTRIBUTES.finditer(code):
        _blank(text, match.start(), match.end())
        masked.append((match.start(), match.end(), frozenset()))
    names = {name for name, macro in macros.items() if macro.is_specifiers}
    for match in _WORD.finditer(code) if names else ():
        if match[0] in names and not any(start <= match.start() < end for start, end in directives):
            _blank(text, match.start(), match.end())
            masked.append((match.start(), match.end(), macros[match[0]].identifiers))
    return text, sorted(masked, key=lambda macro: macro[0])


def _blank(text: bytearray, start: int, end: int) -> None:
    """Replace all but line ends by blanks."""
    text[start:end] = re.sub(rb"[^\r\n]", b" ", bytes(text[start:end]))


@cache
def _parser() -> Any:
    try:
        import tree_sitter
        import tree_sitter_cuda
    except ImportError as error:
        raise BackendUnavailable(
            f"{error.name} is not installed, which reads CUDA C++ of other projects; pip install tree-sitter "
            "tree-sitter-cuda. Sources without host code work without it"
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def function_name(node: Node, tree: Tree) -> str | None:
    """Return the name of a function definition or declaration; None if a macro makes it."""
    for declarator in nodes_of(node, "function_declarator"):
        name = declarator.child_by_field_name("declarator")
        if name is not None and name.type == "template_function":
            name = name.child_by_field_name("name")
        if name is not None and name.type in ("identifier", "field_identifier", "qualified_identifier"):
            return tree.text(name)
        return None
    return None


# Declarations at a file's outermost level: their side, device or host, and the names that they declare.

# keep: of the device; cut: of the host; reached: of the device if something of the device names it.
Side = Literal["keep", "cut", "reached"]
_CONTAINERS = (
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
)  # fmt: skip
_BEFORE = ("template_parameter_list", "string_literal", "requires_clause", "comment")  # what a template declares
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
_NAMES = ("identifier", "type_identifier", "namespace_identifier", "field_identifier")
_CALL = re.compile(r"^(\w+)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*;?$", re.DOTALL)
_LITERAL = re.compile(r"""R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Item:
    """A declaration: its node, its description in a list of cuts, its side, and the names that it declares."""

    tree: Tree
    node: Node
    what: str
    side: Side
    names: frozenset[str] = frozenset()
    parts: tuple["Item", ...] = ()  # functions of a class, each with its own side

    def holds(self, byte: int) -> bool:
        """Return whether a byte of the file is within the declaration."""
        return self.node.start_byte <= byte < self.node.end_byte

    @property
    def identifiers(self) -> frozenset[str]:
        """Return the names that the text uses, without those of parts that are cut."""
        text = bytearray(self.tree.code[self.node.start_byte : self.node.end_byte])
        for part in self.parts:
            if part.side == "cut":
                start = part.node.start_byte - self.node.start_byte
                text[start : part.node.end_byte - self.node.start_byte] = b" "
        return frozenset(_IDENTIFIER.findall(_LITERAL.sub(" ", text.decode("utf-8", "replace"))))


def items_of(tree: Tree, is_program: bool) -> Iterator[Item]:
    """Yield the items of a file; raise CompilationFailed with the line if its structure is not clear."""
    for node in _outermost(tree.root):
        item = _item(node, tree, is_program)
        if item is not None:
            yield item


def _outermost(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        has_list = any(child.type == "declaration_list" for child in node.children)
        if node.type in _CONTAINERS and (node.type != "linkage_specification" or has_list):
            waiting += reversed(node.children)
        else:
            yield node


def _item(node: Node, tree: Tree, is_program: bool) -> Item | None:
    """Return the item of a node; None for directives, comments and brackets."""
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
    """Return the declaration in a template or `extern "C"`."""
    while node.type in ("template_declaration", "linkage_specification"):
        following = [child for child in node.named_children if child.type not in _BEFORE]
        if not following:
            break
        node = following[-1]
    return node


def _is_device(node: Node, tree: Tree) -> bool:
    return bool(tree.specifiers(node) & _DEVICE)


def _title(node: Node, tree: Tree) -> str:
    return function_name(node, tree) or tree.text(node).split("(")[0].split("\n")[0][:40]


def _function(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    name = function_name(inner, tree) or ""
    specifiers = tree.specifiers(inner)
    names = frozenset(_IDENTIFIER.findall(name)[-1:])
    if specifiers & _DEVICE:
        return Item(tree, node, f"function {name}", "keep", names)
    text = _LITERAL.sub(" ", tree.text(node))
    if any(text.count(opening) != text.count(closing) for opening, closing in ("{}", "()")):
        raise _unclear(node, tree)  # a macro hides some brackets, and the function ends somewhere else
    depends = b"constexpr" in specifiers or not is_program and b"__host__" not in specifiers
    return Item(tree, node, f"function {_title(inner, tree)}", "reached" if depends else "cut", names)


def _unclear(node: Node, tree: Tree) -> CompilationFailed:
    """Return the error for code whose structure is not clear, with the line that prevents the separation."""
    defect = first_defect(node) or node
    line = tree.code.decode("utf-8", "replace").splitlines()[defect.start_point[0]].strip()
    return CompilationFailed(
        f"{tree.path}:{line_of(defect)}: cannot separate host code from device code at '{line[:60]}': the brackets do "
        'not match without the preprocessor. compiler="nvcc" in the spec takes the file as it is'
    )


def _macro_call(node: Node, tree: Tree) -> Item:
    """Return the item of `INSTANTIATE(float)`, kept if the macro expands to `__device__` or `__global__`."""
    call = _CALL.match(tree.text(node).strip())
    if call is None:
        raise _unclear(node, tree)
    identifiers = _expanded(call[1].encode(), tree.macros)
    if identifiers & _DEVICE and b"<<<" in identifiers:
        raise _unclear(node, tree)
    return Item(tree, node, f"macro {call[1]}", "keep" if identifiers & _DEVICE else "cut")


def _declaration(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    specifiers = tree.specifiers(inner)
    code = tree.code[inner.start_byte : inner.end_byte]
    has_memory_space = re.search(rb"__(?:constant|device|global|shared|managed)__", code)
    declarators = [
        child for index, child in enumerate(inner.children) if inner.field_name_for_child(index) == "declarator"
    ]
    name_nodes = [next(nodes_of(declarator, *_NAMES), None) for declarator in declarators]
    names = frozenset(tree.text(name) for name in name_nodes if name)
    title = ", ".join(sorted(names)) or tree.text(inner).split("{")[0].strip()[:40]
    if has_memory_space or specifiers & _DEVICE:
        return Item(tree, node, f"variable {title}", "keep", names)
    if is_program and any(declarator.type == "function_declarator" for declarator in declarators):
        return Item(tree, node, f"declaration of {title}", "reached" if b"constexpr" in specifiers else "cut", names)
    types = [child for child in inner.children if child.type in _TYPES]
    return Item(tree, node, f"variable {title}", "reached", names.union(*(_type_names(inner, tree) for inner in types)))


def _type(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    first_line = tree.text(inner).split("{")[0].split("=")[0].split(";")[0]
    names = _type_names(inner, tree)
    parts = tuple(_methods(inner, tree)) if is_program else ()
    body = _LITERAL.sub(" ", tree.text(inner))
    is_device = "__device__" in body or "__global__" in body
    if not is_device:  # a function may be the device's by a macro
        is_device = any(_is_device(function, tree) for function in nodes_of(inner, "function_definition"))
    side: Side = "keep" if is_device else "reached"
    return Item(tree, node, " ".join(first_line.split())[:60], side, names, parts)


def _type_names(node: Node, tree: Tree) -> frozenset[str]:
    """Return the names that a type's declaration declares: of the type, of enumerators, of a typedef."""
    named = [node.child_by_field_name("name"), *nodes_of(node, "enumerator")]
    if node.type == "type_definition":
        named += [child for child in node.children if child.type == "type_identifier"]
        named += [child.child_by_field_name("name") for child in node.children if child.type in _TYPES]
        named += [next(nodes_of(child, *_NAMES)) for child in node.children if child.type.endswith("_declarator")]
    matches = (_IDENTIFIER.match(tree.text(name).split("::")[-1]) for name in named if name is not None)
    return frozenset(match[0] for match in matches if match)


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
        default = any(child.type in ("default_method_clause", "delete_method_clause") for child in inner.children)
        if not (specifiers & (_DEVICE | {b"constexpr"}) or default):
            yield Item(tree, member, f"function {_title(inner, tree)}", "cut")
