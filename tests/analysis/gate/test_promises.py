"""Budgets of a device: read strictly, with the place and the rule in every complaint."""

import shutil
from datetime import date
from pathlib import Path

import pytest

from prism_bench.analysis.gate.budgets import absent, budget_verdicts, folder_of, promises_for
from prism_bench.analysis.run_analysis import read
from prism_bench.analysis.summary import summary_rows
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import ResultsError
from prism_bench.record.run_record import RunRecord
from tests.built_in import CATALOGUE
from tests.report.synthetic import MACHINE, case_result, record_of

TOYS = Path(__file__).parent.parent.parent / "toys"
HEAD = 'device = "NVIDIA H200"\nbackend = "cuda"\nprotocol = 1\n'
TRIPLE = """
[[budget]]
case = "triple[n=1000]"
metric = "cold_time"
at_most_us = 6.5
owner = "us"
reason = "measured"
"""


@pytest.fixture
def catalogue(tmp_path):
    """The toys in a folder of one's own."""
    return discover(shutil.copytree(TOYS, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def promise(catalogue):
    """A function that writes the H200's file of budgets, and gives the catalogue."""

    def write(text: str) -> Catalogue:
        path = catalogue.folder / "budgets" / "nvidia-h200.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return catalogue

    return write


def triple(seconds=5e-6, **changes) -> RunRecord:
    times = {"cold_time": seconds} if seconds else {}
    return record_of(case_result("triple", workload={"n": 1000}, times=times), **changes)


def verdicts(catalogue, record):
    return [one.verdict for one in read(record, catalogue).budgets]


def test_microseconds_become_seconds(promise):
    (budget,) = promises_for(triple(), promise(HEAD + TRIPLE)).budgets["triple[n=1000]"]
    assert ("cold_time", 6.5e-6, None) == (budget.metric, pytest.approx(budget.at_most), budget.at_least)
    assert ("us", "measured", None) == (budget.owner, budget.reason, budget.expires)


@pytest.mark.parametrize(("seconds", "verdict"), [(5e-6, "met"), (7e-6, "missed"), (None, "unmeasured")])
def test_a_device_is_held_to_its_budget(promise, seconds, verdict):
    assert [verdict] == verdicts(promise(HEAD + TRIPLE), triple(seconds))


def test_what_holds_elsewhere_is_promised_without_microseconds(promise):
    text = HEAD + TRIPLE.replace("cold_time", "bandwidth_share").replace("at_most_us = 6.5", "at_least = 0.8")
    assert ["unmeasured"] == verdicts(promise(text), triple())


def test_a_missed_budget_is_a_bad_finding_that_knows_its_ratio(promise):
    (finding,) = read(triple(13e-6), promise(HEAD + TRIPLE)).findings
    assert ("bad", "missed", "cold_time", 2.0) == (finding.gravity, finding.kind, finding.metric, finding.ratio)


def test_an_expired_budget_binds_nobody_and_says_so(promise):
    catalogue = promise(HEAD + TRIPLE + "expires = 2026-01-01\n")
    assert ["expired"] == verdicts(catalogue, triple(13e-6))
    (finding,) = read(triple(13e-6), catalogue).findings
    assert ("note", "expired") == (finding.gravity, finding.kind)
    assert "expired on 2026-01-01: us renews it or takes it out" in finding.message


def test_a_budget_that_has_not_expired_yet_binds(promise):
    catalogue = promise(HEAD + TRIPLE + "expires = 2027-06-30\n")
    record = triple(13e-6)
    promised = promises_for(record, catalogue).budgets
    for day, verdict in ((date(2027, 6, 29), "missed"), (date(2027, 6, 30), "expired")):
        found = budget_verdicts(summary_rows(record), catalogue, promised, today=day)
        assert [verdict] == [one.verdict for one in found]


def test_a_promised_case_that_the_record_has_not_is_unmeasured(promise):
    promised = promises_for(record_of(), promise(HEAD + TRIPLE)).budgets
    (one,) = absent(summary_rows(record_of()), promised, "nvidia-h200.toml")
    assert ("triple[n=1000]", None, "unmeasured", "nvidia-h200.toml") == (one.case, one.value, one.verdict, one.source)
    assert [] == absent(summary_rows(triple()), promised)


def test_a_device_without_a_file_has_promised_nothing(catalogue):
    found = promises_for(triple(), catalogue)
    assert (None, {}, None) == (found.path, found.budgets, found.baseline)
    assert 1.5 == found.degraded


def test_a_catalogue_of_ones_own_keeps_its_own_budgets(catalogue):
    assert catalogue.folder / "budgets" == folder_of(catalogue)
    assert ("suites", "budgets") == folder_of(CATALOGUE).parts[-2:]


def test_the_factor_of_a_degraded_case_can_be_set_for_a_device(promise):
    found = promises_for(triple(), promise(HEAD + "[rules]\ndegraded_over_baseline = 1.2\n"))
    assert (1.2, "") == (found.degraded, found.source)


def replaced(old, new):
    text = HEAD + TRIPLE
    assert old in text
    return text.replace(old, new)


WRONG = {
    "malformed": (HEAD + "[[budget\n", r"not readable TOML \(.*line 4"),
    "not utf-8": (b"\xff", "not readable TOML"),
    "an unknown case": (replaced("triple[n=1000]", "tripel[n=1000]"),
                        r"budget 1: unknown case 'tripel\[n=1000\]'; did you mean triple\[n=1000\]"),
    "an unknown metric": (replaced("cold_time", "cold_tim"),
                          "budget 1: metric 'cold_tim' is unknown; did you mean cold_time"),
    "no number": (replaced("cold_time", "family"), "budget 1: metric 'family' is unknown"),
    "an unknown key": (HEAD + TRIPLE + "at_mos = 3\n", "budget 1: unknown key 'at_mos'; did you mean at_most_us"),
    "an unknown key at the top": ("owners = 3\n" + HEAD + TRIPLE, "unknown key 'owners'"),
    "an unknown rule": (HEAD + "[rules]\ndegraded_over = 3\n",
                        "rules: unknown key 'degraded_over'; did you mean degraded_over_baseline"),
    "a negative rule": (HEAD + "[rules]\ndegraded_over_baseline = -0.1\n",
                        "rules: 'degraded_over_baseline' is -0.1; it must be a number from 0"),
    "negative": (replaced("6.5", "-6.5"), "budget 1: 'at_most_us' is -6.5; it must be a number from 0 upwards"),
    "not a number": (replaced("6.5", "nan"), "budget 1: 'at_most_us' is nan; it must be a number"),
    "infinite": (replaced("6.5", "inf"), "budget 1: 'at_most_us' is inf; it must be a number"),
    "true": (replaced("6.5", "true"), "budget 1: 'at_most_us' is True, not int or float"),
    "no limit": (replaced("at_most_us = 6.5\n", ""), "budget 1: 'at_most_us' is missing"),
    "no owner": (replaced('owner = "us"\n', ""), "budget 1: 'owner' is missing"),
    "no reason": (replaced('reason = "measured"\n', ""), "budget 1: 'reason' is missing"),
    "a date in words": (HEAD + TRIPLE + 'expires = "soon"\n', "budget 1: 'expires' is 'soon', not date"),
    "a share in microseconds": (replaced("cold_time", "bandwidth_share"), "give exactly one of at_most and at_least"),
    "twice": (HEAD + TRIPLE + TRIPLE, r"budget 2: triple\[n=1000\] has a budget for cold_time already"),
    "no table": (HEAD + "budget = [7]\n", r"budget 1: not a table; write \[\[budget\]\]"),
    "another device": (replaced("H200", "H100"), "device is 'NVIDIA H100', the record's is 'NVIDIA H200'"),
    "another backend": (replaced('"cuda"', '"null"'), "backend is 'null', the record's is 'cuda'"),
    "another protocol": (replaced("protocol = 1", "protocol = 2"), "protocol is 2, the record's is 1"),
    "no device": (TRIPLE, "'device' is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_place(promise, catalogue, name):
    text, words = WRONG[name]
    promise("")
    path = folder_of(catalogue) / "nvidia-h200.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ResultsError, match=words) as refused:
        promises_for(triple(), catalogue)
    assert str(refused.value).startswith(f"{path}: ")


def test_budgets_of_a_file_that_was_renamed_do_not_hold_another_device(promise, catalogue):
    promise(HEAD + TRIPLE)
    folder = folder_of(catalogue)
    (folder / "nvidia-h200.toml").rename(folder / "nvidia-h100.toml")
    with pytest.raises(ResultsError, match="device is 'NVIDIA H200', the record's is 'NVIDIA H100'"):
        promises_for(triple(machine={**MACHINE, "device": "NVIDIA H100"}), catalogue)


def test_the_budgets_kept_here_are_right():
    record = record_of()
    found = promises_for(record, CATALOGUE)
    assert found.budgets
    assert found.baseline.seconds
