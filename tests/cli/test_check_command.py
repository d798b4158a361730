"""`prism-bench check`: exit codes, outputs, alerts; bad input is named."""

import gzip
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from prism_bench.analysis.gate.checks import judged
from prism_bench.extensions.ci import alerts
from prism_bench.record import store
from prism_bench.report.gate import headline
from tests.built_in import CATALOGUE
from tests.record.store.test_records import empty_record
from tests.report.synthetic import case_result, gpu_record, measurement, record_of

OK = case_result("triple", times={"cold_time": 1e-5})
WRONG = case_result("triple", status="wrong", reason="y[0] is 2, the reference says 1")
DOUBTFUL = replace(OK, measurements=(measurement("cold_time", 1e-9, valid=False, reason="below the floor"),))
SKIPPED = case_result("triple", status="skipped", reason="no memory")


@pytest.fixture
def check(shell, toys, tmp_path, monkeypatch):
    """A function that saves a record and checks it."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def run(record, *words):
        store.save(record, store.path_for(record, tmp_path / "reports" / "runs"))
        return shell("check", *toys, *words)

    return run


@pytest.mark.parametrize(("code", "case"), [(0, OK), (1, WRONG), (2, SKIPPED), (3, DOUBTFUL)])
def test_the_exit_code_says_how_it_stands(check, code, case):
    found = check(record_of(case))
    assert (code, "") == (found.code, found.err)


def test_the_newest_record_is_taken(check):
    check(record_of(WRONG, created="2026-11-20T00:00:00"))
    assert 0 == check(record_of(OK, created="2026-11-21T00:00:00")).code


def test_json_is_alone_on_its_stream(check, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    found = check(gpu_record(), "--json")
    assert found.code == found.json["exit_code"] == 3
    assert "::notice title=prism-bench check::" in found.err


def test_annotations_are_printed_beside_the_text_on_github(check, monkeypatch):
    assert "::error" not in check(record_of(WRONG)).out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    found = check(record_of(WRONG))
    assert "::error title=wrong%3A triple[n=100]::y[0] is 2, the reference says 1%0A" in found.out
    assert "Wrong: 1 case wrong." in found.out


def test_documents_are_written(check):
    check(gpu_record(), "--output", "out/gate.md", "--output", "out/gate.xml")
    assert Path("out/gate.md").read_text().startswith("<!-- prism-bench check -->")
    assert "testsuites" == Xml.parse("out/gate.xml").getroot().tag


@pytest.mark.parametrize("ending", ["md", "xml"])
def test_a_document_that_cannot_be_written_is_named(check, ending):
    Path("file").write_text("in the way")
    found = check(record_of(OK), "--output", f"file/gate.{ending}")
    assert 2 == found.code
    assert f"prism-bench: --output file/gate.{ending}: file is no folder\n" == found.err


def test_a_record_that_is_none_is_named(shell, toys, tmp_path):
    (tmp_path / "bad.json.gz").write_bytes(b"\x1f\x8bcut")
    found = shell("check", *toys, tmp_path / "bad.json.gz")
    assert 2 == found.code
    assert found.err.startswith(f"prism-bench: {tmp_path}/bad.json.gz: ")


def test_a_record_that_is_cut_harms_no_other(check, tmp_path):
    folder = tmp_path / "reports" / "runs" / "nvidia-h200"
    folder.mkdir(parents=True)
    (folder / "20200101T000000Z-aaaaaaaa.json.gz").write_bytes(b"\x1f\x8bcut")
    found = check(record_of(OK))
    assert 0 == found.code
    assert "left out: " in found.out and "20200101T000000Z-aaaaaaaa.json.gz" in found.out


def test_budgets_that_are_not_right_are_refused_with_the_place(check, toys, tmp_path):
    mine = shutil.copytree(toys[1], tmp_path / "mine")
    (mine / "budgets").mkdir()
    budgets = mine / "budgets" / "nvidia-h200.toml"
    for text, rule in (("[[budget", "not"), ('device = "B300"\nbackend = "cuda"\nprotocol = 1\n', "device is 'B300'")):
        budgets.write_text(text)
        found = check(record_of(OK), "--catalogue", mine)
        assert (2, "") == (found.code, found.out)
        assert found.err.startswith(f"prism-bench: {budgets}: ") and rule in found.err and 1 == found.err.count("\n")


LIMITS = """
device = "NVIDIA H200"
backend = "cuda"
protocol = 1

