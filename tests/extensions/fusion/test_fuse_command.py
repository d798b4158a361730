"""`prism-bench fuse --write`: writes what is declared, prints what would change, and leaves nothing half-written."""

import shutil

import pytest

from prism_bench.compilation import compilers
from prism_bench.errors import BackendUnavailable
from prism_bench.io.files import default_folder

NAME = "fused_kl_complexity"
FILES = {f"{NAME}.{suffix}" for suffix in ("cu", "ptx", "json")}


@pytest.fixture
def folder(tmp_path):
    """A catalogue with one program and nothing generated."""
    kernels = tmp_path / "kernels"
    (kernels / "active_inference").mkdir(parents=True)
    shutil.copy(default_folder() / "active_inference" / f"{NAME}.py", kernels / "active_inference")
    shutil.copy(default_folder() / "active_inference" / f"{NAME}.cu", kernels / "active_inference")
    return kernels


def states(outcome):
    return {file["path"].rpartition("/")[2]: file["state"] for file in outcome.json["files"]}


def written(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*/generated/*") if path.is_file()}


def test_what_is_kept_in_the_repository_is_what_is_declared(shell):
    outcome = shell("fuse", "--write", "--dry-run")
    assert (0, "") == (outcome.code, outcome.err)
    assert f"same     {default_folder()}/active_inference/generated/{NAME}.cu" in outcome.out


def test_a_program_is_written_and_then_the_same(shell, folder):
    assert 0 == shell("fuse", "--write", "--catalogue", folder).code
    first = written(folder)
    assert f"{NAME}.cu" in first
    repeated = shell("fuse", "--write", NAME, "--catalogue", folder, "--json")
    assert {"same"} == set(states(repeated).values())
    assert first == written(folder)


def test_a_dry_run_writes_nothing_and_ends_with_1(shell, folder):
    outcome = shell("fuse", "--catalogue", folder, "--write", "--dry-run", "--json")
    assert (1, {f"{NAME}.cu": "new"}) == (outcome.code, states(outcome))
    assert {} == written(folder)


def test_a_change_by_hand_is_told_and_taken_back(shell, folder):
    shell("fuse", "--write", "--catalogue", folder)
    before = written(folder)
    (folder / "active_inference" / "generated" / f"{NAME}.cu").write_text("// mine\n")
    outcome = shell("fuse", "--catalogue", folder, "--write", "--dry-run", "--json")
    assert (1, "changed") == (outcome.code, states(outcome)[f"{NAME}.cu"])
    assert 0 == shell("fuse", "--write", "--catalogue", folder).code
    assert before == written(folder)


def test_files_without_a_program_are_told(shell, folder):
    shell("fuse", "--write", "--catalogue", folder)
    (folder / "active_inference" / f"{NAME}.py").unlink()
    outcome = shell("fuse", "--write", "--catalogue", folder, "--json")
    assert 1 == outcome.code
    assert {*outcome.json["left_over"]} == {str(path) for path in (folder / "active_inference" / "generated").iterdir()}


def test_ptx_is_kept_with_what_made_it(shell, folder):
    try:
        compilers.load()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert 0 == shell("fuse", "--write", "--catalogue", folder).code
    assert set(written(folder)) == FILES
    assert 0 == shell("fuse", "--catalogue", folder, "--write", "--dry-run").code
    (folder / "active_inference" / "generated" / f"{NAME}.ptx").write_text("// mine\n")
    outcome = shell("fuse", "--catalogue", folder, "--write", "--dry-run", "--json")
    assert (1, "changed") == (outcome.code, states(outcome)[f"{NAME}.ptx"])


def test_ptx_of_an_older_source_is_stale_whatever_the_compiler(shell, folder):
    try:
        compilers.load()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    shell("fuse", "--write", "--catalogue", folder)
    facts = folder / "active_inference" / "generated" / f"{NAME}.json"
    facts.write_text(facts.read_text().replace('"NVRTC ', '"NVRTC 1').replace('"source": "', '"source": "0'))
    outcome = shell("fuse", "--catalogue", folder, "--write", "--dry-run", "--json")
    assert (1, "stale") == (outcome.code, states(outcome)[f"{NAME}.ptx"])
    facts.write_text("{")
    unreadable = shell("fuse", "--catalogue", folder, "--write", "--dry-run")
    assert 1 == unreadable.code
    assert "remove it and run that again" in unreadable.err


def test_without_a_compiler_the_sources_are_still_written(shell, folder, monkeypatch):
    def missing():
        raise BackendUnavailable(compilers.missing())

    monkeypatch.setattr(compilers, "load", missing)
    outcome = shell("fuse", "--write", "--catalogue", folder, "--json")
    assert (0, compilers.missing()) == (outcome.code, outcome.json["no_ptx"])
    assert {f"{NAME}.cu"} == set(written(folder))


def test_an_unknown_program_is_a_usage_error(shell):
    outcome = shell("fuse", "fused_kl_complexty", "--write", "--dry-run")
    assert 2 == outcome.code
    assert "unknown program 'fused_kl_complexty'; did you mean fused_kl_complexity" in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "a.json.gz"),
        ("--label", "S0"),
        ("--backend", "emulator"),
        ("--output", "a.png"),
    ],
    ids=lambda words: words[0],
)
def test_options_of_savings_are_refused(shell, folder, words):
    outcome = shell("fuse", "--write", "--catalogue", folder, *words)
    assert (2, f"prism-bench: {words[0]}: leave it out with --write\n") == (outcome.code, outcome.err)
    assert {} == written(folder)


def test_nothing_is_planned_where_nothing_is_written(shell):
    outcome = shell("fuse", "--dry-run")
    assert (2, "prism-bench: --dry-run: it is for --write\n") == (outcome.code, outcome.err)
