"""`prism-bench compare` on a branch of somebody's repository, and the comment that it makes."""

import shutil
import subprocess

import pytest

ONCE = ("--backend", "null", "--processes", "1")


@pytest.fixture
def project(shell, tmp_path, toys):
    """A repository with a catalogue and its configuration, in the current folder."""
    shutil.copytree(toys[1], tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "prism-bench.toml").write_text('catalogue = "kernels"\nstorage = "kept"\n')
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "one")):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def commented(shell, project):
    """A function that compares and returns the exit code, the comparison and the comment."""

    def compared(*words):
        found = shell("compare", *words, *ONCE, "--json")
        (project / "comparison.json").write_text(found.out)
        return found.code, found.json, shell("comment", "comparison.json").out

    return compared


def test_a_spec_that_cannot_be_used_any_more_is_broken(commented, project):
    (project / "kernels" / "arith" / "triple.py").write_text("spec = 1 +\n")
    code, found, text = commented("main")
    assert 1 == code
    (case,) = [one for one in found["cases"] if one["case"] == "triple[n=1000]"]
    assert case["verdict"] == "not compared"
    assert case["reason"].startswith("working tree does not build: kernels/arith/triple.py: line 1: SyntaxError")
    assert "### Prism Bench: nothing was measured: 3 cases have the same machine code; 1 broken\n" in text
    assert "**Not compared**\n\n- triple\\[n=1000\\]: working tree does not build" in text


def test_a_kernel_that_was_deleted_is_a_note(commented, project):
    for name in ("triple.py", "triple.cu"):
        (project / "kernels" / "arith" / name).unlink()
    code, found, text = commented("main")
    assert (0, ["on one side only: triple[n=1000] (1)"]) == (code, found["notes"])
    assert "### Prism Bench: nothing was measured: 3 cases have the same machine code\n" in text


def test_a_broken_spec_is_broken_where_other_cases_are_measured_too(commented, project):
    (project / "kernels" / "arith" / "triple.py").write_text("spec = 1 +\n")
    code, _, text = commented("main", "--all")
    assert 1 == code
    assert "1 broken" in text.splitlines()[2]


def test_the_comments_command_measures_the_same_again(commented, project):
    shutil.copytree(project / "kernels", project / "gpu" / "kernels")
    _, found, text = commented(
        "kernels", "gpu/kernels", "--catalogue", project / "gpu" / "kernels", "-l", "S0", "--metric", "cold_time"
    )
    assert {"catalogue": "gpu/kernels", "labels": ["S0"], "metric": "cold_time"} == found["options"]
    assert "compare --catalogue gpu/kernels --label S0 --metric cold_time -- " in text
    assert {"catalogue": None, "labels": [], "metric": None} == commented("kernels", "gpu/kernels")[1]["options"]


def test_a_record_that_was_just_measured_changes_nothing(shell, project):
    assert 0 == shell("run", "triple", *ONCE, "--no-energy").code
    assert list(project.glob("kept/runs/*/*.json.gz"))
    found = shell("compare", *ONCE)
    assert 2 == found.code
    assert "HEAD is in main and nothing is changed: name a commit to compare with" in found.err
    (project / "kernels" / "arith" / "new.cu").write_text("")
    assert "nothing is changed" not in shell("compare", *ONCE).err
