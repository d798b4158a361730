"""Commands in a project: catalogue, labels, backend and storage by its configuration, from any folder of it."""

import json
import shutil
from pathlib import Path

import pytest

from prism_bench.cli import app, options
from prism_bench.cli.commands import ConfiguredDefaults
from prism_bench.record import store
from tests.cli.conftest import TOYS
from tests.report.synthetic import record_of
from tests.workflows.test_why_of import of_size, profiled

KEYS = 'catalogue = "gpu"\nlabels = ["S1"]\nbackend = "null"\nstorage = "kept"\nbudgets = "promises"\nmachine = "box"\n'


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """A project whose current folder is below its root."""
    shutil.copytree(TOYS, tmp_path / "gpu", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "prism-bench.toml").write_text(KEYS)
    (tmp_path / "src").mkdir()
    monkeypatch.delenv("PRISM_BENCH_MACHINE", raising=False)
    return tmp_path


@pytest.fixture
def below(shell, configured, monkeypatch):
    """A function that runs a command in the project's folder `src`."""
    monkeypatch.chdir(configured / "src")
    return shell


def test_a_command_uses_the_project_from_a_folder_below(below, configured):
    listed = below("list", "--json")
    assert {"S1"} == {case["label"] for case in listed.json}
    assert "catalogue: ../gpu (../prism-bench.toml)" == listed.err.strip()
    measured = below("run", "double", "--processes", "1", "--no-energy", "--json")
    assert 0 == measured.code, measured.err
    (path,) = configured.glob("kept/runs/box/*.json.gz")
    record = store.read(path)
    assert ("gpu", "null", "box") == (record.catalogue, record.backend, record.machine["id"])
    assert 0 == below("show").code


def test_an_option_wins(below, configured):
    (configured / "other" / "arith").mkdir(parents=True)
    for name in ("triple.py", "triple.cu"):
        shutil.copy(TOYS / "arith" / name, configured / "other" / "arith")
    listed = below("list", "--json", "--catalogue", "../other", "--label", "S0")
    assert {"triple"} == {case["kernel"] for case in listed.json}
    assert "" == listed.err
    below("run", "--catalogue", "../other", "--processes", "1", "--no-energy", "--runs", "mine", "--label", "S0")
    assert list(Path("mine/box").iterdir())
    assert not (configured / "kept" / "runs").exists()


def test_budgets_and_baselines_are_where_they_are_configured(below, configured):
    below("run", "double", "--processes", "1", "--no-energy")
    made = below("check", "--accept", "--json")
    assert 0 == made.code, made.err
    (kept,) = (configured / "promises").glob("*.baseline.toml")
    assert kept.resolve() == Path(made.json["path"]).resolve()
    (configured / "promises" / kept.name.replace(".baseline", "")).write_text("odd = 1")
    assert "unknown key" in below("check").err or "is missing" in below("check").err


def test_a_catalogue_that_does_not_exist_is_named(below, configured):
    (configured / "prism-bench.toml").write_text('catalogue = "gone"')
    found = below("list")
    assert 2 == found.code
    assert found.err.startswith("prism-bench: ../prism-bench.toml: catalogue: there is no folder ")
    assert 0 == below("list", "--catalogue", "../gpu").code
    (configured / "prism-bench.toml").write_text("catalog = 1")
    assert 2 == below("list").code
    assert 0 == below("list", "--help").code


def test_a_folder_of_kernels_that_is_not_used_is_pointed_out(shell, tmp_path):
    assert "" == shell("list", "vector_add").err
    shutil.copytree(TOYS, tmp_path / "kernels")
    found = shell("list", "vector_add")
    assert 0 == found.code
    assert (
        "catalogue: the bundled one; --catalogue kernels, or a configuration by 'prism-bench init', uses yours"
        in found.err
    )
    assert json.loads(shell("list", "vector_add", "--json").out)


def test_the_catalogue_of_an_installed_package_is_never_used_silently(shell, tmp_path, monkeypatch):
    package = tmp_path / "site" / "prism_bench"
    shutil.copytree(TOYS, package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("prism_bench.io.files._PACKAGE", package)
    found = shell("list", "double", "--json")
    assert "double" in {case["kernel"] for case in found.json}
    cure = "'prism-bench init' sets up yours, or --catalogue FOLDER names it"
    assert f"catalogue: the bundled one; {cure}\n" == found.err
    assert "" == shell("list", "double", "--catalogue", package / "kernels").err
    for words in (("compare",), ("compare", "main"), ("bisect", "main", "double[n=1000]")):
        refused = shell(*words, "--backend", "null")
        assert 2 == refused.code
        assert "the bundled catalogue has no history: run 'prism-bench init', or give --catalogue" in refused.err


def test_labels_narrow_what_a_command_would_choose(below, configured):
    def chosen(default):
        return options.chosen_labels(None, default)

    assert ("S0",) == options.chosen_labels(["S0"])
    (configured / "prism-bench.toml").write_text('labels = ["S0", "S1"]')
    assert [("S0", "S1"), ("S0",), ("S0", "S1")] == [chosen(one) for one in (("S0", "S1", "S2"), ("S0",), ("S2",))]


@pytest.mark.parametrize("words", [
    ("profile", "a.csv", "--output", "b"), ("tune", "a.json", "--output", "b.json"),
    ("compare", "a.json.gz", "b.json.gz", "--records", "c"),
], ids=lambda words: words[0])  # fmt: skip
def test_a_place_where_nothing_would_be_written_is_refused(shell, tmp_path, words):
    for name in ("a.json.gz", "b.json.gz"):
        (tmp_path / name).write_bytes(b"")
    done = shell(*words)
    assert (2, True) == (done.code, f"{words[-2]} {words[-1]}: leave it out" in done.err), done.err


def test_profiles_of_a_project_explain_a_case(shell, tmp_path):
    """They are next to the records that are named, as for the site."""
    (tmp_path / "prism-bench.toml").write_text('storage = "kept"\n')
    case = of_size("S1", 1, 100)
    for folder, measured in (("runs", case), ("profiles", profiled(case))):
        store.save(record_of(measured), tmp_path / f"kept/{folder}/nvidia-h200/20260101T000000Z-a.json.gz")
    done = shell("show", "--why", "k", "--json")
    assert (0, True) == (done.code, bool(done.json["counters"])), done.err


def test_every_default_below_reports_is_below_the_storage(below, configured):
    """Whatever a command keeps goes where the project keeps it: no option is forgotten."""
    import typer

    seen = 0
    for command in typer.main.get_command(app).commands.values():
        kept = {one.name: one.default for one in command.params if str(one.default).startswith("reports")}
        defaults = ConfiguredDefaults({one.name: one.default for one in command.params})
        for name, default in kept.items():
            assert str(Path("../kept").joinpath(*Path(default).parts[1:])) == defaults[name]
        seen += len(kept)
    assert seen > 15