[[budget]]
case = "triple[n=1000]"
metric = "code_bytes"
at_most = 4096
owner = "kernels"
reason = "the instruction cache"

[[budget]]
case = "triple[n=1000]"
metric = "compile_seconds"
at_most = 0.5
owner = "kernels"
reason = "the time of a build"
"""


@pytest.mark.parametrize(
    ("code", "size", "seconds", "said"),
    [
        (0, 4096, 0.5, "2 budgets met"),
        (1, 4112, 0.5, "code bytes is 4,112 B; the budget is at most 4,096 B"),
        (1, 4096, 0.61, "compile seconds is 610 ms; the budget is at most 500 ms"),
    ],
)
def test_the_size_of_code_and_the_time_to_compile_are_held_to_their_budgets(
    check, toys, tmp_path, code, size, seconds, said
):
    mine = shutil.copytree(toys[1], tmp_path / "mine")
    (mine / "budgets").mkdir()
    (mine / "budgets" / "nvidia-h200.toml").write_text(LIMITS)
    case = replace(OK, name="triple[n=1000]", code={"code_bytes": size, "compile_seconds": seconds})
    found = check(record_of(case), "--catalogue", mine)
    assert (code, True) == (found.code, said in found.out), found.out + found.err


def test_without_any_record_the_next_step_is_said(shell, toys):
    assert "prism-bench: no run record below reports/runs; 'prism-bench run' makes one\n" == shell("check", *toys).err


@pytest.fixture
def told(monkeypatch):
    """The alerts of every message sent; the receiver takes them all."""
    bodies = []
    monkeypatch.setenv("PRISM_BENCH_WEBHOOK", "https://hooks.example.org/secret")
    monkeypatch.setattr(alerts, "_send", lambda to, body, timeout: bodies.append(body) or (None, False, None))
    return bodies


def test_an_alert_is_sent_once_for_the_same_code(check, told):
    first = check(record_of(WRONG), "--alert")
    assert "alerts: https://hooks.example.org: 1 sent, 0 known before\n" == first.err
    again = check(record_of(WRONG, created="2026-11-22T00:00:00"), "--alert")
    assert "alerts: https://hooks.example.org: 0 sent, 1 known before\n" == again.err
    ((alert,),) = (body["alerts"] for body in told)
    assert ("triple[n=100]", "wrong") == (alert["subject"], alert["kind"])
    assert "prism-bench verify" in alert["reproduce"]
    kept = json.loads(Path("reports/alerts/nvidia-h200.json").read_text())
    assert [alert["fingerprint"]] == list(kept["entries"])


def test_a_gate_that_cannot_be_asked_is_told_once_until_it_can(shell, toys, check, told):
    """A night of which nobody hears is taken for a good one."""
    for _ in range(2):
        failed = shell("check", *toys, "gone.json.gz", "--alert")
        assert (2, "prism-bench: gone.json.gz: no such record") == (failed.code, failed.err.splitlines()[-1])
    assert ["failed"] == [alert["kind"] for body in told for alert in body["alerts"]]
    assert 0 == check(record_of(OK), "--alert").code
    shell("check", *toys, "gone.json.gz", "--alert")
    assert 2 == len(told)


def test_a_gate_without_an_answer_is_told(check, told):
    for _ in range(2):
        assert 2 == check(record_of(SKIPPED), "--alert").code
    assert ["Nothing could be judged."] == [body["alerts"][0]["message"] for body in told]


def test_nothing_is_sent_unasked(check, told):
    check(record_of(WRONG))
    assert ([], False) == (told, Path("reports/alerts").exists())


def test_an_alert_that_cannot_be_sent_changes_nothing_else(check, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_SLACK_WEBHOOK", "ftp://hooks.example.org/secret")
    found = check(record_of(WRONG), "--alert")
    assert 1 == found.code
    assert "alerts: ftp://hooks.example.org: 1 not delivered: not an http or https address\n" == found.err


def test_nobody_to_tell_is_said(check, monkeypatch):
    for name in ("PRISM_BENCH_WEBHOOK", "PRISM_BENCH_SLACK_WEBHOOK"):
        monkeypatch.delenv(name, raising=False)
    found = check(record_of(OK), "--alert")
    assert (0, "alerts: no webhook; set PRISM_BENCH_WEBHOOK or PRISM_BENCH_SLACK_WEBHOOK\n") == (found.code, found.err)


@pytest.mark.parametrize("words", [[], ["reports/runs/nvidia-h200/20991231T000000Z-7471611d.json.gz"]])
def test_a_record_without_cases_passes_nothing(check, shell, toys, words):
    """An interrupted run left one; it was the newest, and all was well with it."""
    check(record_of(OK))
    empty_record(Path("reports/runs/nvidia-h200/20991231T000000Z-7471611d.json.gz"))
    found = shell("check", *toys, *words)
    assert (2, "") == (found.code, found.out)
    assert "a run record without cases: nothing was measured; remove the file" in found.err


def test_machine_kernels_alone_pass_nothing(check):
    null = case_result("null", times={"cold_time": 2e-6}, ceiling="launch")
    assert 2 == check(record_of(null)).code


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda case, one: one["processes"][0].update(counts=[0, 0, 0]), "a time of 0 s"),
        (lambda case, one: one["processes"][0].update(unit=-1e-9), "a time of -"),
        (lambda case, one: one["processes"][0].update(unit=1e12), "none is above 1e.07 s"),
        (lambda case, one: one["clocks"][0].__setitem__(0, 10**9), "a clock from"),
        (lambda case, one: case.update(bytes=-1), "-1 bytes"),
        (lambda case, one: case.update(flops=-5), "-5 operations"),
    ],
)
def test_what_is_physically_impossible_is_not_believed(shell, toys, tmp_path, monkeypatch, change, words):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    case = case_result("triple", flops=300, measurements=(measurement("cold_time", 1e-5),))
    path = store.RecordPlace(tmp_path / "reports" / "runs").save(record_of(case))
    assert 3 != shell("check", *toys).code
    plain = json.loads(gzip.decompress(path.read_bytes()))
    change(plain["cases"][0], plain["cases"][0]["measurements"][0])
    path.write_bytes(gzip.compress(json.dumps(plain).encode()))
    found = store.read(path).cases[0].measurements[0]
    assert not found.valid and re.search(words, found.reason)
    told = shell("check", *toys)
    assert 3 == told.code
    assert re.search(words, " ".join(told.out.split()))


def test_copies_of_another_host_are_no_slowdown_in_a_committed_record():
    """All 401 end-to-end times were taken on another host than the baseline's: 186 of them were called slower."""
    runs = Path(__file__).resolve().parents[2] / "reports" / "runs"
    record = runs / "nvidia-h200" / "20261127T141305Z-03a5d1ab.json.gz"
    found = judged(record, CATALOGUE, runs, runs.parent / "noise")
    assert not [check for check in found.concerns if check.metric == "end_to_end_time"]
    assert "slower than" not in headline(found)
    (note,) = [check.message for check in found.checks if check.answer == "host"]
    assert note.startswith("not compared: 401 cases of end to end time: the host's clock read the end to end time, and")


EDGES = [case_result("triple", "edge", workload={"n": n}) for n in (1, 2)]


@pytest.mark.parametrize(
    ("cases", "complete", "sentence"),
    [
        (EDGES, False, "Nothing was timed: the run was cut short, 2 cases only verified."),
        ([*EDGES, replace(OK, measurements=())], True, "Nothing was timed: 3 cases only verified."),
        ([*EDGES, SKIPPED], True, "Nothing was timed: 2 cases only verified."),
        ([*EDGES, OK], False, "No problem: 3 checks ok; nothing to compare with yet."),
        (EDGES, True, "No problem: 2 checks ok; nothing to compare with yet."),
    ],
)
def test_a_record_without_a_time_passes_nothing(check, cases, complete, sentence):
    """A run that was cut short during its edges was `No problem: 26 cases ok`, with exit code 0."""
    found = check(record_of(*cases, complete=complete))
    assert found.out.startswith(sentence)
    assert (2 if sentence.startswith("Nothing") else 0) == found.code
