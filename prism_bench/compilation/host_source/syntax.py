"""Syntax trees of CUDA C++, by tree-sitter's grammar."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from prism_bench.errors import BackendUnavailable

# A node of a tree: tree_sitter.Node, which is imported only where a file is read.
Node = Any
# Attributes that the grammar does not know; blanked before it sees them, in the text's own length.
_ATTRIBUTES = re.compile(
    rb"__(?:cluster_dims|maxnreg|block_size|minnctapersm)__\s*\((?:[^()]|\([^()]*\))*\)|__grid_constant__\b"
)
DEVICE = frozenset({b"__device__", b"__global__"})
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


def expanded(name: bytes, macros: dict[bytes, Macro]) -> set[bytes]:
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
            is_device = bool(expanded(name, macros) & DEVICE)
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
