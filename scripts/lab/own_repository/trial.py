"""A git repository that is made for a measurement, and commands of this package in it, with their seconds."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from lab.emulator_truth import machine, new_pool
from prism_bench.errors import ResultsError
from prism_bench.record.identity import MACHINE, slug

_LONGEST = 3600.0  # seconds after which a command hangs
_WHO = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in {"NAME": "Prism Bench", "EMAIL": "prism-bench@localhost"}.items()
}


@dataclass(frozen=True)
class TrialCommand:
    """A command that ended: its words, exit code and seconds, and what it printed."""

    command: str
    exit_code: int
    seconds: float
    output: str
    errors: str

    @property
    def plain(self) -> Any:
        """The output as JSON; a ResultsError with the command's errors where it printed none."""
        try:
            return json.loads(self.output)
        except ValueError:
            reason = self.errors.strip().splitlines()[-1:] or ["it printed no JSON"]
            raise ResultsError(f"{self.command} ended with {self.exit_code}: {reason[0]}") from None


class TrialRepository:
    """A new git repository in `folder`, with the branch `main`; `site` is where the package is found."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None, site: Path = REPOSITORY) -> None:
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.folder = folder
        self._environment = {**os.environ, **_WHO, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})}
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *words: str) -> TrialCommand:
        """Run git; a ResultsError with its reason where it fails."""
        return _required(self._run(["git", *words], "git"))

    def write(self, name: str, text: str) -> None:
        """Write a file of the repository."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace a text in a file; a ResultsError where the file does not have it."""
        text = (self.folder / name).read_text()
        if old not in text:
            raise ResultsError(f"{name} has no {old!r} to replace")
        self.write(name, text.replace(old, new))

    def commit(self, message: str) -> TrialCommand:
        """Commit everything that is not ignored."""
        self.git("add", "--all")
        return self.git("commit", "--quiet", "--message", message)

    def command(self, *words: str) -> TrialCommand:
        """Run `prism-bench` with these words, whatever it ends with."""
        return self._run([sys.executable, "-m", "prism_bench", *words], "prism-bench")

    def required(self, *words: str) -> TrialCommand:
        """Run `prism-bench` with these words; a ResultsError where it ends with another code than 0."""
        return _required(self.command(*words))

    def _run(self, command: list[str], name: str) -> TrialCommand:
        said = shlex.join([name, *command[command.index("prism_bench") + 1 if name != "git" else 1 :]])
        began = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=_LONGEST
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResultsError(f"{said}: {error}") from None
        return TrialCommand(said, done.returncode, round(time.perf_counter() - began, 2), done.stdout, done.stderr)


def _required(done: TrialCommand) -> TrialCommand:
    if done.exit_code:
        reason = (done.errors.strip() or done.output.strip() or "no reason").splitlines()[-1]
        raise ResultsError(f"{done.command} ended with {done.exit_code}: {reason}")
    return done


def machine_of(backend: str) -> str:
    """Return the name of the machine, for a folder of reports; the device is opened in another process alone."""
    given = os.environ.get(MACHINE)
    if given:
        return slug(given)
    with new_pool(1) as pool:
        return slug(pool.submit(machine, backend).result())
