"""`prism-bench compile`: exit codes, the stored table, JSON, and what is said where there is no compiler."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.compilation import compilers, nvrtc_version
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install
from prism_bench.record import store
from prism_bench.spec.peer import Library
from prism_bench.workflows.compile_table import ARCHITECTURES, read_table, write_table
from tests.report.synthetic import case_result, record_of

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
    table = tmp_path / "reports" / "compile" / "resources.csv"
    assert 0 == shell("compile", *toys, "--write").code
    assert 0 == shell("compile", *toys).code
    text = table.read_text().splitlines()
    kernel, entry, architecture, _, *rest = text[1].split(",")
    table.write_text("\n".join([text[0], ",".join([kernel, entry, architecture, "1", *rest]), *text[2:]]))
    found = shell("compile", *toys)
    assert 1 == found.code
    assert f"{kernel}: {entry} on sm_{architecture} takes " in found.out
    assert "registers, 1 before" in found.out


def test_an_update_by_a_variants_name_keeps_its_kernels_other_entries(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    shell("compile", *toys, *HOPPER, "--against", table, "--write")
    whole = read_table(table)
    assert 0 == shell("compile", *toys, *HOPPER, "--against", table, "--write", "--filter", "double:by_adding").code
    assert whole == read_table(table)


def test_an_update_of_one_architecture_keeps_the_others(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    shell("compile", *toys, "--against", table, "--write")
    whole = read_table(table)
    write_table(table, [row for row in whole if row.architecture != "90"])
    assert 0 == shell("compile", *toys, *HOPPER, "--against", table, "--write").code
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
        raise BackendUnavailable(compilers.missing())

    monkeypatch.setattr(compilers, "load", missing)
    found = shell("compile", *toys)
    assert 0 != found.code
    assert pip_install("compile") in found.err


@pytest.fixture
def history(tmp_path, toys):
    """A repository with the toys, whose triple was changed since the only commit."""
    kernels = Path(shutil.copytree(toys[1], tmp_path / "history" / "kernels"))
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")):
        subprocess.run(["git", "-C", kernels.parent, *words], check=True)
    source = kernels / "arith" / "triple.cu"
    source.write_text(source.read_text().replace("3.0f * x[i]", "sqrtf(x[i])"))
    (kernels / "arith" / "double.cu").write_text("// a remark\n" + (kernels / "arith" / "double.cu").read_text())
    return "compile", "--catalogue", kernels, *HOPPER, "--against"


def test_against_a_commit_exactly_the_changed_kernels_are_reported(nvrtc, shell, history):
    found = shell(*history, "HEAD", "--json")
    (change,) = found.json["changes"]
    assert (0, "triple", "90", []) == (found.code, change["kernel"], change["architecture"], found.json["complaints"])
    (entry,) = change["code_difference"]
    assert ("tripled", True) == (entry["entry"], entry["registers"][0] <= entry["registers"][1])
    assert "machine code of 1 kernel changed since HEAD" in shell(*history, "HEAD").out
    assert 1 == shell(*history, "HEAD", "--fail-on-change").code


def test_against_a_table_the_changed_resources_are_reported(nvrtc, shell, toys, history):
    assert 0 == shell("compile", *toys, *HOPPER, "--against", "old.csv", "--write").code
    found = shell(*history, "old.csv", "--json")
    assert ({"triple"}, 0) == ({one["kernel"] for one in found.json["changes"]}, found.code)


def test_against_a_record_the_changed_cases_are_reported(nvrtc, shell, history):
    code = {"sass": "of another kernel", "architecture": "sm_90", "registers": 300, "spill_bytes": 0,
            "compiler": "NVRTC 1.0"}  # fmt: skip
    case = replace(case_result("triple"), name="triple[n=1000]", code=code)
    path = store.save(record_of(case), Path("old.json.gz"))
    (change,) = shell(*history, path, "--json").json["changes"]
    assert ("triple[n=1000]", 300) == (change["kernel"], change["code_difference"][0]["registers"][0])
    assert "; other machine code: NVRTC 1.0 -> " in change["code_note"]


def test_a_language_that_is_not_installed_is_one_line_and_its_kernels_are_listed(nvrtc, shell, monkeypatch):
    monkeypatch.setattr(Library, "is_installed", lambda self: False)
    languages = Path(__file__).parents[1] / "compilation" / "languages"
    found = shell("compile", "--catalogue", languages / "catalogue", *HOPPER)
    assert (0, 1) == (found.code, found.out.count(f"Triton is not installed ({pip_install('triton', anywhere=True)})"))
    more = shell("compile", "--catalogue", languages / "more", *HOPPER, "--against", "HEAD", "--json")
    left = {one["kernel"]: one["message"] for one in more.json["left_out"]}
    assert {"scaled:cute", "scaled:numba", "scaled:tile", "scaled:warp"} == set(left)
    assert pip_install("tile", anywhere=True) in left["scaled:tile"]


def test_spills_that_grew_end_with_1(nvrtc, shell, history):
    source = history[2] / "arith" / "triple.cu"
    text = source.read_text()
    body = "volatile float a[64]; for (int k = 0; k < 64; ++k) a[k] = x[k]; y[i] = a[n % 64];"
    source.write_text(text.replace("y[i] = sqrtf(x[i]);", f"{{ {body} }}"))
    found = shell(*history, "HEAD", "--json")
    grew = any(one["spills_grew"] for one in found.json["changes"])
    assert int(grew) == found.code


@pytest.mark.parametrize(("word", "problem"), [("nonsense", "no commit of"), ("no.csv", "there is no such table")])
def test_against_nothing_is_one_sentence(shell, history, word, problem):
    found = shell(*history, word)
    assert (2, True) == (found.code, problem in found.err)


def test_only_a_table_is_written(shell, toys):
    found = shell("compile", *toys, "--write", "--against", "HEAD")
    message = "prism-bench: --against HEAD: --write writes a table; name one that ends with .csv\n"
    assert (2, message) == (found.code, found.err)
