"""Syntax trees of CUDA C++ by tree-sitter's grammar, and the declarations at a file's outermost level."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from prism_bench.errors import BackendUnavailable, CompilationFailed

# Syntax trees of CUDA C++, by tree-sitter's grammar.

# A node of a tree: tree_sitter.Node, which is imported only where a file is read.
Node = Any
# Attributes that the grammar does not know; blanked before it sees them, in the text's own length.
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
    """A `#define`: whether it takes arguments, the words of its replacement, and whether it has nothing but words.

    `is_specifiers` is whether all of them are specifiers such as `__device__`.
    """

    takes_arguments: bool
    words: frozenset[bytes]
    only_words: bool = False
    is_specifiers: bool = False


@dataclass(frozen=True)
class MacroCall:
    """A macro with arguments alone on its lines, outside of functions: `INSTANTIATE(float)`; the parser did not see it.

    `is_device` is whether what it is made of holds `__device__` or `__global__`.
    """

    name: str
    start: int
    end: int
    is_device: bool


@dataclass
class Tree:
    """A parsed source. `masked` are specifier macros that the parser did not see: start, end and what they mean."""

    path: Path
    code: bytes
    root: Node
    macros: dict[bytes, Macro]
    masked: list[tuple[int, int, frozenset[bytes]]] = field(default_factory=list[tuple[int, int, frozenset[bytes]]])
    calls: list[MacroCall] = field(default_factory=list[MacroCall])

    def text(self, node: Node) -> str:
        """Return the source text of a node."""
        return self.code[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def specifiers(self, node: Node) -> frozenset[bytes]:
        """Return the specifiers of a declaration or function, those in macros too: the words before its body."""
        body = node.child_by_field_name("body")
        end = body.start_byte if body else node.end_byte
        found = set(_WORD.findall(self.code[node.start_byte : end])) & _SPECIFIERS
        for start, stop, words in self.masked:
            found |= words if self.first_byte(node) <= start and stop <= end else set()
        return frozenset(found)

    def first_byte(self, node: Node) -> int:
        """Return where a node begins, with the masked macros before it."""
        start = node.start_byte
        for begin, stop, _ in reversed(self.masked):
            if stop <= start and not self.code[stop:start].strip():
                start = begin
        return start


def parse(path: Path, code: bytes, macros: dict[bytes, Macro] | None = None) -> Tree:
    """Return the syntax tree of CUDA C++; `macros` are those of the headers before it."""
    known = _resolved({**(macros or {}), **macros_of(code)})
    text, masked = _masked(code, known)
    calls = _lone_calls(text, known)
    for call in calls:
        _blank(text, call.start, call.end)
    return Tree(path, code, _parser().parse(bytes(text)).root_node, known, masked, calls)


def _expanded(name: bytes, macros: dict[bytes, Macro]) -> set[bytes]:
    """Return the words that a macro is made of, through other macros."""
    words: set[bytes] = set()
    waiting = [name]
    while waiting:
        macro = macros.get(waiting.pop())
        fresh = macro.words - words if macro else set[bytes]()
        words |= fresh
        waiting += fresh
    return words


def _lone_calls(text: bytearray, macros: dict[bytes, Macro]) -> list[MacroCall]:
    """Return the macros with arguments that begin a line and have nothing behind them: no `;`, no body."""
    found: list[MacroCall] = []
    for match in _LONE.finditer(text):
        name = match[1]
        known = macros.get(name)
        if (known.takes_arguments if known else name.isupper()) and text[match.end() :].lstrip()[:1] not in (
            b"{",
            b":",
        ):
            is_device = bool(_expanded(name, macros) & _DEVICE)
            found.append(MacroCall(name.decode(), match.start(), match.end(), is_device))
    return found


def macros_of(code: bytes) -> dict[bytes, Macro]:
    """Return the macros that a text defines; of two definitions the last one."""
    found: dict[bytes, Macro] = {}
    for match in _DEFINE.finditer(code):
        words = frozenset(_WORD.findall(match[3]))
        value = re.sub(rb"//.*|/\*.*?\*/", b"", match[3])
        only_words = not match[2] and not re.search(rb"[^\w\s\\]", value)
        found[match[1]] = Macro(bool(match[2]), words, only_words)
    return found


def _resolved(macros: dict[bytes, Macro]) -> dict[bytes, Macro]:
    """Return the macros with those that are made of specifier macros counted among them."""
    known = dict(macros)
    for _ in range(4):  # HD made of DEVICE made of __device__
        plain = {name: macro.words for name, macro in known.items() if macro.is_specifiers}
        for name, macro in known.items():
            if macro.only_words and macro.words and macro.words <= _SPECIFIERS | plain.keys():
                words = frozenset(w for word in macro.words for w in plain.get(word, {word}))
                known[name] = Macro(macro.takes_arguments, words, True, True)
    return known


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, in the order of the source."""
    yield node
    for child in node.children:
        yield from walk(child)


