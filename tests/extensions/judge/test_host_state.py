"""A judgement leaves the machine as it was, as far as a machine without a GPU has a state."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.jail_client import CellLimits
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import EVIDENCE, HostState, JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder that no other test uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["honest", "crashes", "hangs", "reads_through_the_emulator"])
def test_a_judgement_leaves_this_process_and_its_files_as_they_were(name: str, temporary: Path) -> None:
    try:
        jail_maker()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    found = discover(HERE / "tasks")
    card = read_submission(HERE / "museum" / f"{name}.toml")
    limits = CellLimits(patience=0.5)
    verdict = SubmissionTrial(card, JudgeTask(found.kernel("add"), found), secret=20261123, limits=limits).verdict()
    assert (name == "honest") == (verdict.ruling == "right")
    expected = "as before: processes, descriptors, environment, working folder, folders"
    assert expected == verdict.evidence[EVIDENCE]
    assert not list(temporary.iterdir())


def test_what_differs_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = HostState.now()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert "not as before: processes, descriptors" == HostState.now().evidence(before)
    finally:
        child.communicate(b"\n")
    assert HostState.now().evidence(before).startswith("as before")
    (temporary / "prism-judge-1-another").mkdir()
    assert HostState.now().evidence(before).startswith("as before"), "another judgement's on this machine"
    (temporary / f"prism-judge-{os.getpid()}-left").mkdir()
    monkeypatch.setenv("PRISM_LEFT", "1")
    monkeypatch.chdir(temporary)
    assert "not as before: environment, working folder, folders" == HostState.now().evidence(before)
    assert "not as before: folders" == HostState.now().evidence(before, ("environment", "working_folder"))
