"""Types: pyright finds no error, and every function is annotated. Lists of what is not clean yet only shrink."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Errors of pyright by the file or folder that still has them, and functions without full annotations by package.
# A number may only become smaller; remove the line when it is zero.
PYRIGHT_NOT_YET: dict[str, int] = {}
ANNOTATIONS_NOT_YET: dict[str, int] = {}


def package(path: Path) -> str:
    """Return `prism_bench/units.py` for a module of the package and `prism_bench/record` for all in a folder."""
    return "/".join(path.relative_to(ROOT).parts[:2])


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
    errors = pyright_errors()
    counts = Counter(package(Path(one["file"])) for one in errors)
    lines = [f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}" for one in errors]
    more = {name: count for name, count in counts.items() if count > PYRIGHT_NOT_YET.get(name, 0)}
    assert not more, "\n".join([str(more), *(line for line in lines if any(name in line for name in more))][:60])
    assert set(PYRIGHT_NOT_YET) <= set(counts), "remove the lines of paths that are clean"


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
    found = {}
    for folder in ("prism_bench", "suites", "kernels", "scripts/lab"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.setdefault(package(path), []).extend(f"{path}:{one}" for one in unannotated(path))
    more = {name: lines for name, lines in found.items() if len(lines) > ANNOTATIONS_NOT_YET.get(name, 0)}
    assert not more, "\n".join(line for lines in more.values() for line in lines[:20])
    assert all(found.get(name) for name in ANNOTATIONS_NOT_YET), "remove the lines of packages that are clean"


def test_an_unannotated_function_is_found(tmp_path):
    (tmp_path / "file.py").write_text(
        "class A:\n    def f(self, a) -> int: ...\n    def g(self) -> int: ...\ndef h(): ...\n"
    )
    assert ["2 f", "4 h"] == sorted(unannotated(tmp_path / "file.py"))
    (tmp_path / "k.triton.py").write_text("@triton.jit\ndef k(x): ...\ndef launch(n): ...\n")
    assert ["3 launch"] == unannotated(tmp_path / "k.triton.py")


def test_the_package_has_the_marker_of_types():
    assert (ROOT / "prism_bench" / "py.typed").is_file()
