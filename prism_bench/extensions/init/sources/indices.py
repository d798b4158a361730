"""Indices of a kernel's body as sums of products, and the shapes that they suggest for its buffers."""

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prism_bench.compilation.host_source.syntax import Node, nodes_of
from prism_bench.extensions.init.sources.expressions import HostNames, NotSimple, arguments_in, number_of
from prism_bench.extensions.init.sources.kernels import FoundLaunch, Guess
from prism_bench.extensions.init.sources.symbols import Symbols, text_of

# Sums of products: the coefficient of each product of names, `4 * i * cols + j` is {(cols, i): 4, (j,): 1}.

Sum = dict[tuple[str, ...], int]
_DEEPEST = 16
_MOST_TERMS = 64
_COMPARISONS = ("<", "<=", ">", ">=", "!=")
_AXES = "xyz"
_STEPS, _PADDING = re.compile(r"(?i)\w*stride\w*$|step$"), re.compile(r"(?i)pad\w*$|dilation\w*$")
_DATA_EXTENTS = {"uint8": "256", "bool": "2"}  # values of elements that are indices


def added(left: Sum, right: Sum, sign: int = 1) -> Sum:
    """Return the sum, or the difference for sign -1."""
    total = dict(left)
    for names, factor in right.items():
        total[names] = total.get(names, 0) + sign * factor
    return {names: factor for names, factor in total.items() if factor}


def multiplied(left: Sum, right: Sum) -> Sum:
    """Return the product of two sums."""
    total: Sum = {}
    for left_names, left_factor in left.items():
        for names, factor in right.items():
            key = tuple(sorted((*left_names, *names)))
            total[key] = total.get(key, 0) + left_factor * factor
    return total


