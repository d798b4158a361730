"""Launches `kernel[grid](...)` of Triton functions, read from the syntax of the Python that launches them."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from keyword import iskeyword
from pathlib import Path
from typing import cast

from prism_bench.extensions.init.sources.triton_body import bare_name

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_IGNORED = ("grid", "warmup", "stream", "enable_fp_fusion", "launch_cooperative_grid", "launch_pdl")
_SAME = ("contiguous", "detach", "clone", "to", "float", "half", "cuda", "view", "reshape", "flatten", "data", "t")
_CREATED = (
    "empty", "zeros", "empty_like", "zeros_like", "full", "full_like", "ones", "new_empty", "new_zeros",
    "empty_strided",
)  # fmt: skip
_GRID_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPUTED: Mapping[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Pow: pow, ast.LShift: operator.lshift,
}  # fmt: skip
_LARGEST_OPERAND = 1 << 20
_DTYPES = {
    "float": "float32", "half": "float16", "double": "float64", "long": "int64", "int": "int32", "bool": "bool",
    **{name: name for name in ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64")},
    "uint8": "uint8", "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
}  # fmt: skip

# Values that a file fixes: numbers, and the configurations of `autotune`.

Configuration = dict[str, int | float | str | None]


def literals(module: ast.Module) -> dict[str, int | float]:
    """Return the numbers that a file binds to names, `tl.constexpr(...)` around them too."""
    numbers: dict[str, int | float] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            value = statement.value
            if isinstance(value, ast.Call) and bare_name(value.func) == "constexpr" and value.args:
                value = value.args[0]
            if isinstance(target, ast.Name):
                with suppress(ValueError):
                    number = _literal(value, numbers)
                    if isinstance(number, int | float) and not isinstance(number, bool):
                        numbers[target.id] = number
    return numbers


def _literal(node: ast.expr, names: Mapping[str, object]) -> object:
    """Return the value of an expression of literals and known names; ValueError for any other."""
    match node:
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Pow() | ast.LShift()):
            left, right = _literal(node.left, names), _literal(node.right, names)
            if not isinstance(left, int) or not isinstance(right, int) or abs(right) > _LARGEST_OPERAND:
                raise ValueError("not simple")
            return _COMPUTED[type(node.op)](left, right)
        case ast.Dict():
            keys = [_literal(key, names) for key in node.keys if key is not None]
            return dict(zip(keys, (_literal(value, names) for value in node.values), strict=True))
        case ast.List() | ast.Tuple():
            return [_literal(element, names) for element in node.elts]
        case ast.Call(args=arguments) if bare_name(node.func) == "range":
            limits = [_literal(argument, names) for argument in arguments]
            return list(range(*[limit for limit in limits if isinstance(limit, int)]))
        case _:
            return ast.literal_eval(node)


class ConfigurationReader:
    """Reader of the configurations that a decorator `autotune` has, through names, functions and comprehensions."""

    def __init__(self, module: ast.Module, others: "Mapping[str, Sequence[ConfigurationReader]]") -> None:
        """Read `module`; `others` are the readers of modules by the last part of their names, for what it imports."""
        self._names: dict[str, object] = dict(literals(module))
        self._values: dict[str, ast.expr] = {}
        self._imported: dict[str, tuple[str, str]] = {}
        self._others = others
        for statement in ast.walk(module):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._values[name] = value
                case ast.FunctionDef(name=name, body=body):
                    returned = [part.value for part in ast.walk(statement) if isinstance(part, ast.Return)]
                    if body and returned and returned[-1] is not None:
                        self._values[name] = returned[-1]
                case ast.ImportFrom(module=str() as origin, names=names):
                    last = origin.rpartition(".")[2]
                    self._imported |= {alias.asname or alias.name: (last, alias.name) for alias in names}
                case _:
                    pass

    def read(self, node: ast.expr, names: Mapping[str, object] | None = None, depth: int = 0) -> list[Configuration]:
        """Return the configurations that can be read, in order."""
        names = names or self._names
        match node:
            case ast.List() | ast.Tuple():
                return [made for element in node.elts for made in self.read(element, names, depth)]
            case ast.Starred(value=value):
                return self.read(value, names, depth)
            case ast.BinOp(op=ast.Add()):
                return [*self.read(node.left, names, depth), *self.read(node.right, names, depth)]
            case ast.ListComp(elt=element, generators=generators):
                return [
                    made
                    for values in self._combinations(generators, names)
                    for made in self.read(element, values, depth)
                ]
            case ast.IfExp(body=body):
                return self.read(body, names, depth)
            case ast.Name(id=name) if name in self._values and depth < 4:
                return self.read(self._values[name], names, depth + 1)
            case ast.Call() if bare_name(node.func) == "Config":
                return self._configuration(node, names)
            case ast.Call(args=[inner, *_]) if bare_name(node.func) in ("list", "filter", "tuple", "sorted"):
                return self.read(node.args[-1] if bare_name(node.func) == "filter" else inner, names, depth)
            case ast.Call() if bare_name(node.func) in self._values and depth < 4:
                return self.read(self._values[bare_name(node.func)], names, depth + 1)
            case ast.Call(args=[]) | ast.Name() if depth < 4:
                name = node.id if isinstance(node, ast.Name) else bare_name(node.func)
                return self._read_imported(name, depth)
            case _:
                return []

    def _read_imported(self, name: str, depth: int) -> list[Configuration]:
        """Return the configurations of a name of another module; none if two modules with that name have it."""
        origin, there = self._imported.get(name, ("", ""))
        readers = [reader for reader in self._others.get(origin, ()) if there in reader._values]
        return readers[0].read(readers[0]._values[there], None, depth + 1) if len(readers) == 1 else []

    def _configuration(self, call: ast.Call, names: Mapping[str, object]) -> list[Configuration]:
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        constants = call.args[0] if call.args else keywords.get("kwargs")
        try:
            known = _literal(constants, names) if constants is not None else {}
            options = {name: _literal(keywords[name], names) for name in OPTIONS if name in keywords}
        except (ValueError, TypeError, SyntaxError):
            return []
        return [cast(Configuration, {**known, **options})] if isinstance(known, dict) else []

    def _combinations(
        self, generators: Sequence[ast.comprehension], names: Mapping[str, object]
    ) -> Iterator[dict[str, object]]:
        choices: list[tuple[str, list[object]]] = []
        for generator in generators:
            try:
                listed = generator.iter
                if isinstance(listed, ast.Name) and listed.id not in names:
                    listed = self._values.get(listed.id, listed)
                values = _literal(listed, names)
            except (ValueError, TypeError, SyntaxError):
                return
            if not isinstance(generator.target, ast.Name) or not isinstance(values, list) or generator.ifs:
                return
            choices.append((generator.target.id, values))
        for combined in product(*(values for _, values in choices)):
            yield {**names, **dict(zip((name for name, _ in choices), combined, strict=True))}


# A function of the host that launches: its local names, and expressions over a kernel's parameters.


@dataclass(frozen=True)
class HostFile:
    """A Python file with its syntax tree."""

    path: Path
    tree: ast.Module


@dataclass(frozen=True)
class LaunchCall:
    """A launch in the source: the kernel's name, the call, the grid, and the function around it, if any."""

    file: HostFile
    kernel: str
    call: ast.Call
    grid: ast.expr
    function: ast.FunctionDef | ast.AsyncFunctionDef | None


