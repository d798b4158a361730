"""Launches `kernel[grid](...)` of Triton in a Python file, as expressions over the kernel's parameters."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prism_bench.extensions.init.sources.found import FoundLaunch, FoundParameter, Guess, Unread

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
    constants = [one.name for one in parameters if one.role.value == "constexpr"]
    names = {name: _constant(name, passed.get(name), call) for name in constants}
    own = {one.name for one in parameters}
    options = [f"{one.arg}={ast.unparse(one.value)}" for one in call.keywords
               if one.arg and one.arg not in own and isinstance(one.value, ast.Constant)]  # fmt: skip
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
    by_place = zip((one.name for one in parameters), call.args, strict=False)
    return {**dict(by_place), **{one.arg: one.value for one in call.keywords if one.arg}}


def _constant(name: str, value: ast.expr | None, call: ast.Call) -> Guess[int]:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return Guess(value.value, f"passed in line {call.lineno}")
    return Guess(_USUAL_BLOCK if "BLOCK" in name.upper() else 1, "no value in the file")


def _grid_of(node: ast.expr, tree: ast.Module) -> ast.expr:
    """Return the grid's expression, through a variable, a function and the body of `lambda meta: ...`."""
    if isinstance(node, ast.Name):
        values = [one.value for one in ast.walk(tree) if isinstance(one, ast.Assign)
                  and [ast.unparse(target) for target in one.targets] == [node.id]]  # fmt: skip
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
    """Return an expression over the kernel's parameters; a ValueError where it is not simple."""
    match node:
        case ast.Name():
            return meant.get(node.id, node.id)
        case ast.Constant(value=int()):
            return str(node.value)
        case ast.Subscript(slice=ast.Constant(value=str() as name)):  # meta["BLOCK"]
            return name
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return f"({_python(node.left, meant)} {_OPERATORS[type(node.op)]} {_python(node.right, meant)})"
        case ast.Call(args=[above, below]) if ast.unparse(node.func).rpartition(".")[2] == "cdiv":
            return f"-(-{_python(above, meant)} // {_python(below, meant)})"
        case _:
            raise ValueError("not simple")


_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}


def _names_in(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
