"""What specs import relatively is a file: editors and type checkers find it without running the loader."""

import ast
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


def relative_imports(path):
    """Yield each module that a file imports relatively, as a path without its ending."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1] / (node.module or "").replace(".", "/")
            yield from [folder] if folder.with_suffix(".py").is_file() else [folder / one.name for one in node.names]


def test_every_relative_import_is_a_file_of_the_catalogue():
    found = {module for path in KERNELS.rglob("*.py") for module in relative_imports(path)}
    assert len(found) > 20
    assert [] == sorted(str(module) for module in found if not module.with_suffix(".py").is_file())
    shared = {module.relative_to(KERNELS).parent.parts for module in found}
    assert {("include", 2), ("peers", 1)} == {(parts[0], len(parts)) for parts in shared}


def test_specs_import_shared_python_in_no_other_way():
    assert [] == [str(path) for path in KERNELS.rglob("*.py") if "prism_bench_catalogue" in path.read_text()]
