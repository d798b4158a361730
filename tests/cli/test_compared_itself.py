"""`prism-bench compare --itself`: the noise floors of this machine, kept for later."""

from pathlib import Path

import pytest

from prism_bench.analysis.compare.noise import read_noise
from prism_bench.cli import measuring
from prism_bench.io.files import Saver
from tests.analysis.measured_pairs import case
from tests.report.synthetic import record_of

QUICK = ("compare", "--itself", "--processes", "2", "triple")


def test_floors_are_shown_kept_and_used(shell, toys):
    found = shell(*QUICK, *toys, "--backend", "null")
    (path,) = Path("reports/noise").glob("*.json")
    assert 0 == found.code
    assert f"noise floors: {path}" == found.out.splitlines()[-1]
    assert "null backend: 2 noise floors; of verdicts on the build against itself, 0.0 % called a change" in found.out
    floors = read_noise(path).floors
    assert {("triple[n=1000]", "cold_time"), ("triple[n=1000]", "hot_time")} == set(floors)
    assert {2} == {floor.processes for floor in floors.values()}
    words = (
        "compare",
        toys[1],
        toys[1],
        "--backend",
        "null",
        "--processes",
        "1",
        *toys,
        "--filter",
        "triple",
        "--all",
        "--json",
    )
    (case,) = shell(*words).json["cases"]
    assert ("same", "within 0.1 %") == (case["verdict"], case["reason"])


def test_the_emulator_has_a_noise_of_its_own(shell, toys):
    found = shell(*QUICK, *toys, "--backend", "emulator", "--json", "--noise", "here").json
    assert Path(found["path"]).parent == Path("here")
    assert [("triple[n=1000]", "wall_time")] == [(floor["case"], floor["metric"]) for floor in found["floors"]]


@pytest.fixture
def measured(monkeypatch):
    """A function that has the command find these records measured."""
    return lambda *records: monkeypatch.setattr(measuring, "measured", lambda *_: (records, Saver(tuple)))


def test_one_process_a_side_makes_no_floor_and_ends_with_2(shell, toys, measured):
    measured(*(record_of(case("k", processes=1, seed=side)) for side in (0, 1)))
    found = shell(*QUICK, *toys, "--backend", "null")
    assert 2 == found.code
    assert "no case was timed validly in two processes a side" in found.out


def test_what_was_cut_short_is_kept_and_ends_with_2(shell, toys, measured):
    measured(*(record_of(case("k", seed=side), complete=False) for side in (0, 1)))
    assert 2 == shell(*QUICK, *toys, "--backend", "null").code
    assert {("k[n=100]", "cold_time")} == set(read_noise(Path("reports/noise/nvidia-h200.json")).floors)


@pytest.mark.parametrize("words", [("--processes", "0"), ("--time-limit", "0")])
def test_impossible_options_are_refused(shell, toys, words):
    assert 2 == shell("compare", "--itself", *toys, "--backend", "null", *words).code


@pytest.mark.parametrize("words", [("--metric", "hot_time"), ("--least", "0.1"), ("--fleet", "local")])
def test_an_option_of_two_sides_is_refused(shell, toys, words):
    refused = shell(*QUICK, *toys, *words)
    assert (2, f"prism-bench: {words[0]}: leave it out with --itself\n") == (refused.code, refused.err)


def test_the_command_that_is_gone_names_this_one(shell):
    message = "prism-bench: 'noise' is no command any more; use 'prism-bench compare --itself'\n"
    assert (2, message) == (shell("noise").code, shell("noise").err)
