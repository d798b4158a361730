"""`prism-bench check --accept`: a record becomes the baseline that later ones are compared with."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.analysis.gate.budgets import read_baseline
from prism_bench.record import store
from tests.report.synthetic import case_result, record_of


def triple(seconds=1e-5, kernel="triple"):
    return record_of(case_result(kernel, workload={"n": 1000}, times={"cold_time": seconds}))


@pytest.fixture
def mine(toys, tmp_path):
    """The words that choose a catalogue of one's own."""
    folder = shutil.copytree(toys[1], tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    return ("--catalogue", Path(folder))


def kept(record, name="old"):
    return store.save(record, Path(f"reports/runs/nvidia-h200/{name}.json.gz"))


def test_a_record_becomes_the_baseline_of_its_device(shell, mine):
    path = kept(triple())
    found = shell("check", path, "--accept", *mine)
    target = mine[1] / "budgets" / "nvidia-h200.baseline.toml"
    assert (0, f"baseline: 1 case of old.json.gz for NVIDIA H200: {target}\n") == (found.code, found.out)
    assert (str(path), {("triple[n=1000]", "cold_time"): 1e-5}) == (
        read_baseline(target).record, pytest.approx(read_baseline(target).seconds))  # fmt: skip


def test_later_records_are_held_against_it(shell, mine):
    shell("check", "--accept", kept(triple()), *mine)
    found = shell("show", kept(triple(1.6e-5), "new"), *mine)
    assert "degraded: triple[n=1000]: cold time: median over the baseline's 1.6, the rule is at most 1.5" in found.out
    assert "degraded" not in shell("show", kept(triple(1.4e-5), "new"), *mine).out


def test_without_a_name_the_newest_record_is_taken(shell, mine):
    kept(triple(), "20261101")
    kept(triple(2e-5), "20261102")
    found = shell("check", "--accept", *mine, "--json").json
    assert ("reports/runs/nvidia-h200/20261102.json.gz", 1) == (found["record"], found["cases"])


def test_it_goes_where_it_is_told(shell, mine):
    assert 0 == shell("check", "--accept", kept(triple()), *mine, "--output", "here/b.toml").code
    assert read_baseline(Path("here/b.toml")).seconds


def test_a_case_that_the_catalogue_has_not_is_an_error(shell, mine):
    found = shell("check", "--accept", kept(triple(kernel="tripel")), *mine)
    assert 2 == found.code
    assert "old.json.gz: unknown case 'tripel[n=1000]'; did you mean triple[n=1000]" in found.err
    assert not (mine[1] / "budgets").exists()


def test_a_record_of_another_device_is_refused(shell, mine):
    found = shell("check", "--accept", kept(triple()), *mine, "--machine", "nvidia-h100")
    assert 2 == found.code
    assert "old.json.gz: it is of nvidia-h200, not of nvidia-h100" in found.err


def test_a_record_without_times_is_refused(shell, mine):
    found = shell("check", "--accept", kept(record_of(case_result("triple"))), *mine)
    assert 2 == found.code
    assert "holds no valid time" in found.err


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_record_of_another_protocol_is_shown_and_not_held(shell, mine, words):
    shell("check", "--accept", kept(triple()), *mine)
    found = shell("show", kept(replace(triple(1.6e-5), protocol={}), "new"), *mine, *words)
    assert 0 == found.code
    assert "nothing was compared with the device's budgets and baseline" in found.out
    assert "degraded: triple" not in found.out
    assert 2 == shell("check", kept(replace(triple(), protocol={}), "new"), *mine).code


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--accept", "--output", "gate.md"),
            "--output gate.md: its ending is none of .toml, which can be written here",
        ),
        (("--accept", "--alert"), "--alert: leave it out with --accept"),
        (("--output", "b.toml"), "--output b.toml: its ending is none of .md, .xml, which can be written here"),
        (("--output", "b.md", "-o", "c.md"), "--output c.md: b.md is written in this form"),
        (("--machine", "nvidia-h200"), "--machine: it is for --accept"),
    ],
)
def test_options_of_the_other_form_are_refused(shell, mine, words, sentence):
    found = shell("check", kept(triple()), *mine, *words)
    assert (2, "", f"prism-bench: {sentence}\n") == (found.code, found.out, found.err)
    assert not (mine[1] / "budgets").exists() and not Path("b.toml").exists()


def test_the_former_command_names_its_replacement(shell):
    found = shell("baseline")
    assert (2, "prism-bench: 'baseline' is no command any more; use 'prism-bench check --accept'\n") == (
        found.code, found.err)  # fmt: skip
