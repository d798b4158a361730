"""Triton functions and their launches in a Python file, read from its syntax."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prism_bench.extensions.init.sources.found import (
    FoundKernel,
    FoundLaunch,
    FoundOperator,
    FoundParameter,
    Guess,
    Role,
    Scan,
    Unread,
)

# Launches `kernel[grid](...)` of Triton in a Python file, as expressions over the kernel's parameters.

_USUAL_BLOCK, _USUAL_AXIS = 1024, 1024


def written_launches(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that launch, each with the kernel's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            yield ast.unparse(node.func.value).rpartition(".")[2], node


def read_launch(path: Path, tree: ast.Module, call: ast.Call, parameters: Sequence[FoundParameter]) -> FoundLaunch:
    """Return a launch; `names` have a value for each constant, and for what the grid asks for beyond the parameters.

    `template_arguments` are the compiler's own options, such as `num_warps=4`.
    """
    assert isinstance(call.func, ast.Subscript)
    passed = _passed(call, parameters)
    constants = [parameter.name for parameter in parameters if parameter.role.value == "constexpr"]
    names = {name: _constant(name, passed.get(name), call) for name in constants}
    own = {parameter.name for parameter in parameters}
    options = [
        f"{keyword.arg}={ast.unparse(keyword.value)}"
        for keyword in call.keywords
        if keyword.arg and keyword.arg not in own and isinstance(keyword.value, ast.Constant)
    ]
    written = _grid_of(call.func.slice, tree)
    meant = {ast.unparse(value): name for name, value in passed.items() if isinstance(value, ast.Name)}
    grid = _extents(written, meant)
    if grid is None:
        reason = f"grid: '{ast.unparse(call.func.slice)[:60]}' is no tuple of names, numbers and divisions"
        return FoundLaunch(path, call.lineno, None, (), unread=(Unread(path, call.lineno, reason),))
    free = sorted({word for text in grid for word in _names_in(text)} - own)
    names |= {name: Guess(_USUAL_AXIS, "no value in the file") for name in free}
    return FoundLaunch(path, call.lineno, grid, (), "0", tuple(options), tuple(names.items()))


def _passed(call: ast.Call, parameters: Sequence[FoundParameter]) -> Mapping[str, ast.expr]:
    by_place = zip((parameter.name for parameter in parameters), call.args, strict=False)
    return {**dict(by_place), **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}}


def _constant(name: str, value: ast.expr | None, call: ast.Call) -> Guess[int]:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return Guess(value.value, f"passed in line {call.lineno}")
    return Guess(_USUAL_BLOCK if "BLOCK" in name.upper() else 1, "no value in the file")


def _grid_of(node: ast.expr, tree: ast.Module) -> ast.expr:
    """Return the grid's expression, through a variable, a function and the body of `lambda meta: ...`."""
    if isinstance(node, ast.Name):
        values = [
            one.value
            for one in ast.walk(tree)
            if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [node.id]
        ]
        for one in ast.walk(tree):
            if isinstance(one, ast.FunctionDef) and one.name == node.id and isinstance(one.body[-1], ast.Return):
                values += [one.body[-1].value] if one.body[-1].value else []
        node = values[0] if len(values) == 1 else node
    return node.body if isinstance(node, ast.Lambda) else node


def _extents(node: ast.expr, meant: Mapping[str, str]) -> tuple[str, ...] | None:
    parts = node.elts if isinstance(node, ast.Tuple) else []
    try:
        return tuple(_python(part, meant) for part in parts) or None
    except ValueError:
        return None


def _python(node: ast.expr, meant: Mapping[str, str]) -> str:
    """Return an expression over the kernel's parameters; ValueError if it is not simple."""
    match node:
        case ast.Name():
            return meant.get(node.id, node.id)
        case ast.Constant(value=int()):
            return str(node.value)
        case ast.Subscript(slice=ast.Constant(value=str() as name)):  # meta["BLOCK"]
            return name
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return f"({_python(node.left, meant)} {_GRID_OPERATORS[type(node.op)]} {_python(node.right, meant)})"
        case ast.Call(args=[above, below]) if ast.unparse(node.func).rpartition(".")[2] == "cdiv":
            return f"-(-{_python(above, meant)} // {_python(below, meant)})"
        case _:
            raise ValueError("not simple")


_GRID_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}


