"""`prism-bench comment`: the text, always; posted where asked, and 2 where that cannot be."""

import json
from pathlib import Path

import pytest

from tests.extensions.ci.forges.conftest import TOKEN, forge, github  # noqa: F401

STORED = Path(__file__).resolve().with_name("comment")
PAGE = "https://example.org/site/compare.html"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_PAGE", PAGE)


def test_it_prints_the_text(shell, page):
    ended = shell("comment", STORED / "comparison.json")
    assert (0, (STORED / "comment.md").read_text()) == (ended.code, ended.out)


def test_the_project_may_configure_the_page(shell):
    Path("prism-bench.toml").write_text(f'[pull-request]\npage = "{PAGE}"\n')
    assert (STORED / "comment.md").read_text() == shell("comment", STORED / "comparison.json").out
    Path("prism-bench.toml").write_text("[pull-request]\npge = 1\n")
    ended = shell("comment", STORED / "comparison.json")
    assert 2 == ended.code and "unknown key 'pge'; did you mean page?" in ended.err


def test_json_holds_the_text(shell, page):
    ended = shell("comment", STORED / "comparison.json", "--json")
    assert {"text": (STORED / "comment.md").read_text(), "url": None} == ended.json


def test_it_posts_and_says_where(shell, page, monkeypatch, forge, github):  # noqa: F811
    for name, value in github().items():
        monkeypatch.setenv(name, value)
    ended = shell("comment", STORED / "comparison.json", "--post")
    assert (0, "comment: https://example.org/100\n") == (ended.code, ended.err)
    assert [(STORED / "comment.md").read_text()] == [one["body"] for one in forge.comments["5"]]


def test_without_a_token_the_text_is_printed_all_the_same(shell, page, monkeypatch, github):  # noqa: F811
    for name, value in github(GITHUB_TOKEN="").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GH_TOKEN", raising=False)
    for more in ((), ("--json",)):
        ended = shell("comment", STORED / "comparison.json", "--post", *more)
        text = json.loads(ended.out)["text"] if more else ended.out
        assert (2, (STORED / "comment.md").read_text()) == (ended.code, text)
        assert "no token: set GITHUB_TOKEN" in ended.err and 1 == len(ended.err.splitlines())
        assert TOKEN not in ended.out + ended.err


def test_a_file_that_is_no_comparison_ends_with_2(shell, tmp_path):
    (tmp_path / "c.json").write_text("{}")
    ended = shell("comment", tmp_path / "c.json")
    assert 2 == ended.code and "not a comparison; 'prism-bench compare --json' prints one" in ended.err


@pytest.mark.parametrize(("option", "value"), [("--since", "7d"), ("--output", "a.md"), ("--catalogue", "kernels")])
def test_what_makes_a_digest_is_refused_with_a_comparison(shell, option, value):
    ended = shell("comment", STORED / "comparison.json", option, value)
    assert (2, "", f"prism-bench: {option}: leave it out with a comparison\n") == (ended.code, ended.out, ended.err)


def test_without_a_comparison_and_a_day_both_are_named(shell):
    ended = shell("comment")
    assert 2 == ended.code and "'prism-bench compare --json' printed, or give --since, such as --since 7d" in ended.err
