"""Words: texts that readers see use standard terms."""

import re
import tokenize
from pathlib import Path

import pytest

from scripts.plain_words import private_words

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ("*.md", "*.html", "*.jinja", "*.js", "*.yml", "*.toml")
# A string of one word is a key or a name, no text.
_KEY = re.compile(r"\w*(['\"])\w+\1")
_JS_KEY = re.compile(r"[\w$]+(?=: )")
# This file of the theme's is not ours, and the list of words names them all.
NOT_OURS = ("docs/pages/assets/worker.js", "scripts/plain_words.py")

# Names in code and files that keep their spelling, by the file and word that name them in a string of several words.
NAMES = {
    ("kernels/transfer_entropy/histogram_2d.py", "room"): "an axis of the kernel",
    (".github/workflows/nightly.yml", "nights"): "the branch of this repository's history",
    ("prism_bench/extensions/ci/asv_runs.py", "nights"): "folders of reports",
    ("prism_bench/extensions/ci/keeping/storage.py", "nights"): "folders of reports",
    ("scripts/lab/trends.py", "nights"): "columns of reports/judgement/trends.csv",
    ("prism_bench/extensions/init/sources/allowances.py", "floor"): "a parameter of elementwise()",
}


def pieces(path: Path) -> list[tuple[int, str]]:
    """Return what a reader sees of the file, by line: comments and strings of Python, all of other files."""
    if path.suffix != ".py":
        text = path.read_text()
        return _paragraphs(_JS_KEY.sub(".", text) if path.suffix == ".js" else text)
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    with path.open("rb") as stream:
        found = [one for one in tokenize.tokenize(stream.readline) if one.type in kinds]
    return [(one.start[0], _words(one.string)) for one in found if not _KEY.fullmatch(one.string)]


def _paragraphs(text: str) -> list[tuple[int, str]]:
    """Return the pieces between empty lines, each with its first line; a table's rows are pieces too."""
    breaks = [0, *(found.end() for found in re.finditer(r"\n(?=\n|\|)", text)), len(text)]
    return [(text.count("\n", 0, begin) + 1, text[begin:end]) for begin, end in zip(breaks, breaks[1:], strict=False)]


def _words(text: str) -> str:
    """Return a string or comment without the expressions of an f-string."""
    is_formatted = re.match(r"[rR]?[fF]", text)
    return re.sub(r"\{[^{}]*\}", ".", text) if is_formatted else text


def found_in(path: Path) -> list[str]:
    """Return a line for each private word of the file, with the word to use instead."""
    return [
        f"{path.name}:{line}: '{word}': write {standard}"
        for line, text in pieces(path)
        for word, standard in private_words(text)
        if _name(path, word) not in NAMES
    ]


def _name(path: Path, word: str) -> tuple[str, str]:
    return (path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name), word


def files() -> list[Path]:
    """Return every file whose words are checked."""
    found = list(ROOT.glob("*.md"))
    for folder in ("prism_bench", "suites", "docs", "kernels", "scripts", ".github"):
        for pattern in ("*.py", *TEXTS):
            found += (ROOT / folder).rglob(pattern)
    return [path for path in sorted(found) if path.relative_to(ROOT).as_posix() not in NOT_OURS]


def test_texts_use_standard_words():
    paths = files()
    assert len(paths) > 100
    lines = [line for path in paths for line in found_in(path)]
    assert not lines, "\n".join(lines[:60])


def test_every_name_is_still_used():
    for path, word in NAMES:
        words = {found for _, text in pieces(ROOT / path) for found, _ in private_words(text)}
        assert word in words, f"remove {path}, '{word}' from the names"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Why the ruler is told of the night", {"ruler", "told", "night"}),
        ("The noise floor, the headroom and `reports/nights`", set()),
        ("floor(x / 2) tells apart what reports/nights/a.txt lists", set()),
        ("Lies beside the launch floor", {"Lies", "beside", "floor"}),
    ],
)
def test_a_private_word_is_found(text, words):
    assert words == {word for word, _ in private_words(text)}


def test_comments_and_strings_of_python_are_read(tmp_path):
    path = tmp_path / "file.py"
    path.write_text('"""What the ruler gives."""\nnight = 1  # told\nx = f"{night} stands"\n')
    assert ["ruler", "told", "stands"] == re.findall(r"'(\w+)'", "\n".join(found_in(path)))
