"""The table of the museum on a GPU: what counts as undetected, and what as an effect on a naive judge."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.extensions.judge import museum_on_gpu
from tests.extensions.judge.museum_entries import Entry, entries
from tests.extensions.judge.verdicts import RIGHT, TIMES, WRONG

USUAL = {"right": True, "worked": True, "edges": True, "seconds": 1e-5, "samples": 60, "enqueued": 5e-6, "waited": 2e-5}
KNOWN = {one.name: one for one in entries()}


def tried(
    monkeypatch: pytest.MonkeyPatch, name: str, ruling: str, relative: float = 1.0, words: str = "because",
    **naive: object,
) -> museum_on_gpu.MuseumRow:  # fmt: skip
    """Return the line of an entry that the judge answers with a ruling, and a naive judge with what differs."""

    def answered(entry: Entry, way: str, gpu: str, architecture: str = "") -> dict[str, object]:
        judge = {"words": words, "seconds": 2.0, "relative": relative}
        naively = naive if "ended" in naive else {**USUAL, **naive}
        return naively if way == "naive" else {**judge, "ruling": ruling}

    monkeypatch.setattr(museum_on_gpu, "answered", answered)
    return museum_on_gpu.row(KNOWN[name], "", {"seconds": 1e-5, "samples": 60, "waited": 2e-5})


@pytest.mark.parametrize(
    ("naive", "effect"),
    [
        ({}, ""), ({"right": False, "worked": False}, ""), ({"worked": False}, "did not do the work"),
        ({"edges": False}, "wrong at edges"),
        ({"seconds": 5e-6}, "0.50 of an honest"), ({"samples": 3}, "3 samples instead of 60"),
        ({"waited": 2e-3}, "a fifth"), ({"ended": "hangs"}, "it hangs"),
    ],
)  # fmt: skip
def test_an_effect_on_a_naive_judge_is_named(
    naive: dict[str, object], effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tried(monkeypatch, "replays_timed_launches", "wrong", **naive)
    assert found.detected
    assert effect in found.naive
    assert bool(effect) == bool(found.naive)


def test_an_attack_that_passes_is_undetected_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not tried(monkeypatch, "honest", "wrong").detected, "an honest kernel that is rejected, too"
    assert not tried(monkeypatch, "counts_its_calls", "right").detected
    table = tmp_path / "museum.csv"
    names = ["counts_its_calls", "pins_the_cache", "patches_the_clock"]
    assert museum_on_gpu.main([*names, "--output", str(table)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "0 of 1 entries that only a GPU shows fool a naive judge here",
        "3 entries, undetected: 1 counts_its_calls",
    ]
    assert 4 == len(table.read_text().splitlines())


def test_a_time_that_an_attack_flatters_is_undetected(monkeypatch: pytest.MonkeyPatch) -> None:
    flattered = tried(monkeypatch, "pins_the_cache", "right", 0.8)
    assert (False, 0.8) == (flattered.detected, flattered.relative)
    assert tried(monkeypatch, "pins_the_cache", "right", 0.97).detected
    assert not tried(monkeypatch, "pins_the_cache", "right", 0.0).detected, "it has no time"
    assert tried(monkeypatch, "honest", "right", 0.8).detected, "no attack, and small"
    times = [msgspec.structs.replace(one, seconds=10 * one.seconds, case="large") for one in TIMES[:1]]
    assert 0.667 == museum_on_gpu._relative(msgspec.structs.replace(RIGHT, times=(*TIMES, *times)))
    assert 0.0 == museum_on_gpu._relative(WRONG)


def test_what_a_sanitizer_alone_shows_is_found_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, "races_in_machine_code", "wrong", words="racecheck: race: of two warps").detected
    assert not tried(monkeypatch, "races_in_machine_code", "wrong", words="races_in_machine_code differs").detected


def test_a_gpu_decides_what_is_unchecked_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, "reads_by_incbin", "right").detected
    assert not tried(monkeypatch, "reads_by_incbin", "wrong").detected


def test_a_process_that_dies_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU the way ends with an error, which is what is reported of it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert str(museum_on_gpu.answered(KNOWN["honest"], "naive", "")["ended"]).startswith("dies: ")


def test_what_is_refused_before_a_launch_is_not_shown_to_the_referee(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not asked" == tried(monkeypatch, "prints", "refused").referee
    assert "wrong because" == tried(monkeypatch, "counts_its_calls", "wrong").referee


@pytest.mark.parametrize(("name", "ruling"), [("prints", "refused"), ("counts_its_calls", "wrong")])
def test_what_is_rejected_without_a_gpu_needs_none(name: str, ruling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_gpu(*_: object, **__: object) -> None:
        raise AssertionError("a GPU is asked for")

    monkeypatch.setattr(museum_on_gpu, "OnGpu", no_gpu)
    if not museum_on_gpu._has_jail():
        pytest.skip("no jail can be made here")
    assert ruling == museum_on_gpu.tried(KNOWN[name], "judge", "90")["ruling"]


_SLEEPING = """
import sys
from tests.extensions.judge import museum_on_gpu
stuck = "import tempfile, time; tempfile.mkdtemp(prefix='prism-judge-'); time.sleep(60)"
museum_on_gpu.answered = lambda *asked: museum_on_gpu.PROCESSES.run(["timeit", "-n1", "-r1", stuck], {}, 60) or {}
sys.exit(museum_on_gpu.main(["honest", "prints", "--jobs", "2"]))
"""


def test_a_signal_ends_all_processes_and_removes_their_files(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root), str(root / "scripts")])
    variables = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": paths}
    with subprocess.Popen([sys.executable, "-c", _SLEEPING], env=variables, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("*/prism-judge-*")):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 2
    assert [] == list(tmp_path.iterdir())
