"""Energy from a run to its column, a comparison, a budget and a trend, on a board that is played."""

from pathlib import Path

import pytest

from prism_bench.analysis.run_analysis import read
from prism_bench.monitor.energy import missing_counter
from prism_bench.record import store
from prism_bench.report.view import case_views
from tests.monitor.conftest import HOPPER

RUN = ("run", "double", "--backend", "null", "--processes", "1", "-l", "S1")
CASE = "double[n=100000]"


@pytest.fixture
def newest(shell, toys, script):
    """A function that runs a kernel and its variant by a script; the exit code with the record."""

    def run(behaviours):
        script(behaviours)
        code = shell(*RUN, *toys).code
        (path,) = Path("reports/runs").glob("*/*")
        return code, store.read(path)

    return run


def cells(record):
    return {view.case.name: view.cells["energy"] for view in case_views(read(record))}


def test_a_run_has_the_energy_with_its_interval_and_without_idle_power(newest, shell):
    code, record = newest({"*": {"joules": 0.01, "counter": {"module": 3.0}}})
    assert 0 == code
    measured = record.case(CASE).measurement("energy")
    assert (measured.valid, "module") == (True, measured.energy.scope)
    assert pytest.approx(0.013, rel=0.03) == measured.median == pytest.approx(measured.energy.joules, rel=0.02)
    small = cells(record)[CASE].small
    assert small.startswith("±") and small.endswith("mJ less idle, of the module")
    assert "energy" not in record.protocol["criteria"], "a record with it is of the same series as one without"
    found = shell("trend", "--metric", "energy")
    assert (0, True) == (found.code, "1 record" in found.out)


def test_an_energy_that_power_contradicts_and_a_counter_that_was_reset_have_their_reasons(newest):
    wrong, reset = {"gain": 0.5}, {"fault": "resets"}
    code, record = newest({"*by_adding*": {"joules": 0.01, "counter": reset}, "*": {"joules": 0.01, "counter": wrong}})
    assert (0, "-") == (code, cells(record)[CASE].text)
    assert "50 % apart" in cells(record)[CASE].reason
    assert not record.case(CASE).measurement("energy").valid
    variant = record.case("double:by_adding[n=100000]")
    assert variant.measurement("energy").valid and "was reset" in cells(record)[variant.name].reason


def test_five_percent_more_energy_is_found(shell, toys, script):
    script({"double:*": {"joules": 0.0105, "noise": 0.002}, "*": {"joules": 0.01, "noise": 0.002}})
    sides = ("compare", "double", "double:by_adding", "--backend", "null", "--processes", "3", "-l", "S0")
    found = shell(*sides, "--metric", "energy", "--json", *toys)
    (case,) = found.json["cases"]
    assert (1, "slower", "energy") == (found.code, case["verdict"], case["metric"])
    assert pytest.approx(1.05, rel=0.01) == case["ratio"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("--backend", "numpy_reference", "-l", "S1"),
            "only a GPU has an energy counter, not the backend numpy_reference",
        ),
        (("--backend", "numpy_reference"), "only a GPU has an energy counter, not the backend numpy_reference"),
        (("--backend", "emulator"), "only a GPU has an energy counter, not the backend emulator"),
        (("--backend", "null", "-l", "S0"), "of S1 only, and no such case is chosen"),
        (
            ("--backend", "null", "-l", "S1"),
            "the null backend has an energy counter where its script has joules",
        ),
    ],
)
def test_a_run_that_is_asked_for_energies_and_has_none_names_the_reason(shell, toys, words, reason):
    found = shell("run", "double", "--processes", "1", *words, *toys, "--energy")
    assert (0, 1) == (found.code, found.err.count(f"--energy: no energies are measured: {reason}"))
    assert "no energies" not in shell("run", "double", "--processes", "1", *words, *toys).err


def test_an_energy_counter_is_missing_with_its_reason(gpus):
    gpus.add(energy=None)
    gpus.add(uuid="GPU-1")
    assert "no energy counter: " in missing_counter("cuda", HOPPER["uuid"])
    assert missing_counter("cuda", "GPU-1") is None
    assert "does not list" in missing_counter("cuda", "GPU-2")


@pytest.mark.parametrize(
    "words",
    [
        ("tune", "-b", "emulator", "--least", "energy"),
        ("compare", "double", "double:by_adding", "-b", "emulator", "--metric", "energy"),
    ],
)
def test_a_backend_without_a_counter_is_refused_before_anything_is_measured(shell, toys, words, monkeypatch):
    monkeypatch.setattr("prism_bench.io.workers.Conversation.ask", lambda *_: pytest.fail("something was measured"))
    found = shell(*words, *toys)
    assert 2 == found.code
    assert (
        f"prism-bench: {' '.join(words[-2:])}: only a GPU has an energy counter, not the backend emulator" in found.err
    )