def _names_in(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


# Triton functions and PyTorch custom operators of a Python file, read from its syntax tree and never executed.

_POINTER = ("_ptr", "_pointer", "Ptr", "ptr")
_OPERATORS = ("custom_op", "triton_op")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def scan_python(path: Path, text: str) -> Scan:
    """Return the Triton kernels and custom operators of a Python file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return Scan(unread=(Unread(path, line, f"no Python: {getattr(error, 'msg', error)}"),))
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    launches = list(written_launches(tree))
    jit = _jit_names(tree)
    found = [node for node in functions if any(name in jit for name, _ in _decorators(node))]
    kernels = tuple(_kernel(path, tree, node, launches) for node in found)
    operators = tuple(operator for node in functions for operator in _operators(path, node))
    return Scan(kernels, operators, tuple(_unread_definitions(path, tree)))


def _decorators(node: _Function) -> list[tuple[str, ast.expr]]:
    """Return each decorator with its dotted name, without its arguments."""
    return [(ast.unparse(one.func if isinstance(one, ast.Call) else one), one) for one in node.decorator_list]


def _jit_names(tree: ast.Module) -> set[str]:
    """Return the names under which the file has `triton.jit`."""
    names = {"triton.jit"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "triton":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
        elif isinstance(node, ast.Import):
            names |= {f"{alias.asname}.jit" for alias in node.names if alias.name == "triton" and alias.asname}
    return names


def _kernel(path: Path, tree: ast.Module, node: _Function, launches: Sequence[tuple[str, ast.Call]]) -> FoundKernel:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    use = _pointer_use(node)
    parameters = tuple(_parameter(argument, use) for argument in arguments)
    own = tuple(read_launch(path, tree, call, parameters) for name, call in launches if name == node.name)
    decorators = tuple(name for name, _ in _decorators(node))
    return FoundKernel("triton", node.name, path, node.lineno, parameters, launches=own, decorators=decorators)


def _parameter(argument: ast.arg, use: dict[str, set[str]]) -> FoundParameter:
    kind = ast.unparse(argument.annotation) if argument.annotation else ""
    role, dtype = _role(argument.arg, kind, use.get(argument.arg, set()))
    is_pointer = role.value in ("input", "output", "in_out")
    shape = Guess("n", "Triton's parameters state no shape") if is_pointer else None
    return FoundParameter(argument.arg, kind, dtype, role, shape, is_pointer)


def _role(name: str, kind: str, use: set[str]) -> tuple[Guess[Role], str | None]:
    if "constexpr" in kind:
        return Guess("constexpr", "annotated as tl.constexpr"), None
    if use:
        role: Role = "in_out" if len(use) == 2 else "output" if "store" in use else "input"
        return Guess(role, " and ".join(f"tl.{one}" for one in sorted(use))), "float32"
    if name.endswith(_POINTER):
        return Guess("input", "its name ends like a pointer's"), "float32"
    if kind == "float" or name in ("eps", "alpha", "beta", "scale"):
        return Guess("scalar", "its name or annotation"), "float32"
    return Guess("size", "neither loaded from nor stored to"), "int32"


def _pointer_use(node: _Function) -> dict[str, set[str]]:
    """Return by parameter whether addresses made from it are loaded from or stored to."""
    made: dict[str, set[str]] = {arg.arg: {arg.arg} for arg in node.args.args}
    use: dict[str, set[str]] = {}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            sources = _sources(statement.value, made)
            if sources:
                made.setdefault(statement.targets[0].id, set()).update(sources)
        if isinstance(statement, ast.Call):
            what = ast.unparse(statement.func).rpartition(".")[2]
            kinds = {"load": {"load"}, "store": {"store"}}.get(what, {"load", "store"} if "atomic" in what else set())
            first = _leftmost(statement.args[0]) if statement.args and kinds else None
            for name in made.get(first or "", ()):
                use.setdefault(name, set()).update(kinds)
    return use


def _sources(value: ast.expr, made: dict[str, set[str]]) -> set[str]:
    """Return the parameters that an address is made from: those of the leftmost name of a sum."""
    return set(made.get(_leftmost(value) or "", ())) if isinstance(value, ast.BinOp | ast.Name) else set()


def _leftmost(value: ast.expr) -> str | None:
    while isinstance(value, ast.BinOp):
        value = value.left
    return value.id if isinstance(value, ast.Name) else None


def _operators(path: Path, node: _Function) -> Iterator[FoundOperator]:
    for name, decorator in _decorators(node):
        if name.rpartition(".")[2] in _OPERATORS and isinstance(decorator, ast.Call):
            first = decorator.args[0] if decorator.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield _operator(
                    path,
                    node,
                    first.value,
                    {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg},
                )


def _operator(path: Path, node: _Function, name: str, given: Mapping[str, ast.expr]) -> FoundOperator:
    """Return the operator of a function; `given` are the keywords of its decorator."""
    schema, changed = given.get("schema"), given.get("mutates_args")
    text = str(schema.value) if isinstance(schema, ast.Constant) and schema.value is not None else None
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments = tuple((one.arg, ast.unparse(one.annotation) if one.annotation else "") for one in every)
    elements = changed.elts if isinstance(changed, ast.Tuple | ast.List | ast.Set) else [changed] if changed else []
    written = tuple(str(element.value) for element in elements if isinstance(element, ast.Constant))
    returns = ast.unparse(node.returns) if node.returns else ""
    keywords = tuple(kwonlyarg.arg for kwonlyarg in node.args.kwonlyargs)
    return FoundOperator(
        name, text, path, node.lineno, "python", node.name, arguments, returns, _defaults(node), written, keywords
    )


def _defaults(node: _Function) -> dict[str, str]:
    """Return the defaults of the arguments that have one, as written."""
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = [
        *zip(plain[len(plain) - len(node.args.defaults) :], node.args.defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return {one.arg: ast.unparse(default) for one, default in pairs if default is not None}


def _unread_definitions(path: Path, tree: ast.Module) -> Iterator[Unread]:
    """Yield custom operators whose name is no literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _OPERATORS:
            first = node.args[0] if node.args else None
            if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                yield Unread(path, node.lineno, "the custom operator's name is no literal")
