"""Names that the CUDA files of a project define: constants, macros, short functions and types."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, nodes_of, parse
from prism_bench.extensions.init.sources.kernels import dtype_of

# Macros that hold a launch or a kernel, expanded before a file is parsed: their lines stay where they are.

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?((?:[^\n\\]|\\.|\\\r?\n)*)", re.MULTILINE)
_HELD = re.compile(r"^for\s*\(|<<<|__global__|\bcu(?:da)?LaunchKernel|\bcudaLaunchCooperativeKernel")
_DEEPEST = 6  # macros within macros
_MOST_EXPANDED = 1 << 20  # characters of a file after its macros were expanded


@dataclass(frozen=True)
class Macro:
    """A `#define`: its parameters, None without brackets, and its replacement in one line."""

    parameters: tuple[str, ...] | None
    body: str

    def expanded(self, arguments: list[str]) -> str:
        """Return the replacement with the arguments in the place of the parameters."""
        parameters = self.parameters or ()
        values = dict(zip(parameters, arguments, strict=False))
        if parameters and parameters[-1] == "...":
            values["__VA_ARGS__"] = ", ".join(arguments[len(parameters) - 1 :])
        text = re.sub(r"\s*##\s*", "##", self.body)
        text = re.sub(r"(?<!#)#[ \t]*(\w+)", lambda match: f'"{values.get(match[1], match[1])}"', text)
        return re.sub(r"\b\w+\b", lambda match: values.get(match[0], match[0]), text).replace("##", "")


def macros_in(text: str) -> dict[str, Macro]:
    """Return the macros that a text defines; of two definitions the first."""
    macros: dict[str, Macro] = {}
    for match in _DEFINE.finditer(text):
        parameters = None if match[2] is None else tuple(filter(None, (p.strip() for p in match[2][1:-1].split(","))))
        body = re.sub(r"/\*.*?\*/|//[^\n]*", " ", match[3].replace("\\\r\n", " ").replace("\\\n", " "))
        macros.setdefault(match[1], Macro(parameters, body.strip()))
    return macros


def with_expanded_macros(text: str, macros: Mapping[str, Macro]) -> str:
    """Return the text with the calls of macros expanded that hold a launch or a kernel; every line keeps its number."""
    holding = {name for name, macro in macros.items() if macro.parameters is not None and _HELD.search(macro.body)}
    for _ in range(_DEEPEST):
        outer = {name for name, macro in macros.items() if macro.parameters and _names_in(macro.body) & holding}
        if outer <= holding:
            break
        holding |= outer
    if not holding:
        return text
    call = re.compile(rf"\b({'|'.join(map(re.escape, sorted(holding)))})[ \t]*\(")
    for _ in range(_DEEPEST):
        spans = [match.span() for match in _DEFINE.finditer(text)]
        parts, end = list[str](), 0
        for match in call.finditer(text):
            if match.start() < end or any(start <= match.start() < stop for start, stop in spans):
                continue
            arguments, stop = _arguments_at(text, match.end())
            if arguments is None:
                continue
            written = text[match.start() : stop]
            parts += [text[end : match.start()], macros[match[1]].expanded(arguments), "\n" * written.count("\n")]
            end = stop
        if not parts or len(text) > _MOST_EXPANDED:
            break
        text = "".join([*parts, text[end:]])
    return text


def _names_in(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def _arguments_at(text: str, start: int) -> tuple[list[str] | None, int]:
    """Return the arguments of a macro's call after its opening bracket, and the end; None if it does not end."""
    depth, begin, arguments = 0, start, list[str]()
    for place in range(start, len(text)):
        letter = text[place]
        if letter in "([{":
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
        elif letter == "," and not depth or letter == ")":
            arguments.append(" ".join(text[begin:place].split()))
            begin = place + 1
            if letter == ")":
                return arguments, place + 1
    return None, len(text)


# Definitions at the outermost level of files, seen without options of a compiler.

_INSIDE = (
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
)  # fmt: skip
_CLASSES = ("struct_specifier", "class_specifier", "enum_specifier", "union_specifier")


@dataclass(frozen=True)
class ShortFunction:
    """A function or macro that is one expression over its parameters."""

    parameters: tuple[str, ...]
    result: Node


@dataclass(frozen=True)
class Structure:
    """A class that a file defines: its place, the types of its fields by name, and why a spec cannot pass it."""

    path: Path
    line: int
    fields: tuple[tuple[str, str], ...]
    problem: str


