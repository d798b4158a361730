"""`prism-bench compile`: exit codes, the stored table, JSON, and what is said where there is no compiler."""

from pathlib import Path

import pytest

from prism_bench.compilation import bindings, nvrtc_version
from prism_bench.errors import BackendUnavailable
from prism_bench.studies.compile_table import ARCHITECTURES, read_table, write_table

ZOO = Path(__file__).parent.parent / "zoo"
HOPPER = ("--arch", "90")


@pytest.fixture
def nvrtc():
    """Skips, saying what to install, where there is no offline compiler."""
    try:
        return nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_the_toys_compile_for_every_architecture_and_end_with_0(nvrtc, shell, toys):
    found = shell("compile", *toys)
    assert 0 == found.code
    assert "registers (spilled bytes) of 3 kernels" in found.out
    assert all(f"sm_{architecture}" in found.out for architecture in ARCHITECTURES)


def test_json_holds_the_entries_and_nothing_else(nvrtc, shell, toys):
    found = shell("compile", *toys, *HOPPER, "--filter", "double", "--json")
    assert (0, []) == (found.code, found.json["complaints"])
    assert {"doubled", "doubled_by_adding"} == {one["entry"] for one in found.json["entries"]}
    assert {"90"} == {one["architecture"] for one in found.json["entries"]}


def test_growth_against_the_stored_table_ends_with_1_and_is_told(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    assert 0 == shell("compile", *toys, "--table", table, "--update").code
    assert 0 == shell("compile", *toys, "--table", table).code
    text = table.read_text().splitlines()
    kernel, entry, architecture, _, *rest = text[1].split(",")
    table.write_text("\n".join([text[0], ",".join([kernel, entry, architecture, "1", *rest]), *text[2:]]))
    found = shell("compile", *toys, "--table", table)
    assert 1 == found.code
    assert f"{kernel}: {entry} on sm_{architecture} takes " in found.out
    assert "registers, 1 before" in found.out


def test_an_update_by_a_variants_name_keeps_its_kernels_other_entries(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    shell("compile", *toys, *HOPPER, "--table", table, "--update")
    whole = read_table(table)
    assert 0 == shell("compile", *toys, *HOPPER, "--table", table, "--update", "--filter", "double:by_adding").code
    assert whole == read_table(table)


def test_an_update_of_one_architecture_keeps_the_others(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    shell("compile", *toys, "--table", table, "--update")
    whole = read_table(table)
    write_table(table, [row for row in whole if row.architecture != "90"])
    assert 0 == shell("compile", *toys, *HOPPER, "--table", table, "--update").code
    assert whole == read_table(table)


def test_a_source_that_does_not_compile_ends_with_1_and_the_others_are_told(nvrtc, shell):
    found = shell("compile", "--catalogue", ZOO, *HOPPER, "--json")
    assert 1 == found.code
    assert ["does_not_compile"] == [one["kernel"] for one in found.json["complaints"]]
    assert "double" in {one["kernel"] for one in found.json["entries"]}


@pytest.mark.parametrize("words", [("--arch", "hopper"), ("--filter", "tripel")])
def test_a_mistake_ends_with_2_and_one_line(shell, toys, words):
    found = shell("compile", *toys, *words)
    assert (2, 1) == (found.code, found.err.count("\n"))
    assert words[1] in found.err


def test_without_a_compiler_it_says_what_to_install(shell, toys, monkeypatch):
    def missing():
        raise BackendUnavailable(bindings.MISSING)

    monkeypatch.setattr(bindings, "load", missing)
    found = shell("compile", *toys)
    assert 0 != found.code
    assert "install prism-bench[compile]" in found.err
