"""The hook that checks commit messages."""

import subprocess
import sys

import pytest
import yaml

from scripts.commit_message import faults
from tests.test_words import ROOT


@pytest.mark.parametrize(
    "message",
    [
        "Fix NaN in entropy of rows with empty bins",
        "Pass the device to launches\n\nThe body gives the reason.\n# comment of git",
        "Speed up the reader of records",
        "Merge branch 'main' into reader",
        'Revert "The ruler is told"',
    ],
)
def test_a_good_message_passes(message):
    assert [] == faults(message)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("", "empty"),
        ("Fix " + "x" * 70, "at most 72"),
        ("Fix the reader.", "period"),
        ("fix the reader", "lower-case"),
        ("Fixed the reader", "imperative"),
        ("Fixes the reader", "imperative"),
        ("Adding a reader", "imperative"),
        ("The reader is fixed", "imperative"),
        ("Fix the reader\nof records", "not empty"),
        ("Measure the ruler again", "ceiling benchmark"),
        ("Fix the reader\n\nIt stands in the store.", "private word"),
    ],
)
def test_a_bad_message_is_refused(message, complaint):
    assert any(complaint in fault for fault in faults(message))


def test_the_hook_ends_with_1_on_a_bad_message(tmp_path):
    (tmp_path / "message").write_text("Fixed it.")
    command = [sys.executable, ROOT / "scripts/commit_message.py", tmp_path / "message"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 1 == done.returncode
    assert "imperative verb" in done.stderr and "period" in done.stderr


def test_the_hook_is_configured():
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    (hook,) = [hook for repo in repos for hook in repo["hooks"] if hook["id"] == "commit-message"]
    assert ["commit-msg"] == hook["stages"]
    assert hook["entry"].split()[-1] == "scripts/commit_message.py"
