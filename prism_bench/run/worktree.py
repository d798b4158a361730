"""A commit as a folder: checked out in a git worktree of its own, and gone again afterwards."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prism_bench.errors import UsageError


def full_hash(commit: str, repository: Path) -> str:
    """The hash that `commit` (a hash, branch, tag, `HEAD~1`) stands for; a UsageError where it stands for none."""
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if done.returncode:
        raise UsageError(
            f"'{commit}' is no record, no folder, no kernel of the catalogue and no commit of {repository}"
        )
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str, repository: Path) -> Iterator[Path]:
    """The folder of a worktree at `commit`, removed at the end; a UsageError where git does not make one."""
    with tempfile.TemporaryDirectory(prefix="prism-bench-") as folder:
        path = Path(folder) / "tree"
        done = _git(repository, "worktree", "add", "--detach", "--quiet", str(path), full_hash(commit, repository))
        if done.returncode:
            raise UsageError(f"git makes no worktree of {commit}: {done.stderr.strip()}")
        try:
            yield path
        finally:
            _git(repository, "worktree", "remove", "--force", str(path))


def _git(repository, *words):
    try:
        return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"git does not answer here ({error}); records and folders can be compared without it"
        ) from None
