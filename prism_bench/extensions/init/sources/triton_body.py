"""What a Triton function does with its buffers, read from its syntax: accesses, bounds of indices, and arithmetic.

The body is followed once, in the order of its statements, helpers inside their callers. An integer is a sum of
products of atoms: names of parameters, numbers, and indices such as `%pid0` and `%arange@12.4`.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

Product = tuple[str, ...]
Sum = tuple[Product, ...]

_MOST_TERMS = 48  # of a sum: what grows beyond is an index without a known form
_MOST_CALLS = 3  # helpers of helpers that are followed
_MINUS = "-1"
_SAME = (
    "max_contiguous", "multiple_of", "max_constancy", "broadcast_to", "expand_dims", "reshape", "view", "trans",
    "permute", "to_tensor", "cast", "ravel", "flip", "debug_barrier", "constexpr", "assume", "abs_index",
)  # fmt: skip
_REDUCTIONS = ("sum", "xor_sum", "cumsum", "cumprod", "associative_scan", "reduce", "histogram")
_SELECTIONS = ("max", "min", "argmax", "argmin", "sort", "topk")
_PRODUCTS = ("dot", "dot_scaled")
# Functions of Triton and libdevice as expressions of NumPy.
_FUNCTIONS: Mapping[str, str] = {
    "exp": "xp.exp({0})", "exp2": "xp.exp2({0})", "log": "xp.log({0})", "log2": "xp.log2({0})", "sqrt": "xp.sqrt({0})",
    "sqrt_rn": "xp.sqrt({0})", "rsqrt": "(1 / xp.sqrt({0}))", "sin": "xp.sin({0})", "cos": "xp.cos({0})",
    "tanh": "xp.tanh({0})", "abs": "xp.abs({0})", "floor": "xp.floor({0})", "ceil": "xp.ceil({0})",
    "fast_expf": "xp.exp({0})", "fast_logf": "xp.log({0})", "expm1": "xp.expm1({0})", "log1p": "xp.log1p({0})",
    "sigmoid": "(1 / (1 + xp.exp(-{0})))", "erf": "special.erf({0})", "pow": "({0} ** {1})",
    "maximum": "xp.maximum({0}, {1})", "minimum": "xp.minimum({0}, {1})", "where": "xp.where({0}, {1}, {2})",
    "fma": "({0} * {1} + {2})", "clamp": "xp.clip({0}, {1}, {2})", "fdiv": "({0} / {1})",
    "div_rn": "({0} / {1})", "atan": "xp.arctan({0})", "sinh": "xp.sinh({0})", "cosh": "xp.cosh({0})",
}  # fmt: skip
_EXACT = ("abs", "floor", "ceil", "maximum", "minimum", "where", "clamp")
_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


@dataclass(frozen=True)
class Descriptor:
    """A block pointer or tensor descriptor: the buffer with its extents and strides, as sums."""

    pointer: str
    extents: tuple[Sum, ...]
    strides: tuple[Sum, ...]
    offset: Sum = ()


@dataclass(frozen=True)
class Value:
    """What is known of a value: the integer that it is, the buffer that it points into, its text for NumPy.

    `loaded` are buffers whose elements it depends on; `text` is None unless it is an expression of single elements.
    """

    index: Sum | None = None
    pointer: str | None = None
    text: str | None = None
    loaded: frozenset[str] = frozenset()
    descriptor: Descriptor | None = None
    parts: "tuple[Value, ...]" = ()
    is_float: bool = False
    half: str = ""
    is_computed: bool = False  # by arithmetic or a function, of loaded numbers


@dataclass(frozen=True)
class Access:
    """A load, store or atomic operation: the buffer, the offset as a sum, and what is stored."""

    pointer: str
    offset: Sum | None
    kind: str
    order: int
    value: Value | None = None
    descriptor: Descriptor | None = None


@dataclass
class Body:
    """What a function's body does."""

    accesses: list[Access] = field(default_factory=list[Access])
    bounds: dict[frozenset[Product], str] = field(default_factory=dict[frozenset[Product], str])
    sizes: set[str] = field(default_factory=set[str])  # names in limits of indices
    atom_bounds: dict[str, str] = field(default_factory=dict[str, str])
    ranges: dict[str, Product] = field(default_factory=dict[str, Product])  # extents of each `arange`
    divided: dict[str, tuple[Sum, str]] = field(default_factory=dict[str, tuple[Sum, str]])  # `row // heads`
    integers: set[str] = field(default_factory=set[str])  # parameters in offsets, bounds and ranges
    floats: set[str] = field(default_factory=set[str])  # parameters that meet loaded numbers
    indices: set[str] = field(default_factory=set[str])  # buffers whose elements are used as indices
    labels: dict[str, Sum] = field(default_factory=dict[str, Sum])  # buffers whose elements are compared with an index
    bits: set[str] = field(default_factory=set[str])  # buffers whose elements take bitwise operations
    reductions: list[str] = field(default_factory=list[str])
    selections: list[str] = field(default_factory=list[str])
    products: list[str] = field(default_factory=list[str])
    functions: list[str] = field(default_factory=list[str])
    angles: list[Sum] = field(default_factory=list[Sum])  # of sines and cosines
    helpers: set[str] = field(default_factory=set[str])
    descriptors: set[str] = field(default_factory=set[str])  # parameters that are descriptors of the host
    summed_in_loop: bool = False
    programs: set[int] = field(default_factory=set[int])