def launch_calls(file: HostFile) -> Iterator[LaunchCall]:
    """Yield the launches of a file, in order: `kernel[grid](...)`, and `launch = kernel[grid]` with `launch(...)`."""
    functions = [node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around: dict[int, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for function in functions:  # the innermost function comes last
        around |= {id(node): function for node in ast.walk(function) if isinstance(node, ast.Call)}
    bound = {
        node.targets[0].id: node.value
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
    }
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Call):
            continue
        target = node.func
        if isinstance(target, ast.Name) and target.id in bound:
            target = bound[target.id]
        if isinstance(target, ast.Subscript):
            yield LaunchCall(file, bare_name(target.value), node, target.slice, around.get(id(node)))


@dataclass
class Host:
    """What the function around a launch binds to its local names."""

    values: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    created: dict[str, ast.Call] = field(default_factory=dict[str, ast.Call])
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    defaults: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])

    @classmethod
    def around(cls, launch: LaunchCall) -> "Host":
        """Return the names that are bound before the launch, those of the file included."""
        host = cls()
        if launch.function is not None:
            arguments = launch.function.args
            listed = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
            host.defaults = dict(zip(reversed(listed), reversed(arguments.defaults), strict=False))
            pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            host.defaults |= {argument.arg: default for argument, default in pairs if default is not None}
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                host.annotations[argument.arg] = ast.unparse(argument.annotation) if argument.annotation else ""
        for root in (launch.file.tree.body, launch.function.body if launch.function else []):
            for statement in root:
                if statement.lineno > launch.call.lineno or (
                    isinstance(statement, ast.FunctionDef | ast.ClassDef) and root is launch.file.tree.body
                ):
                    continue
                for node in ast.walk(statement):
                    if isinstance(node, ast.stmt) and node.lineno <= launch.call.lineno:
                        host._bind(node)
        return host

    def _bind(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name):
                        self._assign(target.id, value)
            case ast.Assign(
                targets=[ast.Tuple(elts=targets)], value=ast.Call(func=ast.Name(id="divmod"), args=[left, right])
            ):
                for target, sign in zip(targets, (ast.FloorDiv(), ast.Mod()), strict=False):
                    if isinstance(target, ast.Name):
                        self._assign(target.id, ast.copy_location(ast.BinOp(left, sign, right), node))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Attribute(attr="shape") | ast.Call() as value):
                if isinstance(value, ast.Attribute) or bare_name(value.func) in ("size", "stride"):
                    for place, target in enumerate(targets):
                        if isinstance(target, ast.Name) and target.id != "_":
                            element = ast.Subscript(value, ast.Constant(place), ast.Load())
                            self._assign(target.id, ast.copy_location(element, node))
            case ast.Assign(
                targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=[ast.Starred(value=shape), *others])
            ):
                first = len(targets) - len(others)
                elements = [ast.Subscript(shape, ast.Constant(place), ast.Load()) for place in range(first)]
                for target, value in zip(targets, [*elements, *others], strict=False):
                    if isinstance(target, ast.Name) and target.id != "_":
                        self._assign(target.id, ast.copy_location(value, node))
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.expr() as returned)]):
                self.functions[name] = returned
            case _:
                pass

    def _assign(self, name: str, value: ast.expr) -> None:
        refers = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if isinstance(value, ast.Call) and bare_name(value.func) in _CREATED:
            self.created[name] = value
        elif name not in refers and not (isinstance(value, ast.Constant) and value.value is None):
            self.values[name] = value

    def tensor(self, node: ast.expr) -> str | None:
        """Return the name of the tensor that an argument is: `x` of `x.contiguous().view(-1)`."""
        while True:
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr=attribute)) if attribute in _SAME:
                    node = value
                case ast.Attribute(value=value, attr=attribute) if attribute in _SAME:
                    node = value
                case ast.IfExp(body=body):
                    node = body
                case ast.Name(id=name) if name in self.values and name not in self.created:
                    inner = self.values[name]
                    if not isinstance(inner, ast.Call | ast.Attribute | ast.IfExp) or self._depth(inner) is None:
                        return name
                    node = inner
                case ast.Name(id=name):
                    return name
                case ast.Attribute():
                    return ast.unparse(node)
                case _:
                    return None

    def _depth(self, node: ast.expr) -> str | None:
        """Return the name below methods that leave a tensor's elements as they are."""
        while isinstance(node, ast.Call | ast.Attribute | ast.IfExp):
            if isinstance(node, ast.IfExp):
                node = node.body
            elif isinstance(node, ast.Call):
                if not isinstance(node.func, ast.Attribute) or node.func.attr not in _SAME:
                    return None
                node = node.func.value
            elif node.attr in _SAME:
                node = node.value
            else:
                return None
        return node.id if isinstance(node, ast.Name) else None

    def canonical(self, node: ast.expr, depth: int = 0) -> str:
        """Return the text of an expression with its local names replaced by their values: `x.shape[0]`."""
        return ast.unparse(_Replacer(self, depth).visit(_copied(node)))

    def literal(self, node: ast.expr) -> ast.Constant | None:
        """Return the literal that an argument is: as it is, through a local name, or as a parameter's default."""
        for _ in range(6):
            match node:
                case ast.Constant():
                    return node
                case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                    return ast.Constant(-number)
                case ast.Name(id=name) if name in self.values:
                    node = self.values[name]
                case ast.Name(id=name) if name in self.defaults:
                    node = self.defaults[name]
                case _:
                    return None
        return None

    def is_fact(self, node: ast.expr) -> bool:
        """Return whether an expression is a fact of a tensor: its extent, its number of elements."""
        return is_fact(self.canonical(node))

    def dtype(self, name: str) -> str | None:
        """Return the type that a tensor is created with, None if the file states none."""
        call = self.created.get(name)
        stated = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), None) if call else None
        return _DTYPES.get(bare_name(stated)) if stated is not None else None

    def is_zeroed(self, name: str) -> bool:
        """Return whether a tensor begins with zeros."""
        call = self.created.get(name)
        return call is not None and bare_name(call.func) in ("zeros", "zeros_like", "new_zeros")


