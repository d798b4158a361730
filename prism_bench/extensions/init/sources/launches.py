"""Launches in CUDA C++ host code, as Python expressions over the parameters of the kernels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.kernels import FoundLaunch, Guess, Unread, dtype_of
from prism_bench.units import count_text

# Host expressions of a launch as Python over axes: names, numbers, sums, products, ceil divisions, dim3 of these.

_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%", "<<": "<<", ">>": ">>"}
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_CEIL_DIVISION = re.compile(
    r"(?i)^(?:\w+::)*(ceil_?div|cdiv|div_?up|up_?div|div_?ceil|ceil_?divide|div_?round_?up|i?div_?up|"
    r"(int_)?ceil_?div(ision)?|blocks_?for|get_?num_?blocks)$"
)
_EXTENT_TYPES = ("dim3", "uint3")
_LISTS = ("argument_list", "initializer_list", "parameter_list")
_CASTS = ("static_cast", "int", "unsigned", "size_t", "uint32_t", "int64_t", "long")
_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2,
          "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16}  # fmt: skip
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlLzZ]+$")
_DEEPEST = 12  # initialisers within initialisers


class NotSimple(Exception):
    """An expression that is no name, number, arithmetic or ceil division; the message has its text."""


@dataclass
class _HostNames:
    """What names mean where a launch is written.

    `passed` are host variables that the launch passes, with the kernel's own parameter for each. `values` are
    initialisers of local variables and constants, `macros` numbers that `#define` names. All other names are `free`:
    axes that the spec has to have.
    """

    tree: Tree
    passed: Mapping[str, str]
    values: Mapping[str, Node]
    macros: Mapping[str, str]
    free: dict[str, None] = field(default_factory=dict[str, None])

    def python(self, node: Node, depth: int = 0) -> str:
        """Return the expression as Python; raise NotSimple if it is not simple."""
        if depth > _DEEPEST:
            raise NotSimple("an initialiser refers to itself")
        reader = getattr(self, f"_{node.type}", None)
        if reader is None:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no name, number, arithmetic or ceil division")
        return reader(node, depth + 1)

    def extents(self, node: Node, depth: int = 0) -> tuple[str, ...]:
        """Return a grid or block as one to three expressions, from a number, a dim3 or a variable."""
        if node.type == "identifier" and self.tree.text(node) not in self.passed:
            value = self.values.get(self.tree.text(node))
            if value is not None and depth < _DEEPEST and self._is_several(value):
                return self.extents(value, depth + 1)
        if node.type in _LISTS:
            return self._several(node)
        if node.type != "identifier" and self._is_several(node):
            return self._several(node.child_by_field_name("arguments") or node.child_by_field_name("value"))
        return (self.python(node),)

    def _is_several(self, node: Node) -> bool:
        """Return whether a node is a dim3, an initialiser of a dim3, or a variable."""
        called = node.child_by_field_name("function") or node.child_by_field_name("type")
        of_call = node.type in ("call_expression", "compound_literal_expression") and called is not None
        return node.type in (*_LISTS, "identifier") or of_call and self.tree.text(called) in _EXTENT_TYPES

    def _several(self, node: Node) -> tuple[str, ...]:
        parts = tuple(map(self.python, arguments_in(node)))
        if not 1 <= len(parts) <= 3:
            raise NotSimple(f"'{_short(self.tree.text(node))}' has {count_text(len(parts), 'extent')}")
        while len(parts) > 1 and parts[-1] == "1":
            parts = parts[:-1]
        return parts

    def _identifier(self, node: Node, depth: int) -> str:
        name = self.tree.text(node)
        if name in self.passed:
            return self.passed[name]
        if name in self.macros:
            return self.macros[name]
        value = self.values.get(name)
        if value is not None:
            try:
                return self.python(value, depth)
            except NotSimple:
                pass  # a tensor's size, say: the name itself becomes an axis
        self.free[name] = None
        return name

    _type_identifier = _identifier  # `dim3 grid(n)` has the form of a function's declaration

    def _number_literal(self, node: Node, depth: int) -> str:
        text = _SUFFIX.sub("", self.tree.text(node).replace("'", ""))
        try:
            return str(int(text, 0) if not re.fullmatch(r"0[0-7]+", text) else int(text, 8))
        except ValueError:
            pass
        try:
            return str(int(number)) if (number := float(text.rstrip("fF"))).is_integer() else str(number)
        except ValueError as error:
            raise NotSimple(f"'{text}' is no number") from error

    def _parenthesized_expression(self, node: Node, depth: int) -> str:
        return self.python(node.named_children[0], depth)

    _condition_clause = _parenthesized_expression

    def _argument_list(self, node: Node, depth: int) -> str:
        """`const int n(4)` and `int n{4}`."""
        if len(node.named_children) != 1:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no single value")
        return self.python(node.named_children[0], depth)

    _initializer_list = _parameter_declaration = _argument_list

    def _binary_expression(self, node: Node, depth: int) -> str:
        left, right = (self.python(node.child_by_field_name(side), depth) for side in ("left", "right"))
        operator = node.child_by_field_name("operator").type
        if operator in _COMPARED:
            return f"({left} {operator} {right})"
        if operator not in _OPERATORS:
            raise NotSimple(f"'{_short(self.tree.text(node))}' has the operator {operator}")
        ceiling = _ceil_division(left, right) if operator == "/" else None
        return ceiling or f"({left} {_OPERATORS[operator]} {right})"

    def _unary_expression(self, node: Node, depth: int) -> str:
        if not self.tree.text(node).startswith("-"):
            raise NotSimple(f"'{_short(self.tree.text(node))}' has an operator that Python has not")
        return f"-{self.python(node.child_by_field_name('argument'), depth)}"

    def _conditional_expression(self, node: Node, depth: int) -> str:
        parts = (self.python(node.child_by_field_name(n), depth) for n in ("condition", "consequence", "alternative"))
        condition, yes, no = parts
        return f"({yes} if {condition} else {no})"

    def _cast_expression(self, node: Node, depth: int) -> str:
        return self.python(node.child_by_field_name("value"), depth)

    def _sizeof_expression(self, node: Node, depth: int) -> str:
        kind = node.child_by_field_name("type")
        dtype = dtype_of(self.tree.text(kind)) if kind is not None else None
        if dtype is None:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is not known without a compiler")
        return str(_BYTES[dtype])

    def _call_expression(self, node: Node, depth: int) -> str:
        name = self.tree.text(node.child_by_field_name("function"))
        arguments = arguments_in(node.child_by_field_name("arguments"))
        without_template = name.partition("<")[0]
        plain = without_template.rpartition("::")[2]
        if _CEIL_DIVISION.match(without_template) and len(arguments) == 2:
            return self._rounded_up(arguments, depth)
        if plain in ("min", "max") and len(arguments) == 2:
            left, right = (self.python(argument, depth) for argument in arguments)
            return f"{plain}({left}, {right})"
        if plain in ("ceil", "ceilf") and len(arguments) == 1 and (sides := _divided(arguments[0])):
            return self._rounded_up(sides, depth)
        if without_template in _CASTS and len(arguments) == 1:
            return self.python(arguments[0], depth)
        raise NotSimple(f"'{_short(self.tree.text(node))}' is a call that is not known")

    def _rounded_up(self, sides: Iterable[Node], depth: int) -> str:
        above, below = (self.python(side, depth) for side in sides)
        return f"-(-{above} // {below})"


def arguments_in(brackets: Node | None) -> list[Node]:
    """Return the expressions in the brackets of a call, a list or a launch, without comments."""
    return [child for child in brackets.named_children if child.type != "comment"] if brackets is not None else []


def _divided(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of a division, through brackets and casts."""
    while node.type in ("parenthesized_expression", "cast_expression"):
        node = node.child_by_field_name("value") or node.named_children[-1]
    if node.type == "binary_expression" and node.child_by_field_name("operator").type == "/":
        return node.child_by_field_name("left"), node.child_by_field_name("right")
    return None


