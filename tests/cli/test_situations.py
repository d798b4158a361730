"""The first ten lines of `show`, `check` and `compare` answer five planted situations."""

import pytest

from tests.report.situations import PLANTED, SITUATIONS, write

JUDGED = {  # the first sentence of show and check, and the exit code of check
    "regression": ("Worse: 1 case slower than when last measured.", 1),
    "improvement": ("Better: 1 case faster than when last measured, none slower.", 0),
    "untrusted": ("Untrusted: 1 case cannot be trusted.", 3),
    "wrong": ("Wrong: 1 case wrong.", 1),
    "nothing": ("No change: 14 cases as fast as when last measured.", 0),
}


@pytest.fixture(params=SITUATIONS)
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
    assert done.out.startswith(sentence)
    assert done.code == (code if command == "check" else 0)
    assert (PLANTED in beginning(done.out)) == bool(code)
    if command == "show":
        assert ("Nothing needs attention" in beginning(done.out)) == (code == 0)


def test_what_needs_attention_has_its_cause_in_its_row(situation, records, shell):
    runs, _, new = records
    text = beginning(shell("show", new, "--runs", runs).out)
    causes = {
        "regression": "slower k3 S0 24.1 us cold time 24.1 us in this record",
        "untrusted": "invalid k3 S0 - cold time: below the time of an empty launch",
        "wrong": "wrong k3 S0 - y[33] is 0.5, the reference 1.25",
    }
    assert causes.get(situation, "Nothing needs attention.") in text
    assert ("its machine code changed" in text) == (situation == "regression")


COMPARED = {  # in the first ten lines of compare, and its exit code
    "regression": ("1 slower 13 same", "B is 20 % slower (19 % to 20 %) in 1 of 14 cases.", 1),
    "improvement": ("1 faster 13 same", "B is 20 % faster in 1 of 14 cases.", 0),
    "untrusted": ("cold time is not to be trusted", "B is as fast in 13 of 13 cases; 1 not compared.", 3),
    "wrong": ("wrong in 20261121T221405Z-bbbbbbbb: y[33] is 0.5", "as fast in 13 of 13 cases; 1 not compared.", 1),
    "nothing": ("14 same", "B is as fast in 14 of 14 cases.", 0),
}


def test_a_comparison_says_the_same(situation, records, shell):
    _, old, new = records
    done = shell("compare", old, new)
    first, last, code = COMPARED[situation]
    assert first in beginning(done.out)
    assert done.out.rstrip().endswith(last)
    assert done.code == code