def is_fact(canonical: str) -> bool:
    """Return whether the text is a fact of a tensor: `x.shape[0]`, `x.numel()`."""
    match ast.parse(canonical, mode="eval").body:
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant() | ast.UnaryOp()):
            return True
        case ast.Call(func=ast.Attribute(attr="numel"), args=[]):
            return True
        case _:
            return False


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


class _Replacer(ast.NodeTransformer):
    """Replacement of local names by their values; `size(0)` and `len(x)` become `shape[0]`."""

    def __init__(self, host: Host, depth: int) -> None:
        self._host, self._depth = host, depth

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._host.values.get(node.id)
        if value is None or self._depth > 6:
            return node
        return _Replacer(self._host, self._depth + 1).visit(_copied(value))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="size"), args=[axis]):
                return self.visit(ast.Subscript(ast.Attribute(value, "shape", ast.Load()), axis, ast.Load()))
            case ast.Call(func=ast.Attribute(value=value, attr="size" | "stride" as what), args=[]):
                return ast.Attribute(self.visit(value), "shape" if what == "size" else "stride", ast.Load())
            case ast.Call(func=ast.Attribute(value=value, attr="nelement"), args=[]):
                return self.visit(ast.Call(ast.Attribute(value, "numel", ast.Load()), [], []))
            case ast.Call(func=ast.Attribute(value=value, attr=attribute)) if attribute in _SAME[:7]:
                return self.visit(value)
            case ast.Call(func=ast.Name(id="len"), args=[value]):
                shape = ast.Attribute(value, "shape", ast.Load())
                return self.visit(ast.Subscript(shape, ast.Constant(0), ast.Load()))
            case _:
                self.generic_visit(node)
                return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Call(func=ast.Attribute(value=value, attr="stride"), args=[]), slice=axis):
                return self.visit(ast.Call(ast.Attribute(value, "stride", ast.Load()), [axis], []))
            case _:
                self.generic_visit(node)
                return node


