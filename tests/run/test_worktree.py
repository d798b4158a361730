"""Commits as folders."""

import subprocess
from pathlib import Path

import pytest

from prism_bench.errors import UsageError
from prism_bench.run.builds import (
    base_commit,
    checked_out,
    default_branch,
    full_hash,
    in_repository,
    is_changed,
    repository_of,
)


def git(repository, *words):
    command = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Two commits of one file."""
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for content in ("one", "two"):
        (root / "kernel.cu").write_text(content)
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", content)
    return root


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
    with pytest.raises(UsageError, match=": install git; "):
        full_hash("HEAD", tmp_path)


def test_a_folder_of_a_repository_leads_to_its_top(repository, tmp_path_factory):
    (repository / "a" / "b").mkdir(parents=True)
    assert repository.resolve() == repository_of(repository / "a" / "b")
    with pytest.raises(UsageError, match="is in no git repository; records and folders can be compared"):
        repository_of(tmp_path_factory.mktemp("plain"))


def test_a_folder_is_named_as_its_repository_has_it(repository, tmp_path_factory, monkeypatch):
    (repository / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(repository / "a")
    assert "a/b" == in_repository(Path("b")) == in_repository(repository / "a" / "b")
    plain = tmp_path_factory.mktemp("plain")
    assert str(plain) == in_repository(plain)


def test_a_branch_is_compared_with_where_it_began(repository):
    began = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "faster")
    for branch in ("faster", "main"):
        git(repository, "checkout", "-q", branch)
        git(repository, "commit", "-q", "--allow-empty", "-m", branch)
    git(repository, "checkout", "-q", "faster")
    assert began == base_commit(repository)


def test_uncommitted_changes_are_compared_with_head_and_none_with_nothing(repository):
    with pytest.raises(UsageError, match="HEAD is in main and nothing is changed: name a commit"):
        base_commit(repository)
    (repository / "kernel.cu").write_text("three")
    assert git(repository, "rev-parse", "HEAD") == base_commit(repository)


def test_results_are_no_change_and_every_other_new_file_is(repository):
    results = repository / "kept"
    for path in ("kept/runs/one.json.gz", ".prism-bench/asv/x", "kernels/__pycache__/a.pyc"):
        (repository / path).parent.mkdir(parents=True)
        (repository / path).write_text("")
    assert is_changed(repository) and not is_changed(repository, [results])
    with pytest.raises(UsageError, match="HEAD is in main and nothing is changed"):
        base_commit(repository, [results])
    (repository / "new name.cu").write_text("")
    assert is_changed(repository, [results])
    (repository / "new name.cu").unlink()
    git(repository, "add", "kept")
    assert is_changed(repository, [results]), "a record that is to be committed is a change"


def test_the_default_branch_is_the_remotes(repository, tmp_path):
    git(repository, "branch", "-m", "main", "trunk")
    assert "trunk" == default_branch(repository)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    assert "origin/trunk" == default_branch(clone)
    git(repository, "branch", "-m", "trunk", "odd")
    with pytest.raises(UsageError, match="has no default branch .*main.*: name the commit"):
        default_branch(repository)


def test_a_shallow_clone_names_the_cure(repository, tmp_path):
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    with pytest.raises(UsageError, match="the clone is shallow.*git fetch --unshallow"):
        full_hash("HEAD~1", clone)
    git(clone, "commit", "-q", "--allow-empty", "-m", "mine")
    git(repository, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(clone, "fetch", "-q", "--depth", "1", "origin", "main")
    with pytest.raises(UsageError, match="no common commit here: run 'git fetch --unshallow'"):
        base_commit(clone)


def test_submodules_are_checked_out_with_the_commit_from_the_clones_at_hand(repository, tmp_path):
    whole = tmp_path / "whole"
    git(tmp_path, "init", "-q", "-b", "main", str(whole))
    git(whole, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "lib")
    git(whole, "commit", "-q", "-m", "with a submodule")
    repository.rename(tmp_path / "elsewhere")  # its address does not answer any more
    with checked_out("HEAD", whole) as tree:
        assert "two" == (tree / "lib" / "kernel.cu").read_text()
    assert not tree.exists() and 1 == worktrees(whole)
    assert "" == git(whole, "status", "--porcelain")


def test_a_submodule_that_cannot_be_had_is_one_sentence(repository, tmp_path):
    whole = tmp_path / "whole"
    git(tmp_path, "init", "-q", "-b", "main", str(whole))
    git(whole, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "lib")
    git(whole, "commit", "-q", "-m", "with a submodule")
    git(whole, "submodule", "deinit", "-q", "--force", "lib")
    repository.rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="HEAD: git does not check out its submodules: "), checked_out("HEAD", whole):
        pass
    assert 1 == worktrees(whole)
