"""A project with a remote, its clones, and what they keep."""

import json
import subprocess

import pytest

WHO = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")


def git(folder, *words):
    done = subprocess.run(["git", *WHO, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Clone:
    """A clone of a project with a remote, where nightly runs are made."""

    def __init__(self, folder, shell, monkeypatch, to):
        self.folder, self._shell, self._monkeypatch, self.to = folder, shell, monkeypatch, to

    def history(self, action, *words, to=None):
        self._monkeypatch.chdir(self.folder)
        return self._shell("store", action, "--to", to or self.to, *words)

    def write(self, name, text):
        path = self.folder / "reports" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def kept(self):
        found = (path for path in self.folder.glob("reports/*/**/*") if path.is_file())
        return {path.relative_to(self.folder / "reports").as_posix(): path.read_text() for path in found}


def alerts(*names):
    sent = {"slack": {"when": "2026-11-20", "state": "s", "severity": 1.0}}
    entry = {"source": "gate", "kind": "slower", "subject": "x", "message": "m", "told": sent}
    return json.dumps({"version": 1, "entries": dict.fromkeys(names, entry)})


@pytest.fixture(name="remote")
def remote_project(tmp_path):
    """A project with one commit, as a bare repository."""
    first = tmp_path / "first"
    (first / "reports/runs/box").mkdir(parents=True)
    (first / "reports/runs/box/old.json.gz").write_text("kept with the sources")
    git(first, "init", "--quiet", "--initial-branch", "main")
    git(first, "add", "--all")
    git(first, "commit", "--quiet", "--message", "Begin")
    git(tmp_path, "clone", "--quiet", "--bare", str(first), "remote.git")
    return tmp_path / "remote.git"
