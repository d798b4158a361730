"""The page on the architecture names only files that exist, and answers what a newcomer asks."""

import re

import pytest
from lab.imports import LAYERS

from tests.docs.blocks import PAGES, ROOT

TEXT = (PAGES / "architecture.md").read_text()
ROWS = re.findall(r"^\| (.+\?) \| `([^`]+)`(?:: `(\w+)`)? \|$", TEXT, re.MULTILINE)
ANSWERS = {question: path for question, path, _ in ROWS}


def test_every_named_path_exists():
    named = re.findall(r"`((?:prism_bench|tests|kernels|suites|scripts|docs|reports)/[^`<]*)`", TEXT)
    assert len(named) > 20
    assert [] == [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize(
    ("question", "defines"),
    [
        ("Where is the cold time measured?", "class Cold"),
        ("Where is a change called slower?", "slower"),
        ("Where does the site's overview come from?", "def page"),
    ],
)
def test_the_answer_is_the_right_file(question, defines):
    assert defines in (ROOT / ANSWERS[question]).read_text()


def test_every_named_function_is_in_its_file():
    named = [(path, name) for _, path, name in ROWS if name]
    assert len(named) >= 3
    definition = r"^(?:def|class) {}\b"
    assert [] == [row for row in named if not re.search(definition.format(row[1]), (ROOT / row[0]).read_text(), re.M)]


def test_the_table_of_layers_is_the_tested_one():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", TEXT, re.MULTILINE)
    shown = [set(names.split(", ")) for _, names in rows]
    assert [set(packages) for packages in LAYERS] == shown


def test_every_package_is_in_the_layout():
    (layout,) = re.findall(r"```text\n(prism_bench/\n.*?)```", TEXT, re.DOTALL)
    packages = {path.parent.name for path in (ROOT / "prism_bench").glob("*/__init__.py")}
    assert packages - set(re.findall(r"^  (\w+)", layout, re.MULTILINE)) == set()
