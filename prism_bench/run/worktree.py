"""Git worktree of a commit: checked out in a temporary folder, and removed afterwards."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prism_bench.errors import UsageError


def full_hash(commit: str, repository: Path) -> str:
    """Return the hash that `commit` (a hash, branch, tag, `HEAD~1`) names; a UsageError where it names none."""
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if done.returncode:
        raise UsageError(
            f"'{commit}' is no record, no folder, no kernel of the catalogue and no commit of {repository}"
        )
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str, repository: Path) -> Iterator[Path]:
    """Yield the folder of a worktree at `commit` and remove it at the end; a UsageError where git does not make one."""
    with tempfile.TemporaryDirectory(prefix="prism-bench-") as folder:
        path = Path(folder) / "tree"
        done = _git(repository, "worktree", "add", "--detach", "--quiet", str(path), full_hash(commit, repository))
        if done.returncode:
            raise UsageError(f"git makes no worktree of {commit}: {done.stderr.strip()}")
        try:
            yield path
        finally:
            _git(repository, "worktree", "remove", "--force", str(path))


def _git(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"git does not answer here ({error}); records and folders can be compared without it"
        ) from None
