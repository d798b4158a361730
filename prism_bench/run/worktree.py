"""Commits of a repository: what a name means, the commit to compare with, and a worktree that is removed again."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.io.files import is_bundled, temporary_folder

_USUAL = ("main", "master", "trunk", "develop")  # default branches, where the repository does not name its own
_UNTRACKED = "?? "  # how git's list begins a file that it does not know
_KEPT = {".prism-bench", "__pycache__"}  # folders of files that programs make, wherever they are


def repository_of(folder: Path) -> Path:
    """Return the top folder of the repository that `folder` is in; a UsageError where it is in none."""
    require_history(folder)
    done = _git(folder, "rev-parse", "--show-toplevel")
    if done.returncode:
        raise UsageError(f"{folder} is in no git repository; records and folders can be compared without one")
    return Path(done.stdout.strip()).resolve()


def in_repository(folder: Path) -> str:
    """Return the path of a folder from the top of its repository, where others have it, too; as it is without one."""
    try:
        return folder.resolve().relative_to(repository_of(folder.resolve())).as_posix()
    except UsageError:
        return str(folder)


def require_history(catalogue: Path) -> None:
    """Raise a UsageError for the catalogue inside an installed package: the repository around it does not know it."""
    if is_bundled(catalogue):
        raise UsageError("the bundled catalogue has no history: run 'prism-bench init', or give --catalogue FOLDER")


def full_hash(commit: str, repository: Path) -> str:
    """Return the hash that `commit` (a hash, branch, tag, `HEAD~1`) names; a UsageError where it names none."""
    if found := _hash(commit, repository):
        return found
    shallow = f"; the clone is shallow, so it may lack the commit: {_DEEPEN}" if _is_shallow(repository) else ""
    raise UsageError(
        f"'{commit}' is no record, no folder, no kernel of the catalogue and no commit of {repository}{shallow}"
    )


def base_commit(repository: Path, results: Sequence[Path] = ()) -> str:
    """Return the merge base of `HEAD` and the default branch: what a branch is compared with.

    New files below the folders `results` are no change. Raise a UsageError where there is no default branch, no common
    commit, or no change to compare.
    """
    branch = default_branch(repository)
    base = _git(repository, "merge-base", "HEAD", branch)
    if base.returncode:
        cure = _DEEPEN if _is_shallow(repository) else "name the commit to compare with"
        raise UsageError(f"HEAD and {branch} have no common commit here: {cure}")
    commit = base.stdout.strip()
    if commit == full_hash("HEAD", repository) and not is_changed(repository, results):
        raise UsageError(f"HEAD is in {branch} and nothing is changed: name a commit to compare with, such as HEAD~1")
    return commit


def default_branch(repository: Path) -> str:
    """Return the branch that the remote names as its default, else one of the usual names that exists.

    A remote's branch comes before the local one, which may be older. A UsageError where none exists.
    """
    head = _git(repository, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if not head.returncode and _hash(head.stdout.strip(), repository):
        return head.stdout.strip()
    chosen = _git(repository, "config", "init.defaultBranch").stdout.strip()
    names = [chosen] if chosen else []
    names += [name for name in _USUAL if name != chosen]
    for name in [*(f"origin/{name}" for name in names), *names]:
        if _hash(name, repository):
            return name
    raise UsageError(f"{repository} has no default branch ({', '.join(names)}): name the commit to compare with")


def commits_between(good: str, bad: str, repository: Path) -> list[str]:
    """Return the hashes from `good` to `bad`, the oldest first, along the first parents of `bad`.

    Raise a UsageError where `good` is not an ancestor of `bad` on that line.
    """
    first, last = full_hash(good, repository), full_hash(bad, repository)
    listed = _git(repository, "rev-list", "--first-parent", last).stdout.split()
    if first not in listed:
        cure = _DEEPEN if _is_shallow(repository) else "give an older commit of the branch first"
        raise UsageError(f"{good} is not among the first parents of {bad}: {cure}")
    return listed[: listed.index(first) + 1][::-1]


def subjects_of(commits: Sequence[str], repository: Path) -> dict[str, str]:
    """Return the first line of each commit's message."""
    done = _git(repository, "log", "--no-walk=unsorted", "--format=%H %s", *commits) if commits else None
    lines = done.stdout.splitlines() if done else []
    return {line[:40]: line[41:] for line in lines}


def is_changed(repository: Path, results: Sequence[Path] = ()) -> bool:
    """Return whether the working tree differs from `HEAD`, files that git does not know included.

    Those below the folders `results`, and what we and Python keep next to sources, are no sources: a record that was
    just measured does not change what is measured.
    """
    listed = _git(repository, "status", "--porcelain", "-z", "--untracked-files=all").stdout.split("\0")
    for entry in filter(None, listed):
        path = repository / entry.removeprefix(_UNTRACKED)
        made = _KEPT & set(path.relative_to(repository).parts) or any(path.is_relative_to(one) for one in results)
        if not entry.startswith(_UNTRACKED) or not made:
            return True
    return False


@contextmanager
def checked_out(commit: str, repository: Path) -> Iterator[Path]:
    """Yield the folder of a worktree at `commit`, submodules included, and remove it at the end.

    Raise a UsageError where git does not make one.
    """
    with temporary_folder("prism-bench-") as folder:
        path = folder / "tree"
        done = _git(repository, "worktree", "add", "--detach", "--quiet", str(path), full_hash(commit, repository))
        if done.returncode:
            raise UsageError(f"git makes no worktree of {commit}: {done.stderr.strip()}")
        try:
            _add_submodules(path, repository, commit)
            yield path
        finally:
            _git(repository, "worktree", "remove", "--force", "--force", str(path))
            _git(repository, "worktree", "prune")


def _add_submodules(tree: Path, repository: Path, commit: str) -> None:
    """Check submodules out: from the clones that the working tree has, from their own addresses where it has none."""
    paths = _submodules(tree)
    if not paths:
        return
    cloned = {name: repository / path for name, path in paths.items() if (repository / path / ".git").exists()}
    settings = [word for name, path in cloned.items() for word in ("-c", f"submodule.{name}.url={path}")]
    done = _git(tree, "-c", "protocol.file.allow=always", *settings, "submodule", "update", "--init", "--quiet")
    if done.returncode:
        raise UsageError(f"{commit}: git does not check out its submodules: {_last_line(done.stderr)}")


def _submodules(tree: Path) -> Mapping[str, str]:
    """Return the paths of the submodules by name."""
    if not (tree / ".gitmodules").is_file():
        return {}
    listed = _git(tree, "config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$").stdout
    rows = [line.partition(" ") for line in listed.splitlines()]
    return {key.removeprefix("submodule.").removesuffix(".path"): path for key, _, path in rows}


_DEEPEN = "run 'git fetch --unshallow', or check out with 'fetch-depth: 0'"


def _hash(commit: str, repository: Path) -> str:
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    return "" if done.returncode else done.stdout.strip()


def _is_shallow(repository: Path) -> bool:
    return _git(repository, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"


def _last_line(text: str) -> str:
    return next(iter(reversed(text.strip().splitlines())), "git gave no reason")


def _git(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        cure = "install git; " if isinstance(error, FileNotFoundError) else ""
        raise UsageError(
            f"git does not answer here ({error}): {cure}records and folders can be compared without it"
        ) from None
