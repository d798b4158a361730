"""Commits as folders."""

import subprocess

import pytest

from prism_bench.errors import UsageError
from prism_bench.run.worktree import checked_out, full_hash


@pytest.fixture
def repository(tmp_path):
    """Two commits of one file."""

    def git(*words):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for content in ("one", "two"):
        (tmp_path / "kernel.cu").write_text(content)
        git("add", ".")
        git("commit", "-q", "-m", content)
    return tmp_path


def worktrees(repository):
    command = ["git", "-C", str(repository), "worktree", "list"]
    return len(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())


def test_a_commit_is_there_while_it_is_needed_and_gone_afterwards(repository):
    with checked_out("HEAD~1", repository) as tree:
        assert "one" == (tree / "kernel.cu").read_text()
        assert 2 == worktrees(repository)
    assert not tree.exists()
    assert 1 == worktrees(repository)


def test_the_checkout_itself_is_left_alone(repository):
    (repository / "kernel.cu").write_text("mine")
    with checked_out("HEAD", repository):
        assert "mine" == (repository / "kernel.cu").read_text()


def test_a_failure_inside_leaves_no_worktree(repository):
    with pytest.raises(KeyboardInterrupt), checked_out("HEAD", repository):
        raise KeyboardInterrupt
    assert 1 == worktrees(repository)


def test_a_name_stands_for_its_hash(repository):
    assert 40 == len(full_hash("HEAD~1", repository))
    assert full_hash("HEAD", repository) != full_hash("HEAD~1", repository)


@pytest.mark.parametrize("word", ["nothing", "--all", "HEAD~9", ""])
def test_what_is_no_commit_is_said(repository, word):
    with pytest.raises(UsageError, match=f"'{word}' is no record, no folder, no kernel of the catalogue and no commit"):
        full_hash(word, repository)


def test_outside_a_repository_nothing_is_a_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="'HEAD' is no record"):
        full_hash("HEAD", tmp_path)


def test_without_git_the_rest_still_works_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="git does not answer here .* records and folders can be compared without it"):
        full_hash("HEAD", tmp_path)
