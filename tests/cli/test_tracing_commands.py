"""`profile --tool cupti`, `--tool nsys`, `--chain` and of scripts, with tracers that are played."""

import json
import os
from pathlib import Path

import pytest

FAKES = Path(__file__).parent.parent / "profilers" / "fakes"
HOUSE = Path(__file__).parent.parent.parent
ON_NULL = ("--backend", "null", "--label", "S0")


@pytest.fixture(autouse=True)
def tracers(monkeypatch):
    """The tools on the PATH and the package `cupti` are played."""
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.syspath_prepend(str(FAKES / "python"))


def test_cupti_profiles_launches_gaps_and_copies_of_a_call(shell, toys):
    found = shell("profile", "triple", *ON_NULL, *toys, "--tool", "cupti", "--json")
    assert 0 == found.code
    (row,) = found.json["cases"]
    assert (2 / 20, 1 / 20, 4096 / 20, None) == (row["launches"], row["copies"], row["copied_bytes"], row["dram_bytes"])


def test_where_counters_are_closed_auto_goes_on_with_cupti(shell, toys, monkeypatch):
    from prism_bench.backends.null import NullBackend

    facts = NullBackend.facts
    monkeypatch.setattr(NullBackend, "facts", lambda self: facts(self) | {"compute_capability": 90})
    monkeypatch.setenv("PRISM_BENCH_FAKE", json.dumps({"fails": "==ERROR== ERR_NVGPUCTRPERM"}))
    found = shell("profile", "triple", *ON_NULL, *toys)
    assert 0 == found.code
    assert "administrators only" in found.err and "Going on with cupti." in found.err


def test_nsys_profiles_each_case_by_its_range(shell, toys):
    found = shell("profile", "double", *ON_NULL, *toys, "--tool", "nsys", "--json")
    assert 0 == found.code
    assert {"double[n=1000]": 1.0, "double:by_adding[n=1000]": 1.0} == {
        row["case"]: row["launches"] for row in found.json["cases"]
    }


def test_a_recording_that_nsys_cannot_convert_is_explained(shell, toys, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_FAKE", json.dumps({"qdstrm": True}))
    found = shell("profile", "double", *ON_NULL, *toys, "--tool", "nsys")
    assert 2 == found.code
    assert "nsys recorded, but could not turn its recording into a report" in found.err


def test_a_trace_of_kernels_has_a_row_each_and_what_launching_costs(shell, toys):
    found = shell("profile", "triple", *ON_NULL, *toys, "--tool", "cupti", "--json")
    assert 0 == found.code
    timeline = found.json["timeline"]
    rows = {row["name"]: (row["kernels"], row["launch_calls"], row["copies"]) for row in timeline["ranges"]}
    assert {"triple[n=1000]": (2, 2, 1)} == rows
    assert all(cost["plain"] > 0 and cost["watched"] > 0 for cost in timeline["costs"].values())
    shown = shell("profile", "triple", *ON_NULL, *toys, "--tool", "cupti")
    assert "triple[n=1000]: the host takes" in shown.out


def test_a_chain_is_one_row(shell, toys):
    found = shell("profile", "double", "triple", "--chain", *ON_NULL, *toys)
    assert 0 == found.code
    assert "double + triple: the host takes" in found.out
    assert 2 == shell("profile", "--chain", *ON_NULL, *toys).code
    other = shell("profile", "double", "--chain", *ON_NULL, *toys, "--tool", "ncu")
    assert (2, True) == (other.code, "--tool ncu: a --chain is traced with cupti" in other.err)


def test_a_script_is_watched_with_its_words(shell, tmp_path):
    script = tmp_path / "work.py"
    script.write_text("import sys, pathlib; pathlib.Path('words').write_text(' '.join(sys.argv[1:]))")
    found = shell("profile", script, "one", "two", "--json")
    assert 0 == found.code
    assert "one two" == Path("words").read_text()
    assert 2 == found.json["total"]["kernels"]
