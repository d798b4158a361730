"""The first ten lines of `show`, `check` and `compare` answer five planted situations."""

import pytest

from tests.report.situations import CHANGES, write

CASE = "softmax S1"
JUDGED = {  # the first sentence of show and check, and the exit code of check
    "regression": ("Worse: 1 case slower than when last measured, 1 budget missed.", 1),
    "improvement": ("Better: 1 case faster than when last measured, none slower.", 0),
    "untrusted": ("Untrusted: 1 case cannot be trusted.", 3),
    "wrong kernel": ("Wrong: 1 case wrong.", 1),
    "nothing": ("No change: 38 cases as fast as when last measured", 0),
}


@pytest.fixture(params=CHANGES)
def situation(request):
    return request.param


@pytest.fixture
def records(situation, tmp_path, monkeypatch):
    """The folder of records, and both records."""
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "runs", *write(situation, tmp_path / "runs")


def beginning(text: str) -> str:
    """The first ten lines as one."""
    return " ".join(" ".join(text.splitlines()[:10]).split())


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_record_is_judged_first(command, situation, records, shell):
    runs, _, new = records
    sentence, code = JUDGED[situation]
    done = shell(command, new, "--runs", runs)
    assert " ".join(done.out.split()).startswith(sentence)
    assert done.code == (code if command == "check" else 0)
    if command == "show":
        assert ("Nothing needs attention" in beginning(done.out)) == (code == 0)


def test_what_needs_attention_has_its_cause_in_its_row(situation, records, shell):
    runs, _, new = records
    text = beginning(shell("show", new, "--runs", runs).out)
    causes = {
        "regression": f"slower {CASE} 552 us memory, 46 % of 4.26 TB/s; cold time 553 us in this record",
        "untrusted": f"invalid {CASE} - cold time: its read bandwidth exceeds the ceiling",
        "wrong kernel": f"wrong {CASE} - y[3] is 1.5, reference 0.5",
    }
    assert causes.get(situation, "Nothing needs attention.") in text


COMPARED = {  # the beginning of compare, its last sentence and its exit code
    "regression": ("1 slower 41 same", "B is 100 % slower (99 % to 101 %) in 1 of 42 cases.", 1),
    "improvement": ("1 faster 41 same", "B is 50 % faster in 1 of 42 cases.", 0),
    "untrusted": ("cold time is not to be trusted", "B is as fast in 41 of 41 cases; 1 not compared.", 3),
    "wrong kernel": ("wrong in 20261121T221405Z-bbbbbbbb: y[3] is 1.5", "in 41 of 41 cases; 1 not compared.", 1),
    "nothing": ("42 same", "B is as fast in 42 of 42 cases.", 0),
}


def test_a_comparison_says_the_same(situation, records, shell):
    _, old, new = records
    done = shell("compare", old, new)
    first, last, code = COMPARED[situation]
    assert first in beginning(done.out)
    assert done.out.rstrip().endswith(last)
    assert done.code == code
