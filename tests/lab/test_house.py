"""Numbers of a checkout, and imports between its files, on a small one that is made up."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab.house_numbers import PartSize, numbers, public_names, rows, short_private_functions, vague_names
from lab.imports import UpwardImport, circles, edges, modules, upward

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "lab" / "house"
FILES = {
    "prism_bench/__init__.py": "import prism_bench.run.job\n",
    "prism_bench/units.py": "X = [1,2]  # fmt: skip\n",
    "prism_bench/spec/__init__.py": "from prism_bench.spec.case import Case\n",
    "prism_bench/spec/case.py": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from prism_bench.spec.kernel import Kernel\n\n\n"
        "class Case: ...\n"
    ),
    "prism_bench/spec/kernel.py": "from .case import Case\nfrom prism_bench.spec import case\n\n\nclass Kernel: ...\n",
    "prism_bench/run/__init__.py": "",
    "prism_bench/run/job.py": (
        "from prism_bench import units\n\n\ndef job():\n    import prism_bench.report.page\n\n"
        "    return units, _two()\n\n\ndef _two():\n    return 2\n"
    ),
    "prism_bench/report/__init__.py": "",
    "prism_bench/report/page.py": "import json\nfrom prism_bench.run.job import job\n",
    "prism_bench/extensions/__init__.py": "",
    "prism_bench/emulator/__init__.py": "A = 1\n",
    "scripts/lab/study.py": "A = 1\nB = 2\n",
    "DECISIONS.md": "x" * 1500, "CHANGELOG.md": "x" * 2500, "reports/kept.bin": "x" * 3_000_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The folder with all the files."""
    root = tmp_path_factory.mktemp("house")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def imported(checkout):
    """Edges between its files."""
    return edges(modules(checkout / "prism_bench"))


def test_every_file_is_a_module_apart_from_the_facade(checkout):
    names = modules(checkout / "prism_bench")
    assert "prism_bench.spec" in names and "prism_bench.spec.case" in names and "prism_bench" not in names
    assert "prism_bench" in modules(checkout / "prism_bench", without=())


def test_imports_in_functions_for_types_and_relative_ones_count(imported):
    assert {"prism_bench.spec.kernel": 4} == imported["prism_bench.spec.case"]
    assert {"prism_bench.spec.case": 1} == imported["prism_bench.spec.kernel"]
    assert {"prism_bench.units": 1, "prism_bench.report.page": 5} == imported["prism_bench.run.job"]
    assert {"prism_bench.spec.case": 1} == imported["prism_bench.spec"]
    assert {"prism_bench.run.job": 2} == imported["prism_bench.report.page"]


def test_circles_are_groups_that_reach_each_other(imported):
    pairs = [["prism_bench.report.page", "prism_bench.run.job"], ["prism_bench.spec.case", "prism_bench.spec.kernel"]]
    assert pairs == circles(imported)
    graph = {"a": {"b": 1}, "b": {"c": 1, "d": 1}, "c": {"a": 1}, "d": {"e": 1}, "e": {"d": 1}, "f": {"a": 1}}
    assert [["a", "b", "c"], ["d", "e"]] == circles(graph)
    assert [] == circles({"a": {"b": 1, "c": 1}, "b": {"c": 1}, "c": {}})


def test_a_long_chain_of_imports_is_no_deep_recursion():
    names = [f"m{number}" for number in range(5000)]
    chain = {name: {following: 1} for name, following in zip(names, [*names[1:], names[0]], strict=True)}
    assert [5000] == [len(circle) for circle in circles(chain)]


def test_an_import_from_a_higher_layer_is_found_with_its_line(imported):
    assert [UpwardImport("prism_bench.run.job", "prism_bench.report.page", 5)] == upward(imported)
    assert [] == upward(imported, [["report", "run", "spec", "units"]])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def _a():\n    return 1\n\n_a()\n", 1),
        ("def _a():\n    return 1\n\n_a() + _a()\n", 0),
        ("def _a():\n    return 1\n", 0),
        ("def a():\n    return 1\n\na()\n", 0),
        ("class C:\n    def __init__(self):\n        self._b()\n\n    def _b(self): ...\n", 1),
        ("def _a():\n" + "    x = 1\n" * 7 + "\n_a()\n", 1),
        ("def _a():\n" + "    x = 1\n" * 8 + "\n_a()\n", 0),
    ],
)
def test_short_private_functions_are_those_used_once(text, count):
    assert count == short_private_functions(ast.parse(text))


def test_public_names_are_functions_and_classes_at_the_top():
    assert 2 == public_names(ast.parse("def a(): ...\ndef _b(): ...\nclass C:\n    def d(self): ...\nE = 1\n"))


def test_vague_names_are_counted_where_they_are_given():
    text = "def f(found, path):\n    one = found\n    return [one for one in path if one.own], lambda words: words\n"
    assert 4 == vague_names(ast.parse(text))


def test_the_numbers_of_a_checkout(checkout):
    found = numbers(checkout, 7)
    lines = sum(text.count("\n") for name, text in FILES.items() if name.startswith("prism_bench/"))
    assert PartSize(lines, 11) == found.parts["prism_bench"]
    assert PartSize(lines - 1, 9) == found.parts["core"]
    assert (PartSize(0, 1), PartSize(1, 1), PartSize(2, 1)) == tuple(
        found.parts[name] for name in ("prism_bench/extensions", "prism_bench/emulator", "scripts/lab")
    )
    assert (1, 4, 2, 1, 1, 7) == (
        found.top_modules, found.layers, len(found.circles), found.short_private_functions, found.format_skips,
        found.commands,
    )  # fmt: skip
    assert (3, 1) == (found.median_function_lines, found.median_file_lines)
    assert (1.5, 2.5, 3.0) == (found.decisions_kilobytes, found.changelog_kilobytes, found.report_megabytes)


def test_only_kept_reports_count_in_a_checkout(checkout):
    def git(*words):
        subprocess.run(["git", *words], cwd=checkout, check=True, capture_output=True)

    git("init")
    git("add", "DECISIONS.md")
    assert 0.0 == numbers(checkout, 7).report_megabytes
    git("add", "reports")
    assert 3.0 == numbers(checkout, 7).report_megabytes


def test_the_table_names_what_is_counted(checkout):
    shown = dict(rows(numbers(checkout, 7)))
    assert "2, the largest of 2 files" == shown["circles between files"]
    assert "2 lines in 1 file" == shown["scripts/lab"]
    assert "2.5 kB" == shown["CHANGELOG.md"]


def test_the_script_prints_a_table_and_json(tmp_path):
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words):
        command = [sys.executable, SCRIPT, *words]
        return subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=True).stdout

    assert run("--help").startswith("usage: house ")
    assert {"prism_bench", "core", "scripts/lab"} <= set(json.loads(run("--json"))["parts"])