def nodes_of(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the nodes of these kinds at and below a node."""
    return (one for one in walk(node) if one.type in kinds)


def line_of(node: Node) -> int:
    """Return the line that a node begins in; the first is 1."""
    return node.start_point[0] + 1


def first_defect(node: Node) -> Node | None:
    """Return the first node that the parser could not make sense of, or None."""
    if not node.has_error:
        return None
    return next((one for one in walk(node) if one.type == "ERROR" or one.is_missing), node)


def _masked(code: bytes, macros: dict[bytes, Macro]) -> tuple[bytearray, list[tuple[int, int, frozenset[bytes]]]]:
    """Return the code with specifier macros and unknown attributes blanked, and where they were."""
    text, masked = bytearray(code), []
    directives = [match.span() for match in _DEFINE.finditer(code)]
    for match in _ATTRIBUTES.finditer(code):
        _blank(text, match.start(), match.end())
        masked.append((match.start(), match.end(), frozenset()))
    names = {name for name, macro in macros.items() if macro.is_specifiers}
    for match in _WORD.finditer(code) if names else ():
        if match[0] in names and not any(start <= match.start() < end for start, end in directives):
            _blank(text, match.start(), match.end())
            masked.append((match.start(), match.end(), macros[match[0]].words))
    return text, sorted(masked, key=lambda one: one[0])


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
    """Return the name of a function definition or declaration; None where a macro makes it."""
    for declarator in nodes_of(node, "function_declarator"):
        name = declarator.child_by_field_name("declarator")
        if name is not None and name.type == "template_function":
            name = name.child_by_field_name("name")
        if name is not None and name.type in ("identifier", "field_identifier", "qualified_identifier"):
            return tree.text(name)
        return None
    return None


# Declarations of a CUDA C++ file at its outermost level: which belong to the device, and which names they declare.

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
_ITEMS_WORD = re.compile(r"[A-Za-z_]\w*")


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
        return frozenset(_ITEMS_WORD.findall(_LITERAL.sub(" ", text.decode("utf-8", "replace"))))


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
    return bool(tree.specifiers(node) & _DEVICE)


def _title(node: Node, tree: Tree) -> str:
    return function_name(node, tree) or tree.text(node).split("(")[0].split("\n")[0][:40]


def _function(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    name = function_name(inner, tree) or ""
    specifiers = tree.specifiers(inner)
    names = frozenset(_ITEMS_WORD.findall(name)[-1:])
    if specifiers & _DEVICE:
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
    words = _expanded(call[1].encode(), tree.macros)
    if words & _DEVICE and b"<<<" in words:
        raise unclear(node, tree)
    return Item(tree, node, f"macro {call[1]}", "keep" if words & _DEVICE else "cut")


def _declaration(node: Node, inner: Node, tree: Tree, is_program: bool) -> Item:
    specifiers = tree.specifiers(inner)
    words = set(
        re.findall(rb"__(?:constant|device|global|shared|managed)__", tree.code[inner.start_byte : inner.end_byte])
    )
    declarators = [
        child for index, child in enumerate(inner.children) if inner.field_name_for_child(index) == "declarator"
    ]
    names = frozenset(tree.text(n) for one in declarators for n in [next(nodes_of(one, *_NAMES), None)] if n)
    title = ", ".join(sorted(names)) or tree.text(inner).split("{")[0].strip()[:40]
    if words or specifiers & _DEVICE:
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
    found = (_ITEMS_WORD.match(tree.text(one).split("::")[-1]) for one in named if one is not None)
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
        if not (specifiers & (_DEVICE | {b"constexpr"}) or default):
            yield Item(tree, member, f"function {_title(inner, tree)}", "cut")
