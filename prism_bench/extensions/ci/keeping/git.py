"""Git of the repository around a folder, for what is kept on a branch: never asks for a password, never hangs."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.errors import UsageError

_SECONDS = 600
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_FOLDER = "or keep the history in a folder: --to FOLDER"


@dataclass(frozen=True)
class GitDone:
    """What a git command ended with: its exit code, output and errors."""

    code: int
    output: bytes
    errors: str

    @property
    def reason(self) -> str:
        """The line of the errors that names the cause."""
        lines = self.errors.strip().splitlines()
        telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
        return telling[0].strip() if telling else "git gave no reason"

    @property
    def text(self) -> str:
        """The output without blanks around it."""
        return self.output.decode(errors="replace").strip()


@dataclass(frozen=True)
class Git:
    """Git in `folder`, with additions to the environment."""

    folder: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    def run(self, *words: str, stdin: bytes = b"") -> GitDone:
        """Run a command whatever it ends with; raise a UsageError where there is no git or it does not answer."""
        settings = {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **os.environ, **_ENVIRONMENT, **self.extra}
        command = ["git", "-C", str(self.folder), *words]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, env=settings, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"git does not answer here ({error}): install git, {_FOLDER}") from None
        return GitDone(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def __call__(self, *words: str, stdin: bytes = b"") -> GitDone:
        """Run a command that must end with 0; raise a UsageError with git's reason where it does not."""
        done = self.run(*words, stdin=stdin)
        if done.code:
            raise UsageError(f"git {words[0]} failed: {done.reason}")
        return done

    def require_repository(self) -> None:
        """Raise a UsageError where the folder is in no repository."""
        if self.run("rev-parse", "--git-dir").code:
            raise UsageError(f"{self.folder} is in no git repository: run this in a clone, {_FOLDER}")

    def require_remote(self, remote: str) -> None:
        """Raise a UsageError where the repository has no such remote."""
        if self.run("remote", "get-url", remote).code:
            raise UsageError(f"the repository has no remote {remote}: 'git remote add {remote} URL', {_FOLDER}")
