"""The page on the life of a sample names only files and functions that exist."""

import ast
import re

from tests.docs.blocks import PAGES, ROOT

TEXT = (PAGES / "life_of_a_sample.md").read_text()
STEPS = re.findall(r"`(prism_bench/[^`]+\.py)`:\s+(`[^`]+`(?:,\s+`[^`]+`)*)", TEXT)


def defined(path):
    """The functions of a file by name, and the methods of its classes as `Class.method`."""
    names = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)}
    return names


def test_every_named_function_exists():
    named = [(path, name) for path, names in STEPS for name in re.findall(r"`([^`]+)`", names)]
    assert len(named) > 20
    assert [] == [(path, name) for path, name in named if name not in defined(path)]


def test_every_named_file_has_its_functions():
    assert set(re.findall(r"`(prism_bench/[^`]*)`", TEXT)) == {path for path, _ in STEPS}


def test_there_are_ten_steps():
    assert [str(number) for number in range(1, 11)] == re.findall(r"^(\d+)\. \*\*", TEXT, re.MULTILINE)
