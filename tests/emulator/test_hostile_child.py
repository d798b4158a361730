"""A child that runs native code may send anything: its parent gets a finding, and never runs or trusts what it sent."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import isolation
from prism_bench.emulator.isolation import Child
from prism_bench.emulator.library import LaunchRequest
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.io import channels
from prism_bench.io.workers import WorkerEnvironment

REQUEST = LaunchRequest("one", (1, 1, 1), (1, 1, 1))


@pytest.fixture
def hostile(monkeypatch, tmp_path):
    """A child of the given behaviour; it is in no way the process of other tests."""
    monkeypatch.setattr(isolation, "_SERVING", {})
    monkeypatch.setattr(isolation, "_END_SECONDS", 0.05)
    monkeypatch.setattr(channels, "STALL_SECONDS", 0.2)

    def child(behaviour):
        variables = {"BEHAVIOUR": behaviour, "BOMB": str(tmp_path / "bomb")}
        place = WorkerEnvironment("tests.emulator.hostile_child", variables=variables)
        monkeypatch.setattr(isolation, "_environment", lambda guarded: place)
        return Child(Path("library.so"), guarded=False)

    return child


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("pickle", "a frame begins with b'PBF1'"),
        ("noise", "a frame begins with b'PBF1'"),
        ("half", "the data ends within a frame"),
        ("stalls", "stops half-way"),
        ("other type", "EntriesAnswer does not answer LaunchQuestion"),
        ("other shape", "arrays of other shapes"),
        ("larger", "the arrays have 4000 bytes; the limit is"),
        ("no such array", "other arrays than it was sent"),
    ],
)
def test_what_is_no_answer_is_a_finding_and_ends_the_process(hostile, behaviour, words, tmp_path):
    child, x = hostile(behaviour), np.ones(32, "f4")
    (finding,) = child.launch(REQUEST, [x]).findings
    assert "crash" == finding.kind
    assert words in finding.message
    assert set(x) == {1}
    assert not (tmp_path / "bomb").exists()
    assert not child._process.is_running


def test_an_error_is_one_of_ours_whatever_its_name(hostile):
    with pytest.raises(PrismBenchError, match="good bye") as error:
        hostile("error of another tree").launch(REQUEST, [np.ones(32, "f4")])
    assert type(error.value) is PrismBenchError


def test_a_question_without_a_launch_fails_where_there_is_no_answer(hostile):
    with pytest.raises(BackendUnavailable, match="DoneAnswer does not answer EntriesQuestion"):
        _ = hostile("noise").entries
