"""`prism-bench traffic`: exit codes, table and JSON."""

import shutil
from pathlib import Path

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.errors import BackendUnavailable

TOYS = Path(__file__).parent.parent / "toys"


@pytest.fixture(autouse=True)
def compiler():
    """Nothing can be counted without a C++ compiler."""
    try:
        EmulatorBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def meagre(tmp_path):
    """The toys, with a spec of `double` that declares half of its bytes."""
    folder = Path(shutil.copytree(TOYS, tmp_path / "toys"))
    spec = folder / "arith" / "double.py"
    spec.write_text(spec.read_text().replace("tolerance=exact(),", "tolerance=exact(), bytes_moved=lambda n: 4 * n,"))
    return ("--catalogue", folder)


def test_sound_models_end_with_0_and_a_table_of_s0(shell, toys):
    found = shell("traffic", *toys)
    assert 0 == found.code
    assert "traffic of one call" in found.out
    assert "double[n=1000]" in found.out
    assert "n=100000" not in found.out


def test_json_holds_every_case_and_nothing_else(shell, toys):
    found = shell("traffic", *toys, "--filter", "double", "--json")
    assert 0 == found.code
    assert ["double[n=1000]", "double:by_adding[n=1000]"] == [one["case"] for one in found.json]
    assert {(8000, 8000, None)} == {(one["declared"], one["touched"], one["complaint"]) for one in found.json}


def test_a_wrong_model_ends_with_1_and_says_which_and_by_how_much(shell, meagre):
    found = shell("traffic", *meagre)
    assert 1 == found.code
    assert "double[n=1000]: touches 8000 bytes of its inputs and outputs; the spec declares 4000" in found.out
    assert "triple[n=1000]: " not in found.out


def test_json_of_a_wrong_model_carries_the_complaint(shell, meagre):
    found = shell("traffic", *meagre, "--filter", "double", "--json")
    assert 1 == found.code
    assert all("declares 4000" in one["complaint"] for one in found.json)


def test_another_label_is_counted_when_asked_for(shell, toys):
    assert "double[n=100000]" in shell("traffic", *toys, "--filter", "double", "--label", "S1").out


def test_an_unknown_kernel_ends_with_2(shell, toys):
    found = shell("traffic", *toys, "--filter", "tripel")
    assert 2 == found.code
    assert "did you mean triple" in found.err