# Expressions over a kernel's parameters.


class Expressions:
    """Translator of the host's expressions into Python over parameters of a kernel and axes of its spec.

    `passed` are the host's expressions by parameter. An expression that is no parameter, such as `x.shape[0]`, becomes
    a separate axis; `axes` has its name by the canonical text.
    """

    def __init__(self, host: Host, passed: Mapping[str, ast.expr], taken: Sequence[str]) -> None:
        self._host, self._taken = host, set(taken)
        self.axes: dict[str, str] = {}
        self.unknown: set[str] = set()  # axes for names that the file does not bind
        self.kernel_names: frozenset[str] = frozenset()  # names that mean the kernel's own parameters, in heuristics
        self.by_text: dict[str, str] = {}
        for name, node in passed.items():
            self.name(node, name)

    def name(self, node: ast.expr, parameter: str) -> None:
        """Let an expression of the host be a parameter of the kernel."""
        if self._host.literal(node) is None:
            self.by_text.setdefault(self._host.canonical(node), parameter)
            self.by_text.setdefault(ast.unparse(node), parameter)

    def text(self, node: ast.expr, depth: int = 0) -> str:
        """Return the expression; ValueError with the part that is not simple."""
        if depth > 12:
            raise ValueError(ast.unparse(node)[:60])
        known = self.by_text.get(ast.unparse(node)) or self.by_text.get(self._host.canonical(node))
        if known is not None:
            return known
        match node:
            case ast.Constant(value=bool() | int() | str() | None | float()):
                return repr(node.value)
            case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str() as name)) if _is_name(
                name
            ):  # meta["B"]
                return name
            case ast.Name(id=name) if name in self._host.values:
                value = self._host.values[name]
                if is_fact(self._host.canonical(value)):
                    return self._axis(self._host.canonical(value), name)
                return self.text(value, depth + 1)
            case ast.Name(id=name) if name in self.kernel_names:
                return name
            case ast.Name(id=name) if name in self._host.defaults:
                return self.text(self._host.defaults[name], depth + 1)
            case ast.Name(id=name):
                return self._unknown(name)
            case ast.BinOp() if type(node.op) in _GRID_OPERATORS:
                left, right = self.text(node.left, depth + 1), self.text(node.right, depth + 1)
                left = f"({left})" if isinstance(node.op, ast.Pow) else left  # which binds closer than a minus
                return f"({left} {_GRID_OPERATORS[type(node.op)]} {right})"
            case ast.Compare(ops=[compared], comparators=[right]) if type(compared) in _GRID_OPERATORS:
                left = self.text(node.left, depth + 1)
                return f"({left} {_GRID_OPERATORS[type(compared)]} {self.text(right, depth + 1)})"
            case ast.Compare(ops=[ast.Is() | ast.IsNot() as compared], comparators=[ast.Constant(value=None)]):
                return str(isinstance(compared, ast.IsNot))
            case ast.BoolOp():
                word = " and " if isinstance(node.op, ast.And) else " or "
                return f"({word.join(self.text(part, depth + 1) for part in node.values)})"
            case ast.UnaryOp(op=ast.Not() | ast.USub() as sign, operand=operand):
                return f"({'not ' if isinstance(sign, ast.Not) else '-'}{self.text(operand, depth + 1)})"
            case ast.IfExp():
                body, test, other = (self.text(part, depth + 1) for part in (node.body, node.test, node.orelse))
                return f"({body} if {test} else {other})"
            case ast.Call():
                return self._call(node, depth)
            case ast.Subscript() | ast.Attribute() if is_fact(self._host.canonical(node)):
                return self._axis(self._host.canonical(node), "")
            case _:
                raise ValueError(ast.unparse(node)[:60])

    def _call(self, node: ast.Call, depth: int) -> str:
        name, parts = bare_name(node.func), node.args
        if name == "cdiv" and len(parts) == 2:
            return f"-(-{self.text(parts[0], depth + 1)} // {self.text(parts[1], depth + 1)})"
        if name == "next_power_of_2" and len(parts) == 1:
            return f"(1 << max({self.text(parts[0], depth + 1)} - 1, 0).bit_length())"
        if name in ("min", "max") and len(parts) > 1:
            return f"{name}({', '.join(self.text(part, depth + 1) for part in parts)})"
        if name in ("int", "bool", "ceil", "floor", "sqrt", "isqrt") and len(parts) == 1:
            return self._rounded(name, parts[0], depth)
        if name == "element_size":
            return "4"
        canonical = self._host.canonical(node)
        if is_fact(canonical):
            return self._axis(canonical, "")
        raise ValueError(ast.unparse(node)[:60])

    def _rounded(self, name: str, node: ast.expr, depth: int) -> str:
        """Return a square root, or a value rounded to a whole number, which integers and their quotients may be."""
        if name in ("ceil", "floor", "int") and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left, right = self.text(node.left, depth + 1), self.text(node.right, depth + 1)
            return f"-(-{left} // {right})" if name == "ceil" else f"({left} // {right})"
        text = self.text(node, depth + 1)
        if name == "sqrt":
            return f"(({text}) ** 0.5)"
        if name == "isqrt":
            return f"int(({text}) ** 0.5)"
        if name == "bool" or re.search(r"\d\.\d", text) is None:  # without a root it is whole
            return text
        return f"int(-(-{text} // 1))" if name == "ceil" else f"int({text})"

    def _unknown(self, name: str) -> str:
        axis = self._axis(name, name)
        self.unknown.add(axis)
        return axis

    def _axis(self, canonical: str, hint: str) -> str:
        """Return the name of the axis for an expression of the host."""
        if canonical in self.by_text:
            return self.by_text[canonical]
        if canonical not in self.axes:
            place = canonical.rpartition("[")[2].rstrip("]")
            usual = {"0": "rows", "1": "cols", "-1": "cols"}.get(place, f"size_{place.lstrip('-')}")
            name = hint or (usual if "[" in canonical else "n")
            name = name if name.isidentifier() else "n"
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self.axes[canonical] = name
        return self.axes[canonical]


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def passed_arguments(launch: LaunchCall, parameters: Sequence[str]) -> dict[str, ast.expr]:
    """Return the host's expressions by the kernel's parameters; ValueError for `*arguments` and `**arguments`."""
    if any(isinstance(argument, ast.Starred) for argument in launch.call.args):
        raise ValueError("*arguments, whose number the file does not state")
    passed = dict(zip(parameters, launch.call.args, strict=False))
    for keyword in launch.call.keywords:
        if keyword.arg is None:
            raise ValueError("**arguments, whose names the file does not state")
        passed[keyword.arg] = keyword.value
    return passed


