"""Expressions of C++ as Python over axes: names, numbers, arithmetic, ceil divisions, sizes of tensors."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from prism_bench.compilation.host_source.syntax import Node
from prism_bench.extensions.init.sources.kernels import bytes_of
from prism_bench.extensions.init.sources.symbols import Symbols, short_function, text_of
from prism_bench.units import count_text

_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%", "<<": "<<", ">>": ">>", "&": "&", "|": "|"}
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_JOINED = {"&&": "and", "||": "or"}
_CEIL_DIVISION = re.compile(
    r"(?i)^(?:\w+::)*(ceil_?div|cdiv|div_?up|up_?div|div_?ceil|ceil_?divide|div_?round_?up|i?div_?up|"
    r"(int_)?ceil_?div(ision)?|blocks_?for|get_?num_?blocks)$"
)
_EXTENT_TYPES = ("dim3", "uint3")
_LISTS = ("argument_list", "initializer_list", "parameter_list")
_CASTS = (
    "static_cast", "int", "unsigned", "size_t", "uint32_t", "int32_t", "int64_t", "uint64_t", "long", "uint", "dim3",
    "narrow_cast", "safe_cast", "unsigned int", "std::size_t", "float", "double",
)  # fmt: skip
_WRAPPED = ("cast_expression", "parenthesized_expression", "condition_clause")
_PROCESSORS = re.compile(r"(?i)(?:num_?|n_?)?(?:sms?_?(?:count|num)?|multi_?processors?(?:_?count)?)")
_TENSOR_SIZE = re.compile(r"\w+\.(?:numel\(\)|size\(-?\d+\))")
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlLzZ]+$")
_DEEPEST = 24  # expressions within names within expressions
_NUMBER_OPERATORS: Mapping[type[ast.operator], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}  # fmt: skip


class NotSimple(Exception):
    """An expression that is no name, number, arithmetic or ceil division; the message has its text."""


@dataclass(frozen=True)
class Again:
    """A value of a variable that its earlier value is part of: `n = n + 1`."""

    node: Node
    before: "Value"


Value = Node | str | Again  # the meaning of a name: an expression, Python's text, or a value made of an earlier one


@dataclass
class HostNames:
    """What names mean at a place in host code.

    `passed` are host expressions that the launch passes, without casts and blanks, with the kernel's own parameter for
    each. `values` are initialisers of local variables, and Python's text of names whose value is known. All names
    without a value are `free`: axes that the spec has to have.
    """

    symbols: Symbols
    passed: dict[str, str] = field(default_factory=dict[str, str])
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    free: dict[str, None] = field(default_factory=dict[str, None])
    types: Mapping[str, str] = field(default_factory=dict[str, str])

    def python(self, node: Node, depth: int = 0) -> str:
        """Return the expression as Python; raise NotSimple if it is not simple."""
        if depth > _DEEPEST:
            raise NotSimple("an initialiser refers to itself")
        if self.passed and node.type != "number_literal" and (parameter := self.passed.get(plain_text(node))):
            return parameter
        reader = getattr(self, f"_{node.type}", None)
        if reader is None:
            raise NotSimple(f"'{shortened(node)}' is no name, number, arithmetic or ceil division")
        return reader(node, depth + 1)

    def extents(self, node: Node, depth: int = 0) -> tuple[str, ...]:
        """Return a grid or block as one to three expressions, from a number, a dim3 or a variable."""
        name = text_of(node)
        if node.type == "identifier" and name not in self.passed:
            value = self.values.get(name) or self.symbols.value_of(name)
            is_node = value is not None and not isinstance(value, str | Again)
            if is_node and depth < _DEEPEST and self._is_several(value):
                return self.extents(value, depth + 1)
            if value is None and any(f"{name}.{axis}" in self.values for axis in "xyz"):
                return self._by_fields(name)
        if node.type in _LISTS:
            return self._several(node)
        if node.type != "identifier" and self._is_several(node):
            return self._several(node.child_by_field_name("arguments") or node.child_by_field_name("value"))
        return (self.python(node),)

    def _by_fields(self, name: str) -> tuple[str, ...]:
        """Return the extents of `dim3 grid; grid.x = ...;`."""
        parts = [self.values.get(f"{name}.{axis}", "1") for axis in "xyz"]
        return _without_ones(tuple(self._value(part, 0) for part in parts))

    def _is_several(self, node: Node) -> bool:
        """Return whether a node is a dim3, an initialiser of a dim3, or a variable."""
        called = node.child_by_field_name("function") or node.child_by_field_name("type")
        of_call = node.type in ("call_expression", "compound_literal_expression") and called is not None
        return node.type in (*_LISTS, "identifier") or of_call and text_of(called) in _EXTENT_TYPES

    def _several(self, node: Node) -> tuple[str, ...]:
        nodes = arguments_in(node)
        if len(nodes) == 1 and nodes[0].type == "identifier" and text_of(nodes[0]) not in self.passed:
            return self.extents(nodes[0])  # `dim3 grid(other)`, or a number's name
        parts = tuple(map(self.python, nodes)) or ("1",)
        if len(parts) > 3:
            raise NotSimple(f"'{shortened(node)}' has {count_text(len(parts), 'extent')}")
        return _without_ones(parts)

    def _identifier(self, node: Node, depth: int) -> str:
        return self.named(text_of(node), depth)

    _type_identifier = _qualified_identifier = _identifier  # `dim3 grid(n)` has the form of a function's declaration

    def named(self, name: str, depth: int = 0) -> str:
        """Return what a name means as Python."""
        value = self.values.get(name)
        if value is None:
            member = name.rpartition("::")[2]  # `Traits::kThreads` for a template's own kThreads
            value = self.symbols.value_of(name) or self.symbols.value_of(member)
            value = value if value is not None or member == name else self.values.get(member)
        if isinstance(value, Again):
            return replace(self, values={**self.values, name: value.before}).python(value.node, depth)
        if value is not None and not isinstance(value, str) and self._is_axis(name, value):
            self.free[name] = None
            return name
        if value is not None:
            try:
                return self._value(value, depth)
            except NotSimple:
                pass  # what a library returns, say: the name itself becomes an axis
        if _PROCESSORS.fullmatch(name):
            return "device.sm_count"
        name = re.sub(r"\W+", "_", name)
        self.free[name] = None
        return name

    def _value(self, value: Value, depth: int) -> str:
        if isinstance(value, str):
            return value
        return self.python(value.node if isinstance(value, Again) else value, depth)

    def _is_axis(self, name: str, value: Node) -> bool:
        """Return whether a variable holds a size of a tensor that the launch does not pass: its name is an axis."""
        text = plain_text(value)
        sizes = re.findall(r"\w+\.(?:numel\(\)|size\(-?\d+\)|sizes\(\)\[-?\d+\]|shape\[-?\d+\])", text)
        known = [re.sub(r"\.(?:shape|sizes\(\))\[(-?\d+)\]", r".size(\1)", size) in self.passed for size in sizes]
        if not sizes or all(known) or any(".numel" in size and self._numel(size.partition(".")[0]) for size in sizes):
            return False
        if _TENSOR_SIZE.fullmatch(text):
            self.passed[text] = name
        return True

    def _numel(self, owner: str) -> str | None:
        """Return the product of a tensor's sizes, if the launch passes all of them."""
        axes = [self.passed.get(f"{owner}.size({place})") for place in range(8)]
        known = [axis for axis in axes if axis is not None]
        if not known or axes[: len(known)] != known:
            return None
        return known[0] if len(known) == 1 else f"({' * '.join(known)})"

    def _type_descriptor(self, node: Node, depth: int) -> str:
        return self.named(text_of(node), depth)

    def _number_literal(self, node: Node, depth: int) -> str:
        text = _SUFFIX.sub("", text_of(node).replace("'", ""))
        try:
            return str(int(text, 0) if not re.fullmatch(r"0[0-7]+", text) else int(text, 8))
        except ValueError:
            pass
        try:
            return str(int(number)) if (number := float(text.rstrip("fF"))).is_integer() else str(number)
        except ValueError as error:
            raise NotSimple(f"'{text}' is no number") from error

    def _true(self, node: Node, depth: int) -> str:
        return text_of(node).capitalize()

    _false = _true

    def _parenthesized_expression(self, node: Node, depth: int) -> str:
        return self.python(node.named_children[-1], depth)

    _condition_clause = _optional_parameter_declaration = _parenthesized_expression

    def _argument_list(self, node: Node, depth: int) -> str:
        """`const int n(4)` and `int n{4}`."""
        if len(node.named_children) != 1:
            raise NotSimple(f"'{shortened(node)}' is no single value")
        return self.python(node.named_children[0], depth)

    _initializer_list = _parameter_declaration = _argument_list

    def _binary_expression(self, node: Node, depth: int) -> str:
        left, right = (self.python(node.child_by_field_name(side), depth) for side in ("left", "right"))
        sign = node.child_by_field_name("operator").type
        if sign in _COMPARED or sign in _JOINED:
            return f"({left} {_JOINED.get(sign, sign)} {right})"
        if sign not in _OPERATORS:
            raise NotSimple(f"'{shortened(node)}' has the operator {sign}")
        ceiling = _ceil_division(left, right) if sign == "/" else None
        return ceiling or f"({left} {_OPERATORS[sign]} {right})"

    def _unary_expression(self, node: Node, depth: int) -> str:
        sign, value = text_of(node)[0], self.python(node.child_by_field_name("argument"), depth)
        if sign == "!":
            return f"(not {value})"
        if sign not in "-+~":
            raise NotSimple(f"'{shortened(node)}' has an operator that Python has not")
        return f"{sign}{value}"

    def _conditional_expression(self, node: Node, depth: int) -> str:
        parts = (self.python(node.child_by_field_name(n), depth) for n in ("condition", "consequence", "alternative"))
        condition, yes, no = parts
        if condition in ("True", "False"):
            return yes if condition == "True" else no
        return f"({yes} if {condition} else {no})"

    def _cast_expression(self, node: Node, depth: int) -> str:
        return self.python(node.child_by_field_name("value"), depth)

    def _sizeof_expression(self, node: Node, depth: int) -> str:
        kind = node.child_by_field_name("type") or node.child_by_field_name("value")
        text = text_of(kind).strip("() ") if kind is not None else ""
        plain = self.symbols.plain_type(self.types.get(text, text))
        size = bytes_of(self.types.get(plain, plain))
        if size is None:
            raise NotSimple(f"'{shortened(node)}' is not known without a compiler")
        return str(size)

    def _call_expression(self, node: Node, depth: int) -> str:
        called, nodes = node.child_by_field_name("function"), arguments_in(node.child_by_field_name("arguments"))
        if called.type == "field_expression":
            return self._method(node, called, nodes, depth)
        without_template = text_of(called).partition("<")[0]
        plain = without_template.rpartition("::")[2]
        if (result := self._by_function(plain, nodes, depth)) is not None:
            return result
        if _CEIL_DIVISION.match(without_template) and len(nodes) == 2:
            return self._rounded_up(nodes, depth)
        if plain in ("min", "max") and len(nodes) == 2:
            left, right = (self.python(argument, depth) for argument in nodes)
            return f"{plain}({left}, {right})"
        if plain in ("ceil", "ceilf") and len(nodes) == 1 and (sides := _divided(nodes[0])):
            return self._rounded_up(sides, depth)
        if (without_template in _CASTS or plain in _CASTS) and len(nodes) == 1:
            return self.python(nodes[0], depth)
        raise NotSimple(f"'{shortened(node)}' is a call that is not known")

    def _by_function(self, name: str, nodes: list[Node], depth: int) -> str | None:
        """Return the value of a function, lambda or macro of one expression; None for others."""
        short = self.symbols.function(name)
        value = self.values.get(name)
        if value is not None and not isinstance(value, str | Again) and value.type == "lambda_expression":
            short = short_function(value)
        if short is None or len(short.parameters) < len(nodes):
            return None
        arguments = {p: self.python(n, depth) for p, n in zip(short.parameters, nodes, strict=False)}
        inner = replace(self, values={**self.values, **arguments}, passed={})
        try:
            return inner.python(short.result, depth)
        except NotSimple:
            return None

    def _method(self, node: Node, called: Node, nodes: list[Node], depth: int) -> str:
        """Return `x.numel()` and `x.size(0)`: what the launch passes for it, or a name for it."""
        owner, name = text_of(called.child_by_field_name("argument")), text_of(called.child_by_field_name("field"))
        if name == "numel" and not nodes:
            if (product := self._numel(owner)) is not None:
                return product
        if name in ("numel", "size") and len(nodes) <= 1 and owner.isidentifier():
            place = "".join(f"_{text_of(index)}" for index in nodes).replace("-", "last_")
            axis = f"{owner}_{name}{place}"
            if axis.isidentifier():
                self.free[axis] = None
                return axis
        if name in ("x", "y", "z"):
            return self.python(called, depth)
        raise NotSimple(f"'{shortened(node)}' is a call that is not known")

    def _subscript_expression(self, node: Node, depth: int) -> str:
        """Return `x.shape[0]` and `x.sizes()[0]` as `x.size(0)`."""
        owner, listed = node.child_by_field_name("argument"), node.child_by_field_name("indices")
        match = re.fullmatch(r"(\w+)\.(?:shape|sizes)(?:\(\))?", plain_text(owner))
        indices = arguments_in(listed)
        if match is None or len(indices) != 1 or not text_of(indices[0]).lstrip("-").isdigit():
            raise NotSimple(f"'{shortened(node)}' is no name, number, arithmetic or ceil division")
        place = text_of(indices[0])
        passed = self.passed.get(f"{match[1]}.size({place})")
        axis = f"{match[1]}_size_{place.replace('-', 'last_')}"
        if passed is None:
            self.free[axis] = None
        return passed or axis

    def _field_expression(self, node: Node, depth: int) -> str:
        """Return the part of a dim3, `block.x`."""
        owner, name = node.child_by_field_name("argument"), text_of(node.child_by_field_name("field"))
        known = self.values.get(text_of(node))
        if known is not None:
            return self._value(known, depth)
        if name == "multiProcessorCount":
            return "device.sm_count"
        value = self.values.get(text_of(owner))
        if name in ("x", "y", "z") and value is not None and not isinstance(value, str | Again):
            extents = self.extents(owner, depth)
            return (*extents, "1", "1")["xyz".index(name)]
        raise NotSimple(f"'{shortened(node)}' is no name, number, arithmetic or ceil division")

    def _rounded_up(self, sides: Iterable[Node], depth: int) -> str:
        above, below = (self.python(side, depth) for side in sides)
        return f"-(-{above} // {below})"


