"""Triton functions and PyTorch custom operators of a Python file, read from its syntax tree and never executed."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prism_bench.extensions.init.sources.found import (
    FoundKernel,
    FoundOperator,
    FoundParameter,
    Guess,
    Role,
    Scan,
    Unread,
)
from prism_bench.extensions.init.sources.triton_launches import read_launch, written_launches

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
    operators = tuple(one for node in functions for one in _operators(path, node))
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
    parameters = tuple(_parameter(one, use) for one in arguments)
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
    made: dict[str, set[str]] = {one.arg: {one.arg} for one in node.args.args}
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
                yield _operator(path, node, first.value, {one.arg: one.value for one in decorator.keywords if one.arg})


def _operator(path: Path, node: _Function, name: str, given: Mapping[str, ast.expr]) -> FoundOperator:
    """Return the operator of a function; `given` are the keywords of its decorator."""
    schema, changed = given.get("schema"), given.get("mutates_args")
    text = str(schema.value) if isinstance(schema, ast.Constant) and schema.value is not None else None
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments = tuple((one.arg, ast.unparse(one.annotation) if one.annotation else "") for one in every)
    elements = changed.elts if isinstance(changed, ast.Tuple | ast.List | ast.Set) else [changed] if changed else []
    written = tuple(str(one.value) for one in elements if isinstance(one, ast.Constant))
    returns = ast.unparse(node.returns) if node.returns else ""
    keywords = tuple(one.arg for one in node.args.kwonlyargs)
    return FoundOperator(
        name, text, path, node.lineno, "python", node.name, arguments, returns, _defaults(node), written, keywords
    )


def _defaults(node: _Function) -> dict[str, str]:
    """Return the defaults of the arguments that have one, as written."""
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(plain[len(plain) - len(node.args.defaults) :], node.args.defaults, strict=True),
             *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]  # fmt: skip
    return {one.arg: ast.unparse(default) for one, default in pairs if default is not None}


def _unread_definitions(path: Path, tree: ast.Module) -> Iterator[Unread]:
    """Yield custom operators whose name is no literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _OPERATORS:
            first = node.args[0] if node.args else None
            if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                yield Unread(path, node.lineno, "the custom operator's name is no literal")