def _ceil_division(above: str, below: str) -> str | None:
    """Return `(n + 256 - 1) / 256` and `(n + 255) / 256` as a ceil division of Python; None for other divisions."""
    match = re.fullmatch(r"\(\((.+) \+ (.+)\) - 1\)", above)
    if match and match[2] == below:
        return f"-(-{match[1]} // {below})"
    match = re.fullmatch(r"\((.+) \+ (\d+)\)", above)
    if match and below.isdigit() and int(match[2]) == int(below) - 1:
        return f"-(-{match[1]} // {below})"
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


# Launches `kernel<<<grid, block, shared, stream>>>(...)` of a file, as expressions over the kernel's parameters.

_BY_CALL = re.compile(r"\bcu(?:da)?Launch(?:Cooperative)?Kernel\w*\s*\(")
_NUMBER = re.compile(r"#[ \t]*define[ \t]+(\w+)[ \t]+\(?(\d+)[uU]?\)?[ \t]*(?://.*|/\*.*)?$", re.MULTILINE)
_USUAL_BLOCK, _USUAL_AXIS = 256, 1024


@dataclass(frozen=True)
class WrittenLaunch:
    """A launch in the source: the kernel's name, and the parts of the call."""

    tree: Tree
    node: Node

    @property
    def kernel(self) -> str:
        """The kernel's name without namespace and template arguments."""
        return self.tree.text(self._called).partition("<")[0].rpartition("::")[2].strip()

    @property
    def line(self) -> int:
        return line_of(self.node)

    @property
    def template_arguments(self) -> tuple[str, ...]:
        """The template arguments, as written."""
        listed = next(nodes_of(self._called, "template_argument_list"), None)
        return tuple(map(self.tree.text, listed.named_children)) if listed is not None else ()

    @property
    def arguments(self) -> list[Node]:
        """The arguments of the kernel."""
        return arguments_in(self.node.child_by_field_name("arguments"))

    @property
    def configuration(self) -> list[Node]:
        """Grid, block, shared memory and stream, without those left out."""
        return arguments_in(next(child for child in self.node.children if child.type == "kernel_call_syntax"))

    @property
    def _called(self) -> Node:
        return self.node.child_by_field_name("function")

    @cached_property
    def enclosing(self) -> Node | None:
        """The host function around the launch, or None."""
        return _function_around(self.node)


