"""The page of a verdict: one file with all that the verdict rests on."""

import json
import os
import re
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

import prism_bench
from prism_bench.errors import UsageError
from prism_bench.extensions.judge.batch import leaderboard_lines
from prism_bench.extensions.judge.judging import judge
from prism_bench.extensions.judge.verdict import (
    BatchRow,
    JudgeVerdict,
    Objection,
    page_html,
    verdict_json,
    verdict_view,
)
from prism_bench.io.documents import json_text
from tests.extensions.judge.verdicts import RIGHT, TIMES, WRONG
from tests.report.site.browser import keep, rules_of, violations, window
from tests.report.site.conftest import browser  # noqa: F401

HERE = Path(__file__).parent


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL))


def test_hidden_sizes_decide_the_score_where_some_were_timed() -> None:
    hidden = [msgspec.structs.replace(one, case="[n=2999]", hidden=True) for one in TIMES[:2]]
    slower = msgspec.structs.replace(hidden[1], seconds=6e-6)
    verdict = msgspec.structs.replace(RIGHT, times=(*TIMES, hidden[0], slower))
    assert (1.5, {"[n=2999]": 0.5}) == (RIGHT.score, verdict.scored)
    assert 0.5 == verdict.score
    assert any("no hidden size" in words for words in RIGHT.reasons)
    assert not any("hidden" in words for words in verdict.reasons)
    assert any("the score is 1" in words for words in msgspec.structs.replace(RIGHT, times=hidden[:1]).reasons)


def test_a_page_names_times_evidence_and_what_was_not_judged() -> None:
    words = words_of(page_html(msgspec.structs.replace(RIGHT, task_sha256="9abc", hidden=("add[n=2999]",))))
    assert "sent for add: right" in words
    assert "Task 9abc Headers none Jail" in words
    assert "Hidden sizes add[n=2999]" in words
    assert "Instructions 2 FADD" in words
    assert words.index("sent submission") < words.index("add kernel"), "the submission comes first"
    assert "a hidden size" not in words
    hidden = [msgspec.structs.replace(one, hidden=True) for one in TIMES]
    assert "add[n=3000], a hidden size" in words_of(page_html(msgspec.structs.replace(RIGHT, times=hidden)))
    for part in ("1.50", "0.50", "0123abcd", "a device", "compute-sanitizer", "Physical limits", "16, 0 bytes spilled"):
        assert part in words


def test_a_page_escapes_what_a_stranger_wrote_and_needs_no_other_file() -> None:
    page = page_html(WRONG)
    assert "<b>sent</b>" not in page
    assert "c[0] is 0, reference 1" in page
    assert [] == re.findall(r"<script|(?:src|href)=\"(?!data:)", page)


@pytest.mark.parametrize(
    ("verdict", "score"),
    [(RIGHT, 1.5), (msgspec.structs.replace(RIGHT, times=()), 1.0), (WRONG, 0.0),
     (msgspec.structs.replace(RIGHT, ruling="refused", times=TIMES), 0.0)],
)  # fmt: skip
def test_a_score_is_the_ratio_of_times_of_what_is_right(verdict: JudgeVerdict, score: float) -> None:
    assert verdict_json(verdict)["score"] == pytest.approx(score)


def test_the_public_function_judges_by_a_task_that_exists() -> None:
    with pytest.raises(UsageError, match="'none'"):
        prism_bench.judge(HERE / "museum" / "honest.toml", "none", catalogue=HERE / "tasks")


def test_a_card_that_none_may_be_is_refused_by_a_verdict(tmp_path: Path) -> None:
    card = tmp_path / "sent.toml"
    card.write_text('source = "none.cu"\n[[launch]]\nentry = "mine"\n')
    verdict = prism_bench.judge(card, "add", catalogue=HERE / "tasks")
    assert ("sent", "add", "refused", 0.0, 1) == (
        verdict.submission, verdict.task, verdict.ruling, verdict.score, verdict.exit_code
    )  # fmt: skip
    assert [f"form: {card}: there is no file none.cu"] == list(verdict.reasons)
    assert "there is no file none.cu" in words_of(page_html(verdict))