def _without_ones(parts: tuple[str, ...]) -> tuple[str, ...]:
    while len(parts) > 1 and parts[-1] == "1":
        parts = parts[:-1]
    return parts


def arguments_in(brackets: Node | None) -> list[Node]:
    """Return the expressions in the brackets of a call, a list or a launch, without comments."""
    return [child for child in brackets.named_children if child.type != "comment"] if brackets is not None else []


def plain_text(node: Node) -> str:
    """Return the text of an expression without blanks, brackets and casts around all of it."""
    while True:
        if node.type in _WRAPPED:
            node = node.child_by_field_name("value") or node.named_children[-1]
            continue
        called, nodes = node.child_by_field_name("function"), arguments_in(node.child_by_field_name("arguments"))
        if node.type == "call_expression" and called is not None and len(nodes) == 1:
            if text_of(called).partition("<")[0] in _CASTS:
                node = nodes[0]
                continue
        return re.sub(r"\.(?:shape|sizes\(\))\[(-?\d+)\]", r".size(\1)", re.sub(r"\s+", "", text_of(node)))


def _divided(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of a division, through brackets and casts."""
    while node.type in ("parenthesized_expression", "cast_expression"):
        node = node.child_by_field_name("value") or node.named_children[-1]
    if node.type == "binary_expression" and node.child_by_field_name("operator").type == "/":
        return node.child_by_field_name("left"), node.child_by_field_name("right")
    return None


def _ceil_division(above: str, below: str) -> str | None:
    """Return `(n + 256 - 1) / 256` and `(n + 255) / 256` as a ceil division of Python; None for other divisions."""
    for form in (r"\(\((.+) \+ (.+)\) - 1\)", r"\((.+) \+ \((.+) - 1\)\)"):
        match = re.fullmatch(form, above)
        if match and match[2] == below:
            return f"-(-{match[1]} // {below})"
    match = re.fullmatch(r"\(\((.+) - 1\) \+ (.+)\)", above)
    if match and match[2] == below:
        return f"-(-{match[1]} // {below})"
    match = re.fullmatch(r"\((.+) \+ (\d+)\)", above)
    number = number_of(below)
    if match and number is not None and int(match[2]) == number - 1:
        return f"-(-{match[1]} // {below})"
    return None


def number_of(text: str, names: Mapping[str, float] | None = None) -> float | int | None:
    """Return the value of Python's text of arithmetic on numbers and `names`; None if it is no such arithmetic."""
    try:
        return _number(ast.parse(text, mode="eval").body, names or {})
    except (ValueError, SyntaxError, ZeroDivisionError, TypeError, OverflowError, RecursionError):
        return None


def _number(node: ast.expr, names: Mapping[str, float]) -> float | int:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub()):
            return -_number(node.operand, names)
        case ast.BinOp() if type(node.op) in _NUMBER_OPERATORS:
            left, right = _number(node.left, names), _number(node.right, names)
            if isinstance(node.op, ast.LShift) and right > 64:
                raise ValueError("too large")
            return _NUMBER_OPERATORS[type(node.op)](left, right)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right]):
            return (min if name == "min" else max)(_number(left, names), _number(right, names))
        case ast.IfExp():
            return _number(node.body if _number(node.test, names) else node.orelse, names)
        case ast.Compare(ops=[sign], comparators=[right]):
            sides = _number(node.left, names), _number(right, names)
            return int(_COMPARISONS[type(sign)](*sides))
        case _:
            raise ValueError("no arithmetic")


_COMPARISONS: Mapping[type[ast.cmpop], Callable[..., bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


def shortened(node: Node) -> str:
    """Return the text of a node in at most 60 letters."""
    text = " ".join(text_of(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
