"""`compare` and `bisect` in odd repositories: one sentence with the cure, and nothing is left."""

import shutil
import subprocess
from pathlib import Path

import pytest

CASE = ("--filter", "triple[n=1000]")
GOOD = ("--filter", "double[n=1000]")
QUICK = ("--backend", "null")


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path, toys):
    """A repository whose first commit has no catalogue and whose second one has; the third does not build a kernel."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "empty")
    shutil.copytree(toys[1], root / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".gitignore").write_text("__pycache__/\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "kernels")
    (root / "kernels" / "arith" / "triple.py").write_text("spec = 1 +\n")
    git(root, "commit", "-q", "-a", "-m", "broken")
    return root


def no_git(root, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    return root


def no_repository(root, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(root.parent.parent))
    shutil.rmtree(root / ".git")
    return root


def shallow(root, monkeypatch):
    git(root.parent, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    return root.parent / "shallow"


def odd_branch(root, monkeypatch):
    git(root, "branch", "-q", "-m", "main", "odd")
    return root


def broken_base(root, monkeypatch):
    """All specs of the first commit of a branch are broken, and repaired in the working tree."""
    whole = {path: path.read_text() for path in root.glob("kernels/*/*.py")}
    for path in whole:
        path.write_text("spec = 1 +\n")
    git(root, "commit", "-q", "-a", "-m", "all broken")
    for path, text in whole.items():
        path.write_text(text)
    return root


def broken_tree(root, monkeypatch):
    for path in root.glob("kernels/*/*.py"):
        path.write_text("spec = 1 +\n")
    return root


def as_it_is(root, monkeypatch):
    return root


@pytest.mark.parametrize(
    ("made", "words", "cure"),
    [
        (no_git, ("compare",), "git does not answer here"),
        (no_git, ("bisect", "HEAD~1", *CASE), "git does not answer here"),
        (no_repository, ("compare",), "is in no git repository; records and folders can be compared without one"),
        (no_repository, ("bisect", "HEAD~1", *CASE), "is in no git repository"),
        (shallow, ("compare", "HEAD~1"), "run 'git fetch --unshallow', or check out with 'fetch-depth: 0'"),
        (shallow, ("bisect", "HEAD~1", *GOOD), "run 'git fetch --unshallow', or check out with 'fetch-depth: 0'"),
        (odd_branch, ("compare",), "has no default branch (main, master, trunk, develop): name the commit"),
        (as_it_is, ("compare",), "HEAD is in main and nothing is changed: name a commit to compare with"),
        (as_it_is, ("compare", "HEAD~2"), "that commit has no folder kernels, where the catalogue is now"),
        (as_it_is, ("compare", "HEAD~9"), "is no record, no folder, no kernel of the catalogue and no commit"),
        (broken_base, ("compare", "HEAD"), "HEAD does not build: kernels/arith/double.py: line 1: SyntaxError"),
        (broken_base, ("compare", "HEAD", "HEAD~1"), "; name another commit"),
        (broken_tree, ("compare", "HEAD~1"), "working tree does not build: "),
        (broken_tree, ("compare", "HEAD~1"), "kernels/arith/double.py: line 1: SyntaxError: "),
        (broken_tree, ("compare", "HEAD~1"), "; correct it"),
        (as_it_is, ("compare", "HEAD~1", "--filter", "triple"), "does not build: 'triple' cannot be used: "),
        (as_it_is, ("bisect", "HEAD~1", *CASE), "'triple' cannot be used: "),
        (as_it_is, ("bisect", "HEAD~2", *GOOD), "does not build the case: begin and end with"),
    ],
)  # fmt: skip
def test_one_sentence_names_the_cure_and_nothing_is_left(shell, project, monkeypatch, made, words, cure):
    root = made(project, monkeypatch)
    before = sorted(root.rglob("*"))
    command, *rest = words
    found = shell(command, *rest, "--catalogue", root / "kernels", *QUICK)
    assert (2, "backend null: no device (scripted times)") == (found.code, found.out.strip())
    (sentence,) = [line for line in found.err.splitlines() if line.startswith("prism-bench: ")]
    assert cure in sentence
    assert not {path for path in set(root.rglob("*")) - set(before) if "__pycache__" not in path.parts}
    if made not in (no_git, no_repository):
        assert 1 == len(git(root, "worktree", "list").splitlines())
    assert not Path("reports").exists()