def written_launches(tree: Tree) -> tuple[list[WrittenLaunch], list[Unread]]:
    """Return the launches of a file in order, and the places with a launch in another form."""
    launches: list[WrittenLaunch] = []
    unread: list[Unread] = []
    for node in nodes_of(tree.root, "call_expression"):
        if any(child.type == "kernel_call_syntax" for child in node.children):
            launches.append(WrittenLaunch(tree, node))
        if call := _BY_CALL.match(tree.text(node)):
            reason = f"{call[0].rstrip('( ')} launches by pointers, which are not followed"
            unread.append(Unread(tree.path, line_of(node), reason))
    for node in nodes_of(tree.root, "preproc_def", "preproc_function_def"):
        if "<<<" in tree.text(node):
            name = tree.text(node.child_by_field_name("name"))
            unread.append(Unread(tree.path, line_of(node), f"macro {name} holds a launch, which is not read"))
    return launches, unread


def read_launch(written: WrittenLaunch, parameters: Sequence[str]) -> FoundLaunch:
    """Return the launch as expressions over the kernel's `parameters`, with a list of expressions that are not simple.

    A parameter that no expression may ask for, such as a pointer, is the empty name.
    """
    names = _names(written, parameters)
    unread: list[Unread] = []
    parts: dict[str, tuple[str, ...] | None] = dict.fromkeys(("grid", "block", "shared memory"), ("0",))
    for part, node in zip(parts, written.configuration, strict=False):
        try:
            parts[part] = names.extents(node) if part != "shared memory" else (names.python(node),)
        except NotSimple as error:
            parts[part] = None
            unread.append(Unread(written.tree.path, line_of(node), f"{part}: {error}"))
    grid, block, shared = parts.values()
    in_block, in_launch = _identifiers(block), _identifiers(grid, block, shared)
    free: list[tuple[str, Guess[int]]] = []
    for name in filter(in_launch.__contains__, names.free):
        usual = Guess(_USUAL_AXIS, "no value in the file")
        if name in in_block:
            usual = Guess(_USUAL_BLOCK, "a usual number of threads; the file does not say")
        free.append((name, _passed_by_caller(name, written) or usual))
    return FoundLaunch(
        written.tree.path,
        written.line,
        grid,
        block,
        shared[0] if shared else None,
        written.template_arguments,
        tuple(free),
        tuple(unread),
    )