@dataclass
class Symbols:
    """Names that files define: macros, initialisers of constants, short functions, other names of types, classes.

    `instances` are template arguments of explicit instantiations by the name of the function, `memory` the spaces of
    variables in device memory: `__constant__` or `__device__`. `enumerators` are constants that enumerations define.
    """

    macros: dict[str, Macro] = field(default_factory=dict[str, Macro])
    constants: dict[str, Node | str] = field(default_factory=dict[str, Node | str])
    functions: dict[str, ShortFunction] = field(default_factory=dict[str, ShortFunction])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    classes: set[str] = field(default_factory=set[str])
    structures: dict[str, Structure] = field(default_factory=dict[str, Structure])
    instances: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    memory: dict[str, str] = field(default_factory=dict[str, str])
    enumerators: set[str] = field(default_factory=set[str])

    def with_others(self, other: "Symbols") -> "Symbols":
        """Return the names of both; of two definitions this one's."""
        return Symbols(
            {**other.macros, **self.macros},
            {**other.constants, **self.constants},
            {**other.functions, **self.functions},
            {**other.aliases, **self.aliases},
            self.classes | other.classes,
            {**other.structures, **self.structures},
            {**other.instances, **self.instances},
            {**other.memory, **self.memory},
            self.enumerators | other.enumerators,
        )

    def plain_type(self, text: str) -> str:
        """Return a type with its other names replaced: `floatX*` is `float*`."""
        for _ in range(_DEEPEST):
            replaced = re.sub(r"\b[A-Za-z_]\w*\b", lambda match: self._type_named(match[0]), text)
            if replaced == text:
                break
            text = replaced
        return text

    def _type_named(self, name: str) -> str:
        if name in self.aliases:
            return self.aliases[name]
        macro = self.macros.get(name)
        is_type = macro is not None and macro.parameters is None and dtype_of(macro.body) is not None
        return macro.body if macro is not None and is_type else name

    def value_of(self, name: str) -> Node | str | None:
        """Return the expression of a constant or of a macro without parameters; None for other names."""
        if name in self.constants:
            return self.constants[name]
        macro = self.macros.get(name)
        return expression(macro.body) if macro is not None and macro.parameters is None and macro.body else None

    def function(self, name: str) -> ShortFunction | None:
        """Return the function or the macro with parameters of this name, if it is one expression."""
        short = self.functions.get(name)
        macro = self.macros.get(name)
        if short is None and macro is not None and macro.parameters and (result := expression(macro.body)) is not None:
            short = ShortFunction(macro.parameters, result)
        return short


@cache
def expression(text: str) -> Node | None:
    """Return the syntax of an expression; None if the text is no expression."""
    root = parse(Path("expression"), f"auto value = {text};".encode()).root
    declared = next(nodes_of(root, "init_declarator"), None)
    value = declared.child_by_field_name("value") if declared is not None else None
    return None if root.has_error or value is None or root.child_count != 1 else value


def outermost(node: Node, defined: Mapping[str, object]) -> Iterator[Node]:
    """Yield what is outside of functions and classes; of conditional parts those without options of a compiler."""
    if node.type in ("preproc_ifdef", "preproc_if", "preproc_elif"):
        condition = node.child_by_field_name("condition") or node.child_by_field_name("name")
        alternative = node.child_by_field_name("alternative")
        if not _holds(node, text_of(condition) if condition is not None else "", defined):
            if alternative is not None:
                yield from outermost(alternative, defined)
            return
        for child in node.named_children:
            if child not in (condition, alternative):
                yield from outermost(child, defined)
    elif node.type in _INSIDE:
        for child in node.children:
            yield from outermost(child, defined)
    else:
        yield node


def _holds(node: Node, condition: str, defined: Mapping[str, object]) -> bool:
    """Return whether a conditional part is seen; an unknown condition holds."""
    if node.type == "preproc_ifdef":
        return node.children[0].type == "#ifndef" or condition in defined or condition == "__CUDACC__"
    name = re.fullmatch(r"defined\s*\(?\s*(\w+)\s*\)?", condition)
    if name:
        return name[1] in defined or name[1] == "__CUDACC__"
    return condition.strip() != "0"


