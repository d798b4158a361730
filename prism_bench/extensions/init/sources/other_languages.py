"""Kernels in Python files that `init` names and does not take: CUDA C++ in strings, Numba, Warp, cuTile, the CuTe DSL.

The imports of a file give the module behind an alias such as `wp`; nothing is executed.
"""

import ast
from collections.abc import Iterator, Mapping

from prism_bench.extensions.init.sources.kernels import Unread
from prism_bench.extensions.init.sources.triton_body import bare_name
from prism_bench.extensions.init.sources.triton_launch import HostFile

# Decorators by module, with the language and the suffix of a file that a spec takes.
_DECORATORS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("numba.cuda", "jit"): ("Numba", "numba"),
    ("warp", "kernel"): ("Warp", "warp"),
    ("cuda.tile", "kernel"): ("cuTile", "tile"),
    ("cutlass.cute", "kernel"): ("the CuTe DSL", "cute"),
}
_USUAL = {"cuda": "numba.cuda", "wp": "warp", "ct": "cuda.tile", "cute": "cutlass.cute"}
_TAKEN = "move the CUDA C++ to a .cu file, which a spec names as source"
_SNIPPETS = {
    "ElementwiseKernel": "an expression, for which CuPy writes the kernel; a spec takes it as a callable",
    "ReductionKernel": "an expression, for which CuPy writes the kernel; a spec takes it as a callable",
}


def other_kernels(file: HostFile) -> Iterator[Unread]:
    """Yield each kernel in another language, and each CUDA kernel in a string, with what would be taken."""
    modules = _modules(file.tree)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                known = _DECORATORS.get(_dotted(target, modules))
                if known:
                    yield Unread(
                        file.path,
                        node.lineno,
                        f"kernel {node.name} in {known[0]} gets no skeleton; a spec takes it with source= this file, "
                        f"language='{known[1]}', or as {node.name}.{known[1]}.py next to the spec {node.name}.py",
                    )
        elif isinstance(node, ast.Call):
            reason = _in_string(node, file.tree)
            if reason:
                yield Unread(file.path, node.lineno, reason)


def _modules(tree: ast.Module) -> dict[str, str]:
    """Return the dotted name of each module or function that the file imports, by its name in the file."""
    names = dict(_USUAL)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _dotted(target: ast.expr, modules: Mapping[str, str]) -> tuple[str, str]:
    """Return the module and the name of a decorator: `wp.kernel` is (warp, kernel)."""
    text = ast.unparse(target)
    head, _, rest = text.partition(".")
    full = ".".join(
        filter(None, (modules.get(text.rpartition(".")[0]) or modules.get(head, head), rest.rpartition(".")[2]))
    )
    module, _, name = full.rpartition(".")
    return module, name


def _in_string(call: ast.Call, tree: ast.Module) -> str | None:
    """Return why the CUDA source in a call has no spec; None for any other call."""
    name, keywords = bare_name(call.func), {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _SNIPPETS:
        return f"{name} is {_SNIPPETS[name]}"
    if name == "RawKernel" and call.args:
        entry = call.args[1] if len(call.args) > 1 else keywords.get("name")
        title = f" {entry.value}" if isinstance(entry, ast.Constant) else ""
        return f"RawKernel{title} has its source in a string; {_TAKEN}"
    if name == "RawModule" and "code" in keywords or name == "SourceModule":
        code = keywords.get("code") or (call.args[0] if call.args else None)
        return f"{name} has its source in a string{_kernels(code, tree)}; {_TAKEN}"
    if name in ("load_inline", "_compile_kernel") and (name != "load_inline" or "cuda_sources" in keywords):
        code = keywords.get("cuda_sources") or (call.args[0] if call.args else None)
        return f"{name} has its CUDA source in a string{_kernels(code, tree)}; {_TAKEN}"
    return None


def _kernels(code: ast.expr | None, tree: ast.Module) -> str:
    """Return the names of the kernels in the text, if the file has it as a literal."""
    if isinstance(code, ast.List | ast.Tuple) and code.elts:
        code = code.elts[0]
    if isinstance(code, ast.Name):
        values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
                  and ast.unparse(node.targets[0]) == code.id]  # fmt: skip
        code = values[-1] if values else code
    if not isinstance(code, ast.Constant) or not isinstance(code.value, str):
        return ""
    heads = [part.partition("(")[0].split() for part in code.value.split("__global__")[1:]]
    names = [words[-1].lstrip("*&") for words in heads if words]
    return f" ({', '.join(names)})" if names else ""