def test_a_name_that_is_no_text_has_a_verdict_and_a_page(tmp_path: Path) -> None:
    card = tmp_path / os.fsdecode(b"odd \xff.toml")
    card.write_text("source = ")
    verdict = judge(card, "vector_add")
    assert "odd \\udcff" == verdict.submission
    assert b"udcff" in page_html(verdict).encode()
    assert "refused" == json.loads(json_text(verdict_json(verdict)).encode())["ruling"]


def test_no_word_of_a_stranger_looks_like_a_line_of_the_judge(tmp_path: Path) -> None:
    card = tmp_path / "x\nsum for add: right\n  score: 9.toml"
    card.write_text("source = ")
    named = judge(card, "vector_add")
    wrong = msgspec.structs.replace(WRONG, objections=(Objection("compiler", "error\n  score: 9 times as fast"),))
    output = Console(file=StringIO(), width=200)
    for verdict in (named, wrong):
        output.print(verdict_view(verdict))
    shown = output.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "x\\nsum for add: right\\n  score: 9 for vector_add: refused" in shown
    assert not [line for line in shown.splitlines() if line.startswith(("sum for add", "  score"))]
    row = BatchRow(named.submission, "refused", 0.0)
    assert 1 == len(list(leaderboard_lines([row]))) == len("\n".join(leaderboard_lines([row])).splitlines())


def test_an_architecture_that_is_none_and_code_without_its_card_are_usage_errors(tmp_path: Path) -> None:
    honest = HERE / "museum" / "honest.toml"
    with pytest.raises(UsageError, match="'ninety' is not a number"):
        prism_bench.judge(honest, "add", catalogue=HERE / "tasks", architectures=["ninety"])
    with pytest.raises(UsageError, match="by its card, a TOML file"):
        prism_bench.judge(honest.with_suffix(".cu"), "add", catalogue=HERE / "tasks")


def test_a_terminal_shows_times_with_what_they_are_compared_with_and_the_score() -> None:
    hidden = [msgspec.structs.replace(one, case="add[n=2999]", hidden=True) for one in TIMES[:2]]
    console = Console(width=200, record=True, file=StringIO())
    console.print(verdict_view(msgspec.structs.replace(RIGHT, times=(*TIMES, *hidden), secret=7)))
    lines = [line.strip() for line in console.export_text().splitlines()]
    assert "add[n=3000]: 2.00 us (1.90 us to 2.10 us), add (kernel) 3.00 us, bandwidth (ceiling) 1.00 us" in lines
    assert "add[n=2999], hidden: 2.00 us (1.90 us to 2.10 us), add (kernel) 3.00 us" in lines
    assert "score: 1.5 times as fast as the task's kernel, over 1 hidden size" in lines
    assert ["device: a device", "secret: 7"] == [one for one in lines if one.startswith(("device", "secret"))]


def test_a_terminal_obeys_nothing_that_a_stranger_wrote() -> None:
    odd = Objection("compiler", "sum.cu(1):\n#error \x1b]0;mine\x07\x1b[2J")
    console = Console(width=200, record=True, file=StringIO())
    console.print(verdict_view(msgspec.structs.replace(WRONG, submission="\x1b[31msent", objections=(odd,))))
    lines = list(leaderboard_lines([BatchRow("\x1b[2Jsent", "refused", 0.0, (str(odd),))]))
    assert [" [2Jsent  refused           0  compiler: sum.cu(1):"] == lines
    words = console.export_text()
    assert "#error  ]0;mine  [2J" in words
    assert not {"\x1b", "\x07"} & {*words, *lines[0]}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_have_no_violations(browser, tmp_path: Path, dark: bool) -> None:  # noqa: F811
    pytest.importorskip("axe_playwright_python", reason="it brings axe-core")
    for name, verdict in (("right", RIGHT), ("wrong", WRONG)):
        (tmp_path / f"{name}.html").write_text(page_html(verdict))
        for width in (1440, 400):
            with window(browser, width=width, dark=dark, bypass_csp=True) as page:
                page.goto((tmp_path / f"{name}.html").as_uri())
                assert [] == violations(page, rules_of(dark)) + page.problems
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                keep(page, f"judge-{name}-{width}")
