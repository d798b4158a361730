"""`prism-bench bisect` over a history of the package and toy kernels on the null backend."""

import shutil
import subprocess
from pathlib import Path

import pytest

import prism_bench
from prism_bench.backends.null import SCRIPT

CASE = "triple[n=1000]"


@pytest.fixture
def history(tmp_path, toys, monkeypatch):
    """Return six commits: all but the fifth change the kernel, the fourth makes it 1.5 times as slow."""
    monkeypatch.delenv(SCRIPT, raising=False)
    root = tmp_path / "repository"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(prism_bench.__file__).parent, root / "prism_bench", ignore=unwanted)
    shutil.copytree(toys[1], root / "kernels", ignore=unwanted)
    source, null = root / "kernels" / "arith" / "triple.cu", root / "prism_bench" / "backends" / "null.py"

    def git(*words):
        command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "main")
    commits, original = [], source.read_text()
    for number in range(6):
        if number != 4:
            source.write_text(original.replace("3", f"{number + 3}"))
        if number == 3:
            null.write_text(null.read_text().replace('"seconds", 1e-6', '"seconds", 1.5e-6'))
        (root / "note").write_text(str(number))
        git("add", ".")
        git("commit", "-q", "-m", f"commit {number}")
        commits.append(git("rev-parse", "HEAD"))
    return root, commits


def words(root, *more):
    return "bisect", *more, "--backend", "null", "--catalogue", root / "kernels"


def test_the_commit_that_made_a_case_slower_is_named(shell, history, tmp_path):
    root, commits = history
    found = shell(*words(root, commits[0], "HEAD", "--case", CASE, "--state", tmp_path / "state.json"), "--json")
    assert 1 == found.code, found.err
    assert [[commits[3], commits[4]]] == found.json["culprits"]
    assert "6 commits, 5 of different code" in found.err
    assert 1.5 == pytest.approx(found.json["nodes"][-1]["ratio"], rel=0.05)
    again = shell(*words(root, commits[0], "HEAD", "--case", CASE, "--state", tmp_path / "state.json"))
    assert f"{CASE}: changed by {commits[3][:10]} commit 3" in again.out


def test_commits_that_did_not_change_the_code_are_no_suspects(shell, history):
    root, commits = history
    found = shell(*words(root, commits[3], commits[4], "--case", CASE))
    assert 0 == found.code
    assert "all commits have the same machine code" in found.out


def test_a_search_that_ends_undecided_ends_with_2(shell, history):
    root, commits = history
    found = shell(*words(root, commits[0], "HEAD", "--case", CASE, "--most-measurements", "1"))
    assert 2 == found.code
    assert "undecided, the most measurements ended the search" in found.out


@pytest.mark.parametrize(
    ("options", "problem"),
    [(("HEAD~1", "HEAD"), "bisect needs --case"), (("HEAD", "HEAD~1", "--case", CASE), "HEAD is not among the first"),
     (("nonsense", "HEAD", "--case", CASE), "'nonsense' is no record"),
     (("HEAD~1", "HEAD", "--case", "double"), "choose one of double[n=1000], ")],
)  # fmt: skip
def test_a_mistake_is_one_sentence(shell, history, options, problem):
    found = shell(*words(history[0], *options))
    assert 2 == found.code
    assert problem in found.err
