"""The README is short and real: its kernel is verified, and its output is what commands print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.readme import BEGIN, END, PEERS, RECORDS, newest, pages, with_part
from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.run.verification import passed, verify

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FUSION = ROOT / "docs" / "pages" / "guides" / "fusion.md"
PEERS_PAGE = ROOT / PEERS


@pytest.fixture
def catalogue(tmp_path):
    """A folder with the two files as the README prints them."""
    family = tmp_path / "basic"
    family.mkdir()
    blocks = re.findall(r"`kernels/basic/(\S+?)`\n\n```\w+\n(.*?)```", README.read_text(), re.DOTALL)
    for name, text in blocks:
        (family / name).write_text(text)
    assert sorted(name for name, _ in blocks) == ["scale.cu", "scale.py"]
    return discover(tmp_path)


def test_the_printed_kernel_is_a_catalogue_without_problems(catalogue):
    assert () == catalogue.problems
    assert ["scale"] == list(catalogue.kernels)


@pytest.mark.parametrize("backend", ["numpy_reference", "emulator"])
def test_the_printed_kernel_is_right(catalogue, backend):
    try:
        opened = open_backend(backend)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    for case in [*catalogue.edges(), *catalogue.cases(labels=["S0"])]:
        assert passed(verify(opened, case)), case.name


def test_the_printed_item_is_served(capsys):
    blocks = re.findall(r"```python\n(.*?)```", FUSION.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "Executor(" in block]
    exec(compile(code, "fusion.md", "exec"), {})
    assert re.fullmatch(r"\[-?\d+\.\d+\]\n\[\]\n", capsys.readouterr().out)


def test_it_is_short():
    text = README.read_text()
    assert text.count("\n") <= 125
    assert len(text) <= 7000


def test_the_words_of_the_scripts_are_those_of_the_scripts():
    """Lines of the first screen that begin with a sentence of `scripts/setup` or `scripts/bench` are printed by it."""
    printed = "".join((ROOT / "scripts" / name).read_text() for name in ("setup", "bench"))
    sentences = ("Next:", "source ", "prism-bench doctor", "Nothing was timed", "The other ", "The site shows")
    shown = [line.strip() for line in README.read_text().splitlines() if line.strip().startswith(sentences)]
    assert len(sentences) == len(shown)
    assert [] == [line for line in shown if line not in printed]


def test_the_picture_and_three_commands_come_first():
    first = README.read_text().partition("\n## ")[0]
    assert first.index("![") < first.index("```console")
    assert 3 == first.count("```console\n$ ")


def test_the_printed_table_is_what_the_command_prints():
    text = PEERS_PAGE.read_text()
    (record,) = re.findall(r"prism-bench show --all (\S+\.json\.gz)", text)
    command = [sys.executable, "-m", "prism_bench", "show", "--all", record]
    environment = {**os.environ, "COLUMNS": "160"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment).stdout
    printed = [" ".join(line.split()) for line in shown.splitlines()]
    (table,) = re.findall(r"```text\n(kernel +label.*?)```", text, re.DOTALL)
    rows = [" ".join(line.split()) for line in table.splitlines()]
    assert len(rows) > 3
    assert [] == [row for row in rows if not any(line.startswith(row) for line in printed)]


def test_parts_about_records_and_claims_are_what_the_committed_ones_give():
    """After a new record or claim is committed, or the code of a claim changed, `scripts/readme` writes them anew."""
    listed = subprocess.run(["git", "ls-files", RECORDS], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for path, text in pages(Path(max(listed.stdout.split()))).items():
        assert text == (ROOT / path).read_text(), f"{path}: scripts/readme writes it anew"


def test_a_part_needs_its_marks_once():
    assert with_part(f"a\n{BEGIN}\nold\n{END}\nb", "new \\1") == "a\nnew \\1\nb"
    for text in ("", BEGIN, END + BEGIN, f"{BEGIN}{END}{BEGIN}{END}"):
        with pytest.raises(ResultsError, match="once"):
            with_part(text, "new")


def test_a_folder_without_a_record_is_an_error(tmp_path):
    with pytest.raises(ResultsError, match="holds no record"):
        newest(tmp_path)