def bare_name(function: ast.expr) -> str:
    """Return the last part of a dotted name: `load` of `tl.load`."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def parameters_of(function: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters of a function in order."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def read_body(
    function: ast.FunctionDef, helpers: Mapping[str, ast.FunctionDef], constants: Mapping[str, int | float]
) -> Body:
    """Return what the body of a kernel does; it may call `helpers`, and its file has `constants`."""
    reader = _Reader(helpers, constants)
    names = [argument.arg for argument in parameters_of(function)]
    reader.names = frozenset(names)
    reader.run(function, {name: Value(((name,),), pointer=name, text=name) for name in names})
    return reader.body


def _times(left: Sum | None, right: Sum | None) -> Sum | None:
    if left is None or right is None or len(left) * len(right) > _MOST_TERMS:
        return None
    return tuple(tuple(sorted((*a, *b))) for a, b in product(left, right))


def _plus(left: Sum | None, right: Sum | None, minus: bool = False) -> Sum | None:
    if left is None or right is None or len(left) + len(right) > _MOST_TERMS:
        return None
    return (*left, *(tuple(sorted((_MINUS, *term))) if minus else term for term in right))


class _Reader:
    """Follower of statements with the values of local names."""

    def __init__(self, helpers: Mapping[str, ast.FunctionDef], constants: Mapping[str, int | float]) -> None:
        self.body = Body()
        self.names: frozenset[str] = frozenset()
        self._helpers, self._constants = helpers, constants
        self._depth, self._loops = 0, 0

    # Statements.

    def run(self, function: ast.FunctionDef, values: dict[str, Value]) -> Value:
        """Follow a function; return what it returns."""
        returned = list(self._block(function.body, values))
        return returned[-1] if returned else Value()

    def _block(self, statements: Sequence[ast.stmt], values: dict[str, Value]) -> Iterator[Value]:
        for statement in statements:
            yield from self._statement(statement, values)

    def _statement(self, statement: ast.stmt, values: dict[str, Value]) -> Iterator[Value]:
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._bind(target, self.value(value, values), values)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self.value(value, values), values)
            case ast.AugAssign(target=ast.Name() as target):
                operation = ast.BinOp(ast.Name(target.id, ast.Load()), statement.op, statement.value)
                ast.copy_location(operation, statement)
                added = self.value(operation, values)
                if self._loops and isinstance(statement.op, ast.Add) and not added.pointer and added.loaded:
                    self.body.summed_in_loop = True
                values[target.id] = added
            case ast.For(target=target, iter=iterated, body=body):
                self._loop(target, iterated, body, values)
                yield from ()
            case ast.While(test=test, body=body):
                self.value(test, values)
                self._loops += 1
                yield from self._block(body, values)
                self._loops -= 1
            case ast.If(test=test, body=body, orelse=orelse):
                self.value(test, values)
                before = dict(values)
                yield from self._block(body, values)
                other = dict(before)
                yield from self._block(orelse, other)
                for name, value in other.items():
                    values.setdefault(name, value)
            case ast.Return(value=ast.expr() as value):
                yield self.value(value, values)
            case ast.Expr(value=value):
                self.value(value, values)
            case ast.With(body=body):
                yield from self._block(body, values)
            case _:
                pass

    def _bind(self, target: ast.expr, value: Value, values: dict[str, Value]) -> None:
        if isinstance(target, ast.Name):
            values[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for place, element in enumerate(target.elts):
                self._bind(element, value.parts[place] if place < len(value.parts) else Value(), values)

    def _loop(self, target: ast.expr, iterated: ast.expr, body: Sequence[ast.stmt], values: dict[str, Value]) -> None:
        atom = f"%loop@{iterated.lineno}.{iterated.col_offset}"
        if isinstance(iterated, ast.Call):
            limits = [self.value(argument, values) for argument in iterated.args]
            for limit in limits:
                self._use_as_integer(limit.index)
            stop = limits[1] if len(limits) > 1 else limits[0] if limits else Value()
            if (name := _single_name(stop.index)) is not None:
                self.body.atom_bounds.setdefault(atom, name)
        self._bind(target, Value(((atom,),)), values)
        self._loops += 1
        for _ in self._block(body, values):
            pass
        self._loops -= 1

    # Expressions.

    def value(self, node: ast.expr, values: Mapping[str, Value]) -> Value:
        """Return what is known of an expression, and note its accesses."""
        match node:
            case ast.Name():
                return self._named(node.id, values)
            case ast.Constant(value=bool() | None):
                return Value(text=repr(node.value))
            case ast.Constant(value=int() as number):
                return Value(((str(number),),) if number != 1 else ((),) if number else (), text=repr(number))
            case ast.Constant():
                return Value(text=repr(node.value), is_float=isinstance(node.value, float))
            case ast.BinOp():
                return self._operation(node, values)
            case ast.UnaryOp():
                operand = self.value(node.operand, values)
                sign = {ast.USub: "-", ast.Not: "~", ast.Invert: "~", ast.UAdd: "+"}[type(node.op)]
                text = None if operand.text is None else f"{sign}({operand.text})"
                index = _times(operand.index, ((_MINUS,),)) if isinstance(node.op, ast.USub) else None
                return replace(operand, index=index, pointer=None, text=text)
            case ast.Compare():
                return self._comparison(node, values)
            case ast.BoolOp():
                parts = [self.value(part, values) for part in node.values]
                return Value(loaded=_loaded(parts))
            case ast.Subscript():
                return self._element(node, values)
            case ast.Tuple() | ast.List():
                return Value(parts=tuple(self.value(element, values) for element in node.elts))
            case ast.IfExp():
                self.value(node.test, values)
                self.value(node.orelse, values)
                return self.value(node.body, values)
            case ast.Call():
                return self._call(node, values)
            case ast.Attribute(attr="T"):
                return self.value(node.value, values)
            case _:
                return Value()

    def _named(self, name: str, values: Mapping[str, Value]) -> Value:
        if name in values:
            return values[name]
        if name in self._constants:
            number = self._constants[name]
            index: Sum | None = (((str(number),),) if number != 1 else ((),)) if isinstance(number, int) else None
            return Value(index, text=repr(number), is_float=isinstance(number, float))
        return Value()

    def _operation(self, node: ast.BinOp, values: Mapping[str, Value]) -> Value:
        left, right = self.value(node.left, values), self.value(node.right, values)
        pointer, index = None, None
        if isinstance(node.op, ast.Add | ast.Sub):
            index = _plus(left.index, right.index, isinstance(node.op, ast.Sub))
            if left.pointer and left.pointer != right.pointer:
                pointer = self._base(left, right) if right.pointer else left.pointer
        elif isinstance(node.op, ast.Mult):
            index = _times(left.index, right.index)
        elif isinstance(node.op, ast.Mod | ast.FloorDiv) and left.index is not None:
            atom = f"%part@{node.lineno}.{node.col_offset}"
            name = _single_name(right.index)
            if isinstance(node.op, ast.Mod) and name is not None:
                self.body.atom_bounds.setdefault(atom, name)
            elif name is not None:
                self.body.divided[atom] = (left.index, name)
            self._use_as_integer(left.index)
            self._use_as_integer(right.index)
            index = ((atom,),)
        loaded = left.loaded | right.loaded
        if isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.LShift | ast.RShift):
            self.body.bits |= {name for side in (left, right) if (name := _single_loaded(side))}
        if loaded and not pointer:
            self._meet_numbers(left, right)
        text = None
        if left.text is not None and right.text is not None and type(node.op) in _OPERATORS:
            text = f"({left.text} {_OPERATORS[type(node.op)]} {right.text})"
        sides = (left, right)
        is_computed = isinstance(node.op, ast.Div) or any(side.is_computed or _single_loaded(side) for side in sides)
        return Value(
            index,
            pointer,
            text,
            loaded,
            is_float=left.is_float or right.is_float,
            is_computed=bool(loaded) and is_computed,
        )

    def _base(self, left: Value, right: Value) -> str | None:
        """Return which of two parameters in a sum is the pointer: an integer is known by its other uses."""
        if right.pointer in self.body.integers or left.index is not None and left.index == ((str(left.pointer),),):
            return left.pointer
        return right.pointer if left.pointer in self.body.integers else left.pointer

    def _meet_numbers(self, *sides: Value) -> None:
        for side in sides:
            if not side.loaded:
                names = {atom for term in side.index or () for atom in term}
                self.body.floats |= names & self.names

    def _use_as_integer(self, index: Sum | None) -> None:
        self.body.integers |= {atom for term in index or () for atom in term if atom in self.names}

    def _comparison(self, node: ast.Compare, values: Mapping[str, Value]) -> Value:
        sides = [self.value(side, values) for side in (node.left, *node.comparators)]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Gt | ast.GtE):
                left, right = right, left
            if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and not (left.loaded or right.loaded):
                self._bound(left.index, right.index)
            elif left.loaded or right.loaded:
                self._meet_numbers(left, right)
                for side, other in ((left, right), (right, left)):
                    self._label(side, other)
        text = None
        if len(sides) == 2 and None not in (sides[0].text, sides[1].text) and type(node.ops[0]) in _OPERATORS:
            text = f"({sides[0].text} {_OPERATORS[type(node.ops[0])]} {sides[1].text})"
        return Value(text=text, loaded=_loaded(sides))

    def _label(self, side: Value, other: Value) -> None:
        """Note a buffer whose element is compared with an index, as a label is."""
        loaded = _single_loaded(side)
        atoms = [atom for term in other.index or () for atom in term]
        if loaded and not other.loaded and any(atom.startswith(("%arange", "%pid")) for atom in atoms):
            self.body.labels[loaded] = other.index or ()

    def _bound(self, index: Sum | None, limit: Sum | None) -> None:
        """Note that an index is below a limit: `at < n`, `k < K - step * BLOCK`."""
        plain = [term for term in limit or () if _MINUS not in term]
        name = _single_name(tuple(plain)) if len(plain) == 1 else None
        if index is None or not any(atom.startswith("%") for term in index for atom in term):
            return
        self.body.sizes |= {factor for term in plain for factor in term} & self.names
        if name is None:
            return
        self._use_as_integer(limit)
        self.body.bounds.setdefault(frozenset(index), name)
        for term in index:
            for atom in term:
                if atom.startswith(("%arange", "%part", "%loaded")):
                    self.body.atom_bounds.setdefault(atom, name)

    def _element(self, node: ast.Subscript, values: Mapping[str, Value]) -> Value:
        base = self.value(node.value, values)
        if base.parts and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            return base.parts[node.slice.value] if node.slice.value < len(base.parts) else Value()
        return base

    # Calls.

    def _call(self, node: ast.Call, values: Mapping[str, Value]) -> Value:
        name = bare_name(node.func)
        named = {keyword.arg: self.value(keyword.value, values) for keyword in node.keywords if keyword.arg}
        if isinstance(node.func, ast.Attribute):
            receiver = self.value(node.func.value, values)
            if name in ("to", "cast"):
                half = next((word for word in ("bfloat16", "float16") if word in ast.unparse(node)), "")
                is_function = receiver == Value() and name == "cast" and len(node.args) > 0  # tl.cast(x, dtype)
                return replace(self.value(node.args[0], values) if is_function else receiver, half=half)
            if name in _SAME and receiver != Value():  # x.reshape(...)
                return receiver
            if receiver.descriptor or receiver.pointer and name in ("load", "store") and receiver.index is not None:
                return self._described(node, name, receiver, values)
            if receiver.loaded and name in (*_REDUCTIONS, *_SELECTIONS, *_FUNCTIONS):
                arguments = [receiver, *(self.value(argument, values) for argument in node.args)]
                return self._applied(node, name, arguments, named)
        arguments = [self.value(argument, values) for argument in node.args]
        if name in self._helpers:
            return self._helper(name, arguments, named)
        return self._applied(node, name, arguments, named)

    def _applied(self, node: ast.Call, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        """Return the value of a function of Triton's language."""
        first = arguments[0] if arguments else next(iter(named.values()), Value())
        place = f"{node.lineno}.{node.col_offset}"
        if name == "program_id":
            axis = next(iter([*node.args, *(keyword.value for keyword in node.keywords)]), ast.Constant(0))
            number = axis.value if isinstance(axis, ast.Constant) and isinstance(axis.value, int) else 0
            self.body.programs.add(number)
            return Value(((f"%pid{number}",),))
        if name == "arange":
            size = arguments[1].index if len(arguments) > 1 else None
            self._use_as_integer(size)
            self.body.ranges[f"%arange@{place}"] = size[0] if size and len(size) == 1 else ()
            return Value(((f"%arange@{place}",),))
        if name in ("load", "store") or name.startswith("atomic_"):
            return self._access(node, name, arguments, named)
        if name in ("make_block_ptr", "make_tensor_descriptor"):
            return self._descriptor(arguments, named)
        if name in ("rand", "randn", "randint"):
            return Value(loaded=frozenset(["%random"]), is_float=True)
        if name == "advance":
            return first
        if name in _SAME:
            return first
        if name in _PRODUCTS:
            self.body.products.append(ast.unparse(node))
        if name in _REDUCTIONS:
            self.body.reductions.append(name)
        if name in _SELECTIONS and (name not in ("max", "min") or len(arguments) < 2 or "axis" in named):
            self.body.selections.append(name)
            return Value(loaded=_loaded(arguments))
        if name in ("where", "minimum", "maximum", "min", "max", "cdiv"):
            return self._chosen(name, arguments, place)
        loaded = _loaded([*arguments, *named.values()])
        text = None
        if name in _FUNCTIONS and name not in _REDUCTIONS:
            if name not in _EXACT:
                self.body.functions.append(name)
            if name in ("sin", "cos") and first.index and first.loaded:
                self.body.angles.append(first.index)
            text = _formatted(name, arguments)
        if loaded:
            self._meet_numbers(*arguments)
        if name in ("zeros", "full", "zeros_like"):
            return Value(text="0.0" if name != "full" or len(arguments) < 2 else arguments[1].text)
        is_computed = any(argument.is_computed for argument in arguments) or name in self.body.functions
        return Value(text=text, loaded=loaded, is_computed=is_computed)

    def _chosen(self, name: str, arguments: list[Value], place: str) -> Value:
        """Return the value of a function that selects between its operands, or that divides."""
        if name == "cdiv":
            for argument in arguments:
                self._use_as_integer(argument.index)
            return Value(((f"%part@{place}",),))
        operands = arguments[1:] if name == "where" else arguments
        chosen = next((operand for operand in operands if operand.pointer or operand.index), Value())
        loaded = _loaded(arguments)
        if loaded:
            self._meet_numbers(*operands)
        elif name in ("minimum", "min") and len(operands) > 1:
            self._bound(operands[0].index, operands[1].index)
        text = _formatted({"min": "minimum", "max": "maximum"}.get(name, name), arguments)
        return replace(chosen, text=text, loaded=loaded, is_computed=any(operand.is_computed for operand in operands))

    def _access(self, node: ast.Call, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        address = arguments[0] if arguments else named.get("pointer", Value())
        stored = arguments[1] if len(arguments) > 1 and name != "load" else named.get("value", named.get("val"))
        if name == "atomic_cas" and len(arguments) > 2:
            stored = arguments[2]
        if address.descriptor is not None:
            return self._note(address.descriptor.pointer, name, (), stored, address.descriptor)
        if address.pointer is None:
            return Value(loaded=frozenset(["%unknown"]))
        offset = address.index
        if offset is not None:
            offset = tuple(term for term in offset if term != (address.pointer,))
        if address.loaded:
            self.body.indices |= {buffer for buffer in address.loaded if buffer in self.names}
        self._use_as_integer(offset)
        return self._note(address.pointer, name, offset, stored, None)

    def _note(
        self, pointer: str, name: str, offset: Sum | None, stored: Value | None, descriptor: Descriptor | None
    ) -> Value:
        kind = "atomic" if name.startswith("atomic_") else name
        self.body.accesses.append(Access(pointer, offset, kind, len(self.body.accesses), stored, descriptor))
        if stored is not None and stored.loaded:
            self._meet_numbers(stored)
        text = pointer if kind == "load" else None
        return Value(((f"%loaded:{pointer}",),), text=text, loaded=frozenset([pointer]))

    def _described(self, node: ast.Call, name: str, receiver: Value, values: Mapping[str, Value]) -> Value:
        """Follow `descriptor.load([...])` and `descriptor.store([...], value)`."""
        arguments = [self.value(argument, values) for argument in node.args]
        stored = arguments[1] if len(arguments) > 1 else None
        if receiver.descriptor is None:
            self.body.descriptors.add(str(receiver.pointer))
            return self._note(str(receiver.pointer), name, None, stored, None)
        return self._note(receiver.descriptor.pointer, name, (), stored, receiver.descriptor)

    def _descriptor(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        names = ("base", "shape", "strides", "offsets", "block_shape", "order")
        passed = {**dict(zip(names, arguments, strict=False)), **named}
        base, extents, strides = (passed.get(name, Value()) for name in names[:3])
        if base.pointer is None:
            return Value()
        offset = tuple(term for term in base.index or () if term != (base.pointer,))
        sums = [tuple(part.index or () for part in value.parts) for value in (extents, strides)]
        for index in (*sums[0], *sums[1], offset):
            self._use_as_integer(index)
        return Value(descriptor=Descriptor(base.pointer, sums[0], sums[1], offset))

    def _helper(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        self.body.helpers.add(name)
        if self._depth >= _MOST_CALLS:
            return Value(loaded=_loaded(arguments))
        function = self._helpers[name]
        parameters = [argument.arg for argument in parameters_of(function)]
        defaults = dict(zip(reversed(parameters), reversed(function.args.defaults), strict=False))
        values = {parameter: self.value(default, {}) for parameter, default in defaults.items()}
        values |= {**dict(zip(parameters, arguments, strict=False)), **named}
        self._depth += 1
        returned = self.run(function, values)
        self._depth -= 1
        return returned


def _single_name(index: Sum | None) -> str | None:
    """Return the only name of a sum of one product, None for any other sum."""
    if index is None or len(index) != 1 or len(index[0]) != 1 or index[0][0].startswith("%"):
        return None
    return index[0][0]


def _single_loaded(value: Value) -> str | None:
    """Return the buffer of a loaded element as it is, None for any other value."""
    if value.index is None or len(value.index) != 1 or len(value.index[0]) != 1:
        return None
    atom = value.index[0][0]
    return atom.partition(":")[2] if atom.startswith("%loaded:") else None


def _loaded(values: Sequence[Value]) -> frozenset[str]:
    return frozenset[str]().union(*(value.loaded for value in values))


def _formatted(name: str, arguments: Sequence[Value]) -> str | None:
    texts = [argument.text for argument in arguments]
    form = _FUNCTIONS.get(name)
    if form is None or None in texts or f"{{{len(texts)}}}" in form:
        return None
    try:
        return form.format(*texts)
    except IndexError:
        return None