def options_of(launch: LaunchCall, parameters: Sequence[str]) -> dict[str, ast.expr]:
    """Return what a launch gives to the compiler: `num_warps=4`."""
    return {
        keyword.arg: keyword.value
        for keyword in launch.call.keywords
        if keyword.arg and keyword.arg not in parameters and keyword.arg not in _IGNORED
    }


def grid_extents(launch: LaunchCall, host: Host) -> list[ast.expr]:
    """Return the extents of a grid, through variables, functions and `lambda meta: ...`; ValueError for others."""
    node, seen = launch.grid, 0
    while seen < 8:
        seen += 1
        match node:
            case ast.Tuple(elts=extents):
                return list(extents)
            case ast.Lambda(body=body):
                node = body
            case ast.Name(id=name) if name in host.functions:
                node = host.functions[name]
            case ast.Name(id=name) if name in host.values:
                node = host.values[name]
            case ast.IfExp(body=body):
                node = body
            case ast.List(elts=extents):
                return list(extents)
            case ast.BinOp() | ast.Call() | ast.Constant() | ast.Name() | ast.Subscript() | ast.Attribute():
                return [node]
            case _:
                break
    raise ValueError(f"grid: '{ast.unparse(launch.grid)[:60]}' is no tuple of names, numbers and divisions")
