"""Host expressions of a launch as Python over axes: names, numbers, sums, products, ceil divisions, dim3 of these."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from prism_bench.compilation.host_source.syntax import Node, Tree
from prism_bench.extensions.init.sources.c_types import dtype_of
from prism_bench.units import count_text

_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%", "<<": "<<", ">>": ">>"}
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_CEIL_DIVISION = re.compile(
    r"(?i)^(?:\w+::)*(ceil_?div|cdiv|div_?up|up_?div|div_?ceil|ceil_?divide|div_?round_?up|i?div_?up|"
    r"(int_)?ceil_?div(ision)?|blocks_?for|get_?num_?blocks)$"
)
_LISTS = ("argument_list", "initializer_list", "parameter_list")
_CASTS = ("static_cast", "int", "unsigned", "size_t", "uint32_t", "int64_t", "long")
_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2,
          "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16}  # fmt: skip
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlLzZ]+$")
_DEEPEST = 12  # initialisers within initialisers


class NotSimple(Exception):
    """An expression that is no name, number, arithmetic or ceil division; the message has its text."""


@dataclass
class HostNames:
    """What names mean where a launch is written.

    `passed` are host variables that the launch passes, with the kernel's own parameter for each. `values` are
    initialisers of local variables and constants, `macros` numbers that `#define` names. What is in none of them is
    `free`: an axis that the spec has to have.
    """

    tree: Tree
    passed: Mapping[str, str]
    values: Mapping[str, Node]
    macros: Mapping[str, str]
    free: dict[str, None] = field(default_factory=dict[str, None])

    def python(self, node: Node, depth: int = 0) -> str:
        """Return the expression as Python; raise NotSimple where it is none of the simple ones."""
        if depth > _DEEPEST:
            raise NotSimple("an initialiser refers to itself")
        reader = getattr(self, f"_{node.type}", None)
        if reader is None:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no name, number, arithmetic or ceil division")
        return reader(node, depth + 1)

    def extents(self, node: Node, depth: int = 0) -> tuple[str, ...]:
        """Return a grid or block as one to three expressions: a number, a dim3, or a variable that is one."""
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
        """Return whether a node is a dim3, or what a variable of that type is made from, or a variable."""
        called = node.child_by_field_name("function") or node.child_by_field_name("type")
        of_call = node.type in ("call_expression", "compound_literal_expression") and called is not None
        return node.type in (*_LISTS, "identifier") or of_call and self.tree.text(called) in ("dim3", "uint3")

    def _several(self, node: Node) -> tuple[str, ...]:
        parts = tuple(self.python(one) for one in node.named_children if one.type != "comment")
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

    def _parameter_declaration(self, node: Node, depth: int) -> str:
        if len(node.named_children) != 1:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no single value")
        return self.python(node.named_children[0], depth)

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

    def _argument_list(self, node: Node, depth: int) -> str:
        """`const int n(4)` and `int n{4}`."""
        if len(node.named_children) != 1:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no single value")
        return self.python(node.named_children[0], depth)

    _initializer_list = _argument_list

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

    def _condition_clause(self, node: Node, depth: int) -> str:
        return self.python(node.named_children[0], depth)

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
        given = [one for one in node.child_by_field_name("arguments").named_children if one.type != "comment"]
        plain = name.partition("<")[0].rpartition("::")[2]
        if _CEIL_DIVISION.match(name.partition("<")[0]) and len(given) == 2:
            above, below = (self.python(one, depth) for one in given)
            return f"-(-{above} // {below})"
        if plain in ("min", "max") and len(given) == 2:
            return f"{plain}({self.python(given[0], depth)}, {self.python(given[1], depth)})"
        if plain in ("ceil", "ceilf") and len(given) == 1 and (inside := _divided(given[0])):
            above, below = (self.python(one, depth) for one in inside)
            return f"-(-{above} // {below})"
        if name.partition("<")[0] in _CASTS and len(given) == 1:
            return self.python(given[0], depth)
        raise NotSimple(f"'{_short(self.tree.text(node))}' is a call that is not known")


def _divided(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of a division, through brackets and casts."""
    while node.type in ("parenthesized_expression", "cast_expression"):
        node = node.child_by_field_name("value") or node.named_children[-1]
    if node.type == "binary_expression" and node.child_by_field_name("operator").type == "/":
        return node.child_by_field_name("left"), node.child_by_field_name("right")
    return None


def _ceil_division(above: str, below: str) -> str | None:
    """Return `(n + 256 - 1) / 256` and `(n + 255) / 256` as Python writes it, or None."""
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
