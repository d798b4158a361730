"""Types: pyright finds no error, and every function is annotated."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pyright_errors() -> list[dict]:
    """Run pyright as `pyproject.toml` configures it and return its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=ROOT,
        env={**os.environ, "NODE_OPTIONS": "--max-semi-space-size=64"},  # fewer collections: a sixth less time
        capture_output=True,
        text=True,
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        pytest.fail(f"pyright did not answer: {done.stdout}{done.stderr}")
    assert found["summary"]["filesAnalyzed"] > 100
    return [one for one in found["generalDiagnostics"] if one["severity"] == "error"]


@pytest.mark.skipif(find_spec("pyright") is None, reason="needs pyright: pip install 'pyright[nodejs]'")
def test_pyright_finds_no_error():
    lines = [f"{error['file']}:{error['range']['start']['line'] + 1}: {error['message']}" for error in pyright_errors()]
    assert not lines, "\n".join(lines[:60])


def is_annotated(function: ast.FunctionDef | ast.AsyncFunctionDef, in_class: bool) -> bool:
    """Return whether all parameters except `self` or `cls`, and the result, have annotations."""
    names = function.args
    given = [*names.posonlyargs, *names.args, *names.kwonlyargs, names.vararg, names.kwarg]
    parameters = [one for one in given if one is not None]
    is_static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
    if in_class and not is_static:
        parameters = parameters[1:]
    return all(one.annotation for one in parameters) and function.returns is not None


def is_device_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a kernel language compiles the function, such as `@triton.jit`: the language gives its types."""
    names = (ast.unparse(one).partition("(")[0] for one in function.decorator_list)
    return any(name.rpartition(".")[2] in ("jit", "kernel", "function") and "." in name for name in names)


def unannotated(path: Path) -> list[str]:
    """Return `line name` of every function of the file that lacks an annotation; device code needs none."""
    found = []
    for parent in ast.walk(ast.parse(path.read_text())):
        for node in ast.iter_child_nodes(parent):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_device_code(node)
            if is_function and not is_annotated(node, isinstance(parent, ast.ClassDef)):
                found.append(f"{node.lineno} {node.name}")
    return found


def test_every_function_is_annotated():
    folders = ("prism_bench", "suites", "kernels", "scripts/lab")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    lines = [f"{path}:{function}" for path in paths for function in unannotated(path)]
    assert len(paths) > 100
    assert not lines, "\n".join(lines[:60])


def test_an_unannotated_function_is_found(tmp_path):
    (tmp_path / "file.py").write_text(
        "class A:\n    def f(self, a) -> int: ...\n    def g(self) -> int: ...\ndef h(): ...\n"
    )
    assert ["2 f", "4 h"] == sorted(unannotated(tmp_path / "file.py"))
    (tmp_path / "k.triton.py").write_text("@triton.jit\ndef k(x): ...\ndef launch(n): ...\n")
    assert ["3 launch"] == unannotated(tmp_path / "k.triton.py")


def test_the_package_has_the_marker_of_types():
    assert (ROOT / "prism_bench" / "py.typed").is_file()
