"""Comments of kernels and specs give reasons. Measured figures belong in records, which `show` and the site read."""

import io
import re
import tokenize
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
FIGURE = re.compile(
    r"\b[AHB][12]00\b"  # a device by name
    r"|\b\d[\d.,]*\s?(?:us|µs|ms)\b"
    r"|\d\s?[TGM](?:B|FLOP)/s"
    r"|\d\s?% (?:of|busy|faster|slower|more|less)\b|(?:DRAM|L[12]|slots|pipe|memory|rate|functions) \d+ %"
    r"|of a copy's rate"
    r"|\b\d[\d.]* times (?:as (?:fast|long|slow)|faster|slower|cuBLAS|PyTorch)"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def comments(path):
    """Return the comments and docstrings of a file as one text, wrapped lines joined."""
    if path.suffix != ".py":
        return " ".join(" ".join(_COMMENT.findall(path.read_text())).replace("///", " ").split())
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    texts = [one.string for one in tokens if one.type == tokenize.COMMENT or one.string.startswith('"""')]
    return " ".join(" ".join(text.lstrip("# ") for text in texts).split())


def test_comments_quote_no_measured_figure():
    found = []
    paths = [path for path in sorted(KERNELS.rglob("*.*")) if path.suffix in (".py", ".cu", ".cuh")]
    assert len(paths) > 200
    for path in paths:
        found += [f"{path}: {one.group()}" for one in FIGURE.finditer(comments(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    ["Floor of S1 on an H200", "it takes 2.25 ms", "4.29 TB/s", "DRAM 73 %", "10 % slower", "0.85 of a copy's rate"],
)
def test_a_figure_is_found(text):
    assert FIGURE.search(text)


@pytest.mark.parametrize("text", ["228 KB of shared memory", "Times in ms", "32 at a time", "12 bytes an element"])
def test_facts_of_an_architecture_are_no_figures(text):
    assert not FIGURE.search(text)


def test_comments_of_both_languages_are_read(tmp_path):
    (tmp_path / "a.cu").write_text("int a;  // takes\n// 3 us\n")
    (tmp_path / "a.py").write_text('"""Takes\n3 us."""\nx = 1  # 4 ms\n')
    assert ["3 us"] == FIGURE.findall(comments(tmp_path / "a.cu"))
    assert ["3 us", "4 ms"] == FIGURE.findall(comments(tmp_path / "a.py"))