def _identifiers(*parts: tuple[str, ...] | None) -> set[str]:
    return {name for expressions in parts for text in expressions or () for name in re.findall(r"\w+", text)}


def _names(written: WrittenLaunch, parameters: Sequence[str]) -> _HostNames:
    """Return what names mean at the launch."""
    tree, passed = written.tree, dict[str, str]()
    for node, parameter in zip(written.arguments, parameters, strict=False):
        while node.type == "cast_expression":
            node = node.child_by_field_name("value")
        if node.type == "identifier" and parameter:
            passed.setdefault(tree.text(node), parameter)
    values = {**_initialisers(tree.root, tree, None), **_initialisers(written.enclosing, tree, written.node)}
    macros = {match[1]: match[2] for match in _NUMBER.finditer(tree.code.decode("utf-8", "replace"))}
    return _HostNames(tree, passed, values, macros)


def _initialisers(scope: Node | None, tree: Tree, before: Node | None) -> Mapping[str, Node]:
    """Return the initialisers of variables in a function before a node, or of constants outside of functions."""
    initialisers: dict[str, Node] = {}
    for node in nodes_of(scope, "init_declarator", "function_declarator") if scope is not None else ():
        name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if value is None and node.parent.type == "declaration":
            kind = node.parent.child_by_field_name("type")
            if kind is not None and tree.text(kind) in _EXTENT_TYPES:  # `dim3 grid(n)` looks like a function's head
                value = node.child_by_field_name("parameters")
        in_scope = node.start_byte <= before.start_byte if before is not None else _function_around(node) is None
        if name is not None and name.type == "identifier" and value is not None and in_scope:
            initialisers[tree.text(name)] = value
    return initialisers


def _function_around(node: Node) -> Node | None:
    while node is not None and node.type != "function_definition":
        node = node.parent
    return node


def _passed_by_caller(name: str, written: WrittenLaunch) -> Guess[int] | None:
    """Return the number that another function of the file passes for this parameter of the launching function."""
    tree, function = written.tree, written.enclosing
    listed = next(nodes_of(function, "parameter_list"), None) if function is not None else None
    if function is None or listed is None:
        return None
    declarations = [tree.text(node) for node in listed.named_children if "parameter_declaration" in node.type]
    ending = re.compile(rf"\b{re.escape(name)}\s*(=|$)")
    place = next((place for place, text in enumerate(declarations) if ending.search(text)), None)
    host_name = function_name(function, tree)
    if place is None:
        return None
    for call in nodes_of(tree.root, "call_expression"):
        called = tree.text(call.child_by_field_name("function")).rpartition("::")[2]
        values = arguments_in(call.child_by_field_name("arguments"))
        if called == host_name and len(values) > place and tree.text(values[place]).isdigit():
            return Guess(int(tree.text(values[place])), f"passed in line {line_of(call)}")
    return None
