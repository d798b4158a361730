"""Triton functions and their launches in a Python file, read from its syntax."""

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from prism_bench.extensions.init.sources.kernels import (
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


def _read_launch(path: Path, tree: ast.Module, call: ast.Call, parameters: Sequence[FoundParameter]) -> FoundLaunch:
    """Return a launch; `names` have a value for each constant, and for names in the grid that are no parameters.

    `template_arguments` are the compiler's own options, such as `num_warps=4`.
    """
    assert isinstance(call.func, ast.Subscript)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    parameter_names = [parameter.name for parameter in parameters]
    passed = {**dict(zip(parameter_names, call.args, strict=False)), **keywords}
    names: dict[str, Guess[int]] = {}
    for name in (parameter.name for parameter in parameters if parameter.role.value == "constexpr"):
        value = passed.get(name)
        if isinstance(value, ast.Constant) and isinstance(value.value, int):
            names[name] = Guess(value.value, f"passed in line {call.lineno}")
        else:
            names[name] = Guess(_USUAL_BLOCK if "BLOCK" in name.upper() else 1, "no value in the file")
    options = [
        f"{name}={ast.unparse(value)}"
        for name, value in keywords.items()
        if name not in parameter_names and isinstance(value, ast.Constant)
    ]
    extents = _grid_of(call.func.slice, tree)
    variables = {ast.unparse(value): name for name, value in passed.items() if isinstance(value, ast.Name)}
    grid: tuple[str, ...] = ()
    if isinstance(extents, ast.Tuple):
        with suppress(ValueError):
            grid = tuple(_python(extent, variables) for extent in extents.elts)
    if not grid:
        reason = f"grid: '{ast.unparse(call.func.slice)[:60]}' is no tuple of names, numbers and divisions"
        return FoundLaunch(path, call.lineno, None, (), unread=(Unread(path, call.lineno, reason),))
    in_grid = {node.id for text in grid for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    free = sorted(in_grid.difference(parameter_names))
    names |= {name: Guess(_USUAL_AXIS, "no value in the file") for name in free}
    return FoundLaunch(path, call.lineno, grid, (), "0", tuple(options), tuple(names.items()))


def _grid_of(node: ast.expr, tree: ast.Module) -> ast.expr:
    """Return the grid's expression, through a variable, a function and the body of `lambda meta: ...`."""
    if isinstance(node, ast.Name):
        values: list[ast.expr] = []
        for statement in ast.walk(tree):
            match statement:
                case ast.Assign(targets=[target]) if ast.unparse(target) == node.id:
                    values.append(statement.value)
                case ast.FunctionDef(body=[*_, ast.Return(value=ast.expr() as returned)]) if statement.name == node.id:
                    values.append(returned)
                case _:
                    pass
        node = values[0] if len(values) == 1 else node
    return node.body if isinstance(node, ast.Lambda) else node


def _python(node: ast.expr, variables: Mapping[str, str]) -> str:
    """Return an expression over the kernel's parameters; ValueError if it is not simple.

    `variables` are the parameters by the host's names.
    """
    match node:
        case ast.Name():
            return variables.get(node.id, node.id)
        case ast.Constant(value=int()):
            return str(node.value)
        case ast.Subscript(slice=ast.Constant(value=str() as name)):  # meta["BLOCK"]
            return name
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return (
                f"({_python(node.left, variables)} {_GRID_OPERATORS[type(node.op)]} {_python(node.right, variables)})"
            )
        case ast.Call(args=[above, below]) if ast.unparse(node.func).rpartition(".")[2] == "cdiv":
            return f"-(-{_python(above, variables)} // {_python(below, variables)})"
        case _:
            raise ValueError("not simple")


_GRID_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}


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
    launches = [
        (ast.unparse(node.func.value).rpartition(".")[2], node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    ]
    jit = _jit_names(tree)
    kernels: list[FoundKernel] = []
    for node in functions:
        decorators = tuple(
            ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for decorator in node.decorator_list
        )
        if jit.intersection(decorators):
            use = _pointer_use(node)
            parameters = tuple(_parameter(argument, use.get(argument.arg, set())) for argument in _arguments(node))
            calls = tuple(_read_launch(path, tree, call, parameters) for name, call in launches if name == node.name)
            kernels.append(
                FoundKernel("triton", node.name, path, node.lineno, parameters, launches=calls, decorators=decorators)
            )
    operators = tuple(
        _operator(path, node, decorator, name)
        for node in functions
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and _defines_operator(decorator)
        if (name := _first_text(decorator)) is not None
    )
    unread = tuple(
        Unread(path, node.lineno, "the custom operator's name is no literal")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _defines_operator(node) and _first_text(node) is None
    )
    return Scan(tuple(kernels), operators, unread)


def _defines_operator(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in _OPERATORS


def _first_text(call: ast.Call) -> str | None:
    """Return the string literal that is a call's first argument, or None."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _arguments(node: _Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _jit_names(tree: ast.Module) -> set[str]:
    """Return the names under which the file has `triton.jit`."""
    names = {"triton.jit"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "triton":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
        elif isinstance(node, ast.Import):
            names |= {f"{alias.asname}.jit" for alias in node.names if alias.name == "triton" and alias.asname}
    return names


def _parameter(argument: ast.arg, use: set[str]) -> FoundParameter:
    name, kind = argument.arg, ast.unparse(argument.annotation) if argument.annotation else ""
    shape: Guess[str] | None = None
    dtype: str | None = "float32"
    if "constexpr" in kind:
        role, dtype = Guess[Role]("constexpr", "annotated as tl.constexpr"), None
    elif use or name.endswith(_POINTER):
        value: Role = "in_out" if len(use) == 2 else "output" if "store" in use else "input"
        accesses = " and ".join(f"tl.{access}" for access in sorted(use))
        role = Guess[Role](value, accesses or "its name ends like a pointer's")
        shape = Guess("n", "Triton's parameters state no shape")
    elif kind == "float" or name in ("eps", "alpha", "beta", "scale"):
        role = Guess[Role]("scalar", "its name or annotation")
    else:
        role, dtype = Guess[Role]("size", "neither loaded from nor stored to"), "int32"
    return FoundParameter(name, kind, dtype, role, shape, is_pointer=shape is not None)


def _pointer_use(node: _Function) -> dict[str, set[str]]:
    """Return `load` and `store` for each parameter whose derived addresses are loaded from or stored to."""
    sources: dict[str, set[str]] = {argument.arg: {argument.arg} for argument in node.args.args}  # of an address
    use: dict[str, set[str]] = {}
    for statement in ast.walk(node):
        match statement:
            case ast.Assign(targets=[ast.Name(id=target), *_], value=ast.BinOp() | ast.Name() as value):
                parameters = sources.get(_leftmost(value) or "")
                if parameters:
                    sources.setdefault(target, set()).update(parameters)
            case ast.Call(args=[address, *_]):
                function = ast.unparse(statement.func).rpartition(".")[2]
                kinds = {function} & {"load", "store"} or ({"load", "store"} if "atomic" in function else set[str]())
                for parameter in sources.get(_leftmost(address) or "", ()) if kinds else ():
                    use.setdefault(parameter, set()).update(kinds)
            case _:
                pass
    return use


def _leftmost(value: ast.expr) -> str | None:
    """Return the leftmost name of a sum, which is the pointer of an address."""
    while isinstance(value, ast.BinOp):
        value = value.left
    return value.id if isinstance(value, ast.Name) else None


def _operator(path: Path, node: _Function, decorator: ast.Call, name: str) -> FoundOperator:
    options = {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg}
    schema, changed = options.get("schema"), options.get("mutates_args")
    elements = changed.elts if isinstance(changed, ast.Tuple | ast.List | ast.Set) else [changed] if changed else []
    plain, keywords = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
    defaults = [
        *zip(plain[len(plain) - len(node.args.defaults) :], node.args.defaults, strict=True),
        *zip(keywords, node.args.kw_defaults, strict=True),
    ]
    return FoundOperator(
        name,
        str(schema.value) if isinstance(schema, ast.Constant) and schema.value is not None else None,
        path,
        node.lineno,
        "python",
        node.name,
        arguments=tuple(
            (argument.arg, ast.unparse(argument.annotation) if argument.annotation else "")
            for argument in _arguments(node)
        ),
        returns=ast.unparse(node.returns) if node.returns else "",
        defaults={argument.arg: ast.unparse(default) for argument, default in defaults if default is not None},
        written=tuple(str(element.value) for element in elements if isinstance(element, ast.Constant)),
        keywords=tuple(argument.arg for argument in keywords),
    )