def symbols_of(tree: Tree, macros: Mapping[str, Macro]) -> Symbols:
    """Return the names that a file defines; `macros` are its own."""
    symbols = Symbols(macros=dict(macros))
    for node in outermost(tree.root, macros):
        inner = node
        while inner.type == "template_declaration":
            inner = inner.named_children[-1]
        if inner.type == "function_definition":
            _add_function(symbols, inner, tree)
        elif inner.type == "alias_declaration":
            symbols.aliases[text_of(inner.child_by_field_name("name"))] = text_of(inner.child_by_field_name("type"))
        elif inner.type == "type_definition":
            named = inner.child_by_field_name("declarator")
            if named is not None and named.type == "type_identifier":
                kind = inner.child_by_field_name("type")
                symbols.aliases[text_of(named)] = text_of(kind).partition("{")[0] or text_of(named)
        elif inner.type == "template_instantiation":
            for called in nodes_of(inner, "template_function"):
                name = text_of(called.child_by_field_name("name")).rpartition("::")[2]
                symbols.instances.setdefault(name, []).append(called.child_by_field_name("arguments"))
        elif inner.type in ("declaration", *_CLASSES):
            _add_constants(symbols, inner)
        symbols.classes |= {
            text_of(kind.child_by_field_name("name"))
            for kind in (inner, *inner.named_children)
            if kind.type in _CLASSES and kind.child_by_field_name("name") is not None
        }
        for kind in (inner, *inner.named_children):
            named = inner.child_by_field_name("declarator") if inner.type == "type_definition" else None
            named = named or kind.child_by_field_name("name")
            if kind.type in ("struct_specifier", "class_specifier") and kind.child_by_field_name("body") and named:
                symbols.structures[text_of(named)] = _structure(kind, tree, is_template=inner is not node)
    return symbols


def _structure(node: Node, tree: Tree, *, is_template: bool) -> Structure:
    """Return the fields of a class; functions that are not virtual leave them where they are."""
    fields: list[tuple[str, str]] = []
    problems = ["is a template"] if is_template else []
    problems += ["has a base class"] if any(child.type == "base_class_clause" for child in node.named_children) else []
    problems += ["has its own alignment"] if re.search(r"\balignas\b|__align__", text_of(node)) else []
    for member in node.child_by_field_name("body").named_children:
        declared = [
            child for place, child in enumerate(member.children) if member.field_name_for_child(place) == "declarator"
        ]
        if "virtual" in text_of(member).split():
            problems.append("has a virtual function")
        elif member.type.startswith("preproc"):
            problems.append("has conditional fields")
        elif member.type == "field_declaration" and "static" not in text_of(member).split():
            kind = text_of(member.child_by_field_name("type"))
            odd = [child for child in declared if child.type not in ("field_identifier", "function_declarator")]
            odd += [child for child in member.named_children if child.type == "bitfield_clause"]
            problems += [f"has the field {text_of(member).rstrip(';')}, which is no number" for _ in odd]
            fields += [(text_of(child), kind) for child in declared if child.type == "field_identifier"]
    return Structure(tree.path, node.start_point[0] + 1, tuple(fields), next(iter(problems), ""))


def _add_constants(symbols: Symbols, node: Node) -> None:
    space = re.match(r"(?:\w+\s+)*?(__constant__|__device__)\s", text_of(node))
    if space and node.type == "declaration":
        declarator = node.child_by_field_name("declarator")
        name = next(nodes_of(declarator, "identifier"), None) if declarator is not None else None
        if name is not None and "constexpr" not in text_of(node).partition("=")[0]:
            symbols.memory[text_of(name)] = space[1]
            return
    for declared in node.named_children if node.type == "declaration" else ():
        if declared.type == "init_declarator":
            name, value = declared.child_by_field_name("declarator"), declared.child_by_field_name("value")
            if name.type == "identifier" and value is not None:
                symbols.constants[text_of(name)] = value
    for listed in nodes_of(node, "enumerator_list"):
        holder, following = listed.parent.child_by_field_name("name"), "0"
        for place, enumerator in enumerate(child for child in listed.named_children if child.type == "enumerator"):
            name, value = text_of(enumerator.child_by_field_name("name")), enumerator.child_by_field_name("value")
            following = text_of(value) if value is not None else following if place == 0 else f"{following} + 1"
            number: Node | str = expression(following) or following
            names = [name, f"{text_of(holder)}::{name}"] if holder is not None else [name]
            symbols.constants |= dict.fromkeys(names, number)
            symbols.enumerators.update(names)


def _add_function(symbols: Symbols, node: Node, tree: Tree) -> None:
    """Add a function that returns one expression."""
    name, short = function_name(node, tree), short_function(node)
    if name is not None and short is not None:
        symbols.functions.setdefault(name.rpartition("::")[2], short)


def short_function(node: Node) -> ShortFunction | None:
    """Return a function or lambda that is one `return`; None for others."""
    body, listed = node.child_by_field_name("body"), next(nodes_of(node, "parameter_list"), None)
    statements = [child for child in body.named_children if child.type != "comment"] if body is not None else []
    if len(statements) != 1 or statements[0].type != "return_statement" or not statements[0].named_children:
        return None
    declared = (child for child in (listed.named_children if listed else ()) if "parameter_declaration" in child.type)
    names = (next(nodes_of(child.child_by_field_name("declarator") or child, "identifier"), None) for child in declared)
    parameters = tuple(text_of(name) if name is not None else "" for name in names)
    return ShortFunction(parameters, statements[0].named_children[0])


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return node.text.decode("utf-8", "replace")