def key_of(total: Sum) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return a form of a sum without its constant that can be looked up."""
    return tuple(sorted((names, factor) for names, factor in total.items() if names))


@dataclass(frozen=True)
class _Variable:
    """A variable of a body from a declaration or assignment on: the block that it is in, the value, others later."""

    node: Node
    scope: Node
    value: Node
    is_changed: bool


@dataclass
class IndexReader:
    """Reader of index expressions in a kernel's body.

    `sizes` are whole numbers that the kernel takes. `bounds` are upper bounds of sums, as Python over sizes. `launch`
    gives the extents of `blockIdx` and `threadIdx`.
    """

    symbols: Symbols
    sizes: Sequence[str]
    constants: Mapping[str, str]
    launch: FoundLaunch | None = None
    bounds: dict[object, str] = field(default_factory=dict[object, str])
    element_types: Mapping[str, str] = field(default_factory=dict[str, str])
    index_data: dict[str, str] = field(default_factory=dict[str, str])
    members: Mapping[str, str] = field(default_factory=dict[str, str])  # `p.width` is the size width
    variables: dict[str, Node] = field(default_factory=dict[str, Node])
    _equal: list[tuple[Node, Node]] = field(default_factory=list[tuple[Node, Node]])
    _bound: dict[str, Sum] = field(default_factory=dict[str, Sum])
    _opaque: dict[str, Node] = field(default_factory=dict[str, Node])
    _declared: dict[str, list["_Variable"]] = field(default_factory=dict[str, "list[_Variable]"])

    def read(self, body: Node) -> None:
        """Read the variables that get one value, and the bounds of indices."""
        changed = {text_of(node.child_by_field_name("argument")) for node in nodes_of(body, "update_expression")}
        again: list[Node] = []
        for node in nodes_of(body, "assignment_expression"):
            name, right = text_of(node.child_by_field_name("left")), node.child_by_field_name("right")
            is_plain = node.child_by_field_name("operator").type == "="
            if is_plain and _is_unconditional(node) and name not in {text_of(n) for n in nodes_of(right, "identifier")}:
                again.append(node)
            else:
                changed.add(name)
        for node in nodes_of(body, "init_declarator"):
            name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
            if name.type != "identifier" or value is None:
                continue
            text = text_of(name)
            is_variable = value.type == "number_literal" and not _is_constant(node) or text in changed
            self._declared.setdefault(text, []).append(_Variable(node, node.parent.parent, value, is_variable))
        for node in again:
            text, value = text_of(node.child_by_field_name("left")), node.child_by_field_name("right")
            if text not in changed and text in self._declared:
                scope = self._declared[text][0].scope
                self._declared[text].append(_Variable(node, scope, value, is_changed=False))
        for node in nodes_of(body, "binary_expression"):
            operator = node.child_by_field_name("operator").type
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if operator == "==":
                self._equal.append((left, right))
            if operator in _COMPARISONS:
                self._add_bound(left, right, operator in ("<=", ">"))
                self._add_bound(right, left, operator in ("<", ">="))

    def bound_labels(self) -> None:
        """Bound elements of whole numbers that are compared with an index, such as the label of a row."""
        for pair in self._equal:
            sums = [key_of(self.sum_of(node)) for node in pair]
            for label, index in (sums, sums[::-1]):
                names = label[0][0] if len(label) == 1 else ()
                array = names[0].partition("[")[0] if len(names) == 1 and "[" in names[0] else ""
                kind, bound = self.element_types.get(array, ""), self.extent(dict(index)) if array else None
                if kind.startswith(("int", "uint")) and bound is not None and bound in self.sizes:
                    self.index_data.setdefault(array, bound)

    def variable(self, node: Node) -> "_Variable | None":
        """Return the declaration that a name means at a place: the last before it in a block around it."""
        reaching: _Variable | None = None
        for variable in self._declared.get(text_of(node), ()):
            begins = (
                variable.node.end_byte if variable.node.type == "assignment_expression" else variable.node.start_byte
            )
            if begins <= node.start_byte and variable.scope.end_byte >= node.end_byte:
                reaching = variable
        return reaching

    def _add_bound(self, index: Node, limit: Node, is_closed: bool) -> None:
        """Add `index < limit`; a closed bound of a loop, `i <= n`, is one more."""
        text = self.size_text(limit) or self._least(limit)
        total = self.sum_of(index)
        number = number_of(text) if text is not None else None
        if text is None or not key_of(total) or self._is_size(total) or number is not None and number <= 1:
            return
        if is_closed and index.parent is not None and index.parent.parent is not None:
            text = text if index.parent.parent.type != "for_statement" else f"({text} + 1)"
        if self.bounds.get(key_of(total)) is None or text in self.sizes:
            self.bounds[key_of(total)] = text

    def _least(self, limit: Node) -> str | None:
        """Return the side of `min(n, ...)` that is a size, through a variable."""
        variable = self.variable(limit) if limit.type == "identifier" else None
        call = variable.value if variable is not None and not variable.is_changed else limit
        if call.type != "call_expression" or not re.fullmatch(r"(?:\w+::)*min", text_of(_called(call))):
            return None
        return next(filter(None, map(self.size_text, arguments_in(call.child_by_field_name("arguments")))), None)

    def _is_size(self, total: Sum) -> bool:
        return all(name in self.sizes or name.startswith("=") for names in total for name in names)

    def size_text(self, node: Node) -> str | None:
        """Return an expression over sizes and constants as Python; None for any other expression."""
        reached = {text_of(name): self.variable(name) for name in nodes_of(node, "identifier")}
        values: dict[str, Node | str] = dict(self.constants)
        for name, variable in reached.items():
            if variable is not None:
                values[name] = name if variable.is_changed else self._values_behind(variable.value, values)
        values |= {name: name for name in self.sizes} | self._extents_of_launch()
        names = HostNames(self.symbols, dict(self.members), values)
        try:
            text = names.python(node)
        except NotSimple:
            return None
        return None if set(re.findall(r"[A-Za-z_]\w*", text)) - {*self.sizes, "min", "max", "if", "else"} else text

    def _extents_of_launch(self) -> dict[str, str]:
        """Return numbers for `gridDim.x` and `blockDim.x`, as far as the launch has them."""
        values: dict[str, str] = {}
        launch = self.launch
        for name, extents in (("gridDim", launch.grid), ("blockDim", launch.block)) if launch is not None else ():
            for axis, extent in zip(_AXES, (*extents, "1", "1") if extents is not None else (), strict=False):
                if number_of(extent) is not None:
                    values[f"{name}.{axis}"] = extent
        return values

    def _values_behind(self, value: Node, values: dict[str, "Node | str"], depth: int = 0) -> Node:
        """Return a variable's value, and add those of the variables in it."""
        for inner in nodes_of(value, "identifier"):
            name = text_of(inner)
            variable = self.variable(inner)
            if variable is not None and name not in values and depth < _DEEPEST:
                values[name] = name
                if not variable.is_changed:
                    values[name] = self._values_behind(variable.value, values, depth + 1)
        return value

    def sum_of(self, node: Node, depth: int = 0) -> Sum:
        """Return an expression as a sum of products; parts that are neither remain as they are."""
        if depth > _DEEPEST:
            return {(text_of(node),): 1}
        kind = node.type
        if kind in ("parenthesized_expression", "cast_expression", "subscript_argument_list", "condition_clause"):
            inner = node.child_by_field_name("value") or (node.named_children or [node])[-1]
            return self.sum_of(inner, depth + 1) if inner is not node else {}
        if kind == "identifier":
            return self._named(node, depth)
        if kind == "number_literal":
            number = number_of(HostNames(self.symbols).python(node))
            return {(): int(number)} if number else {}
        if kind == "binary_expression":
            return self._binary(node, depth)
        if kind == "field_expression":
            return self._field(node)
        if kind == "call_expression":
            called, nodes = node.child_by_field_name("function"), arguments_in(node.child_by_field_name("arguments"))
            if len(nodes) == 1 and (called.type == "primitive_type" or "static_cast" in text_of(called)):
                return self.sum_of(nodes[0], depth + 1)
            short = self.symbols.function(text_of(called).rpartition("::")[2])
            if short is not None and len(short.parameters) == len(nodes):
                sums = [self.sum_of(argument, depth + 1) for argument in nodes]
                before, self._bound = self._bound, dict(zip(short.parameters, sums, strict=True))
                try:
                    return self.sum_of(short.result, depth + 1)
                finally:
                    self._bound = before
        return self._atom(node)

    def _named(self, node: Node, depth: int) -> Sum:
        name = text_of(node)
        if name in self._bound:
            return self._bound[name]
        if name in self.sizes:
            return {(name,): 1}
        variable = self.variable(node)
        if variable is not None:
            scoped = name if len(self._declared[name]) == 1 else f"{name}#{variable.node.start_byte}"
            self.variables[scoped] = variable.value
            if variable.is_changed:
                return {(scoped,): 1}
            total = self.sum_of(variable.value, depth + 1)
            return total if len(total) <= _MOST_TERMS else {(scoped,): 1}
        value = self.constants.get(name)
        if value is None and self.symbols.value_of(name) is not None:
            value = HostNames(self.symbols).named(name)
        number = number_of(value) if value is not None else None
        return {(name,): 1} if number is None else {(): int(number)} if number else {}

    def _binary(self, node: Node, depth: int) -> Sum:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator").type
        if operator in ("+", "-"):
            sign = 1 if operator == "+" else -1
            return added(self.sum_of(left, depth + 1), self.sum_of(right, depth + 1), sign)
        if operator == "*":
            return multiplied(self.sum_of(left, depth + 1), self.sum_of(right, depth + 1))
        if operator == "<<" and (shift := number_of(text_of(right))) is not None and shift < 32:
            return multiplied(self.sum_of(left, depth + 1), {(): 1 << int(shift)})
        if operator == "/" and (divisor := self._constant(right)):
            total = self.sum_of(left, depth + 1)
            if total and not any(factor % divisor for factor in total.values()):
                return {names: factor // divisor for names, factor in total.items()}
        return self._atom(node)

    def _constant(self, node: Node) -> int | None:
        total = self.sum_of(node)
        return total.get(()) if set(total) == {()} else None

    def _field(self, node: Node) -> Sum:
        text = text_of(node)
        match = re.fullmatch(r"(blockDim|gridDim)\.([xyz])", text)
        if match and self.launch is not None:
            extents = self.launch.block if match[1] == "blockDim" else self.launch.grid
            if extents is not None:
                extent = (*extents, "1", "1")["xyz".index(match[2])]
                number = number_of(extent)
                return {(): int(number)} if number else {(f"@{extent}",): 1}
        return {(self.members.get(text, text),): 1}

    def _atom(self, node: Node) -> Sum:
        """Return a part as it is; an expression over sizes alone counts as a size."""
        text = self.size_text(node)
        if text is not None and not number_of(text) and re.search(r"[A-Za-z_]", text):
            return {(f"={text}",): 1}
        name = re.sub(r"\s+", "", text_of(node))
        self._opaque[name] = node
        return {(name,): 1}

    # Extents: how many values an index takes.

    def extent(self, digits: Sum) -> str | None:
        """Return how many values a sum takes, as Python over sizes and names of the launch; None if unknown."""
        digits = {names: factor for names, factor in digits.items() if names}
        if not digits:
            return "1"
        exact = self.bounds.get(key_of(digits))
        if exact is not None:
            return exact
        lanes = {names: factor for names, factor in digits.items() if self._is_lane(names, factor, digits)}
        if lanes and len(lanes) < len(digits):  # `4 * i + lane`
            whole = {names: factor for names, factor in digits.items() if names not in lanes}
            bound = self.bounds.get(key_of(whole))
            if bound is not None:
                return bound
        for names, factor in digits.items():  # `i * 4` with a bound on i
            bound = self.bounds.get(key_of({names: 1}))
            if bound is not None and len(digits) == 1:
                return _times(bound, factor)
        tiled = self._tiled(digits)
        if tiled is not None:
            return tiled
        common = min(abs(factor) for factor in digits.values())
        if common > 1 and not any(factor % common for factor in digits.values()):
            inner = self.extent({names: factor // common for names, factor in digits.items()})
            return _times(inner, common) if inner is not None else None
        if len(digits) == 1:
            (names, factor), = digits.items()  # fmt: skip
            limit = self._atom_extent(names[0]) if len(names) == 1 else None
            return None if limit is None else _times(limit, factor)
        return self._numeric(digits) or self._in_rows(digits)

    def _is_lane(self, names: tuple[str, ...], factor: int, digits: Sum) -> bool:
        """Return whether a part of an index only takes values below the factors of the others."""
        others = [abs(other) for key, other in digits.items() if key != names and abs(other) > abs(factor)]
        is_thread = any(name.startswith(("threadIdx", "blockIdx")) for name in names)
        extent = number_of(self.bounds.get(key_of({names: 1}), "")) if others and not is_thread else None
        return extent is not None and extent * factor <= min(others)

    def _in_rows(self, digits: Sum) -> str | None:
        """Return the extent of `p * 256 + i` where i takes at most 256 values."""
        names, factor = max(digits.items(), key=lambda item: abs(item[1]))
        rest = {others: part for others, part in digits.items() if others != names}
        inner = number_of(self.extent(rest) or "") if rest else None
        outer = self.extent({names: 1}) if inner is not None and inner <= factor else None
        return None if outer is None else _times(outer, factor)

    def _tiled(self, digits: Sum) -> str | None:
        """Return the extent of `blockIdx.x * tile + ...`: the grid's times the tile, or what the grid divides."""
        for names, factor in digits.items():
            place = next((name for name in names if name.startswith("blockIdx.")), None)
            if place is None or self.launch is None or self.launch.grid is None:
                continue
            grid = (*self.launch.grid, "1", "1")[_AXES.index(place[-1])]
            others = [name.lstrip("@=") for name in names if name != place]
            if any(name in self._opaque or name in self.variables for name in others):
                continue
            tile = " * ".join([*others, *([str(factor)] if factor != 1 or not others else [])])
            match = re.fullmatch(r"-\(-(.+) // (.+)\)|\((.+) // (.+)\)", grid)
            if match and _same(match[2] or match[4], tile):
                return match[1] or match[3]
            if tile == "1" and len(digits) == 1:
                return grid
            return None if "min(" in grid or " if " in grid else f"({grid} * {tile})"
        return None

    def _atom_extent(self, name: str) -> str | None:
        if name.startswith("loop "):
            return name.removeprefix("loop ")
        match = re.fullmatch(r"(threadIdx|blockIdx)\.([xyz])", name)
        if match and self.launch is not None:
            extents = self.launch.block if match[1] == "threadIdx" else self.launch.grid
            return (*extents, "1", "1")["xyz".index(match[2])] if extents is not None else None
        node = self._opaque.get(name)
        if node is not None and node.type == "subscript_expression":
            return self._data_extent(text_of(node.child_by_field_name("argument")))
        if node is None or node.type != "binary_expression":
            return None
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator, limit = node.child_by_field_name("operator").type, self.size_text(right)
        if operator == "%" and limit is not None:
            return limit
        if operator == "&" and limit is not None and (mask := number_of(limit)) is not None:
            return str(int(mask) + 1)
        if operator == "/" and limit is not None:
            whole = self.extent(self.sum_of(left))
            return None if whole is None else _divided(whole, limit)
        return None

    def _data_extent(self, array: str) -> str | None:
        """Return how many values an element that is an index takes: of a byte all, else an axis of its name."""
        kind = self.element_types.get(array, "")
        if kind.startswith(("int", "uint")) and kind not in _DATA_EXTENTS:
            return self.index_data.setdefault(array, f"{array}_values")
        return _DATA_EXTENTS.get(kind)

    def _numeric(self, digits: Sum) -> str | None:
        """Return the extent of a sum whose parts all have numbers as extents."""
        total = 1
        for names, factor in digits.items():
            extent = self._atom_extent(names[0]) if len(names) == 1 else None
            number = number_of(extent) if extent is not None else None
            if number is None or factor < 0:
                return None
            total += factor * (int(number) - 1)
        return str(total)


def _called(call: Node) -> Node:
    return call.child_by_field_name("function")


def _is_unconditional(node: Node) -> bool:
    """Return whether a statement runs once, outside of loops and branches."""
    while node is not None and node.type != "function_definition":
        if node.type in ("for_statement", "while_statement", "do_statement", "if_statement", "case_statement"):
            return False
        node = node.parent
    return True


def _is_constant(node: Node) -> bool:
    return re.search(r"\bconst(?:expr)?\b", text_of(node.parent).partition("=")[0]) is not None


def _times(extent: str, factor: int) -> str:
    """Return an extent times a number: `K // 4` times 4 is K."""
    match = re.fullmatch(r"\(?(?:-\(-)?(.+) // (.+?)\)?\)?", extent)
    if match and number_of(match[2]) == factor and re.fullmatch(r"[\w* ()]+", match[1]):
        return match[1]
    return extent if factor == 1 else f"({extent} * {factor})"


def _same(left: str, right: str) -> bool:
    """Return whether two texts of arithmetic are equal."""
    numbers = number_of(left), number_of(right)
    return left.strip("()") == right.strip("()") or numbers[0] is not None and numbers[0] == numbers[1]


def _divided(whole: str, limit: str) -> str:
    """Return an extent divided by another, rounded up; common factors cancel."""
    numbers = number_of(whole), number_of(limit)
    if numbers[0] is not None and numbers[1]:
        return str(-(-int(numbers[0]) // int(numbers[1])))
    factors, below = factors_of(whole), factors_of(limit)
    if all(below.count(factor) <= factors.count(factor) for factor in below):
        for factor in below:
            factors.remove(factor)
        return " * ".join(factors) or "1"
    return f"-(-{whole} // {limit})"


def factors_of(text: str) -> list[str]:
    """Return the factors of a product, `(B * (T * C))`; the text itself if it is none."""
    try:
        return _factors(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return [text]


def _factors(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    text = ast.unparse(node)
    return [text if text.isidentifier() or text.isdigit() else f"({text})"]


# Shapes of buffers.


@dataclass
class Shapes:
    """Proposer of shapes; `derived` collects names for extents that are neither names nor numbers."""

    reader: IndexReader
    derived: dict[str, str] = field(default_factory=dict[str, str])

    def shape(self, indices: Iterable[Sum], name: str) -> Guess[str] | None:
        """Return the shape of a buffer from all of its indices; None if they show none."""
        totals = list(indices)
        if totals and not any(map(key_of, totals)):
            return Guess(str(max(total.get((), 0) for total in totals) + 1), "its indices are numbers")
        whole = [self.reader.bounds.get(key_of(total), "") for total in totals]
        whole = [bound for bound in whole if bound and set(factors_of(bound)) <= {*self.reader.sizes}]
        if whole:
            return Guess(" ".join(factors_of(whole[0])), "the index is compared with it")
        lanes = math.gcd(*(factor for total in totals for names, factor in total.items() if names))
        if lanes > 1 and max(total.get((), 0) for total in totals) < lanes:
            of_lanes = self.shape([_without(total, lanes) for total in totals], name)
            if of_lanes is not None:
                *before, last = of_lanes.value.split()
                whole = re.fullmatch(r"(?:-\(-)?(\w+) // (\d+)\)?", self.derived.get(last, ""))
                axes = [whole[1]] if whole and int(whole[2]) == lanes else [last, str(lanes)]
                return Guess(" ".join([*before, *axes]), of_lanes.reason)
        totals += [added(total, self._begun(total)) for total in totals if self._begun(total)]
        strides = [self._strides(total) for total in totals]
        every = sorted({stride for by_stride in strides for stride in by_stride}, key=len)
        largest = every[-1] if every else ()
        chain = [stride for stride in every if not set(stride) - set(largest)]
        candidates = [by_stride[largest] for by_stride in strides if largest in by_stride]
        is_known = all(self._is_known(total) for total in totals)
        outer = self._best(candidates, exclude=largest, numbers=is_known or not largest)
        if largest:
            self._bound_data([by_stride.get((), {}) for by_stride in strides], self._ordered(chain[1])[-1])
        if outer is None and not largest:
            return None
        inner: list[str] = []
        for place, stride in enumerate(chain):
            before = chain[place - 1] if place else ()
            inner = [axis for axis in self._ordered(stride) if axis not in before] + inner
        reason = f"an index multiplies by {' and '.join(self._ordered(largest))}" if largest else "the index's range"
        axes = [*self._named(outer, name), *inner] if outer is not None else ["?", *inner]
        axes = [part for axis in axes for part in (self._named(axis[1:], name) if axis.startswith("=") else [axis])]
        return Guess(" ".join(axes) or "1", reason)

    def _strides(self, total: Sum) -> dict[tuple[str, ...], Sum]:
        """Return the rest of each product without its sizes, by these sizes."""
        by_stride: dict[tuple[str, ...], Sum] = {}
        for names, factor in total.items():
            sizes = [name for name in names if name in self.reader.sizes or name.startswith("=")]
            steps = [name for name in sizes if _STEPS.match(name) and len(sizes) > 1 or _PADDING.match(name)]
            stride = tuple(name for name in sizes if name not in steps)
            if not set(names) - set(sizes) and steps:
                continue
            digits = tuple(name for name in names if name not in stride)
            rest = by_stride.setdefault(stride, {})
            rest[digits] = rest.get(digits, 0) + factor
        return by_stride

    def _ordered(self, stride: tuple[str, ...]) -> list[str]:
        places = {name: place for place, name in enumerate(self.reader.sizes)}
        return sorted(dict.fromkeys(stride), key=lambda name: places.get(name, -1))

    def _bound_data(self, columns: list[Sum], size: str) -> None:
        """Bound elements that are columns of a buffer by its last size."""
        for name in (name for digits in columns for names in digits for name in names):
            match = re.fullmatch(r"(\w+)\[.*\]", name)
            kind = self.reader.element_types.get(match[1], "") if match else ""
            if match and kind.startswith(("int", "uint")) and not size.startswith("="):
                self.reader.index_data.setdefault(match[1], size)

    def _begun(self, total: Sum) -> Sum:
        """Return the first values of changing variables in an index, in their places."""
        begun: Sum = {}
        for names, factor in total.items():
            for name in names:
                value = self.reader.variables.get(name)
                if value is not None and value.type != "number_literal":
                    others = list(names)
                    others.remove(name)
                    begun = added(begun, multiplied(self.reader.sum_of(value), {tuple(others): factor}))
        return begun

    def _is_known(self, total: Sum) -> bool:
        """Return whether every part of an index has an extent or is a size."""
        names = {name for names in total for name in names}
        return not any(name in self.reader.variables and self.reader.extent({(name,): 1}) is None for name in names)

    def _best(self, candidates: list[Sum], exclude: tuple[str, ...], *, numbers: bool) -> str | None:
        """Return the extent that names a size, else one with another name, else the largest number."""
        by_digits = [(digits, self.reader.extent(digits)) for digits in candidates]
        extents = [extent for _, extent in by_digits if extent is not None]
        named = [extent for extent in extents if re.search(r"[A-Za-z_]", extent)]
        named += [extent for digits, extent in by_digits if extent is not None and "blockIdx" in str(digits)]
        sized = [extent for extent in named if set(factors_of(extent)) <= {*self.reader.sizes} - {*exclude}]
        largest = max((int(number) for extent in extents if (number := number_of(extent)) is not None), default=0)
        return next(iter([*sized, *named]), str(largest) if numbers and largest else None)

    def _named(self, extent: str, name: str) -> list[str]:
        """Return an extent as axes: factors of a product, or a name for another expression."""
        number = number_of(extent)
        if number is not None:
            return [str(int(number))] if number != 1 else []
        factors = factors_of(extent)
        if all(re.fullmatch(r"\w+", factor) for factor in factors):
            return factors
        plain = extent[1:-1] if extent.startswith("(") and extent.endswith(")") else extent
        known = next((axis for axis, text in self.derived.items() if text == plain), None)
        match = re.fullmatch(r"(?:-\(-)?(\w+) // (\d+)\)?", plain)
        axis = known or (f"{match[1]}_{match[2]}" if match else f"{name}_extent")
        self.derived.setdefault(axis, plain)
        return [axis] if self.derived[axis] == plain else [f"{name}_extent"]


def _without(total: Sum, lanes: int) -> Sum:
    return {names: factor // lanes for names, factor in total.items() if names}


def loops_around(node: Node) -> list[Node]:
    """Return the `for` loops around a node, the innermost first."""
    loops: list[Node] = []
    while node is not None and node.type != "function_definition":
        if node.type == "for_statement":
            loops.append(node)
        node = node.parent
    return loops
