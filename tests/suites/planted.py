"""A small project of two commits for asv: the newer one has a kernel that the older one lacks."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.copied_package import keep_compiled

HOUSE = Path(__file__).resolve().parent.parent.parent
KEPT = ("basic/vector_add", "tensor/dot_product", "transformer/gelu_activation")
PLANTED = "aardvark"  # sorts before every other name, so that each later position shifts
SECONDS = {"aardvark": 4e-3, "vector_add": 1e-3, "dot_product": 2e-3, "gelu_activation": 3e-3}


@dataclass(frozen=True)
class Project:
    """`newer` is the checkout that asv runs in, `older` a second working tree at the commit before it."""

    newer: Path
    older: Path
    environment: dict

    def commit(self, tree: Path) -> str:
        return self._output("git", "-C", str(tree), "rev-parse", "HEAD").strip()

    def measure(self, tree: Path) -> dict:
        """Let asv measure the commit of `tree`, whose package stands in for the installed one; asv's result file."""
        # With `existing`, what is installed is what Python finds; asv hands on ASV_PYTHONPATH and nothing else.
        where = ("-E", f"existing:{sys.executable}", "--set-commit-hash", self.commit(tree))
        what = ("--bench", "Cold", "--bench", "Wall", "--launch-method", "forkserver")
        self.asv("run", "--record-samples", "--show-stderr", *where, *what, ASV_PYTHONPATH=str(tree))
        (path,) = self.newer.glob(f"reports/asv/box/{self.commit(tree)[:8]}-existing-*.json")
        return json.loads(path.read_text())

    def asv(self, *words: str, **environment: str) -> str:
        """What asv prints; an error with its words where it does not end with 0."""
        return self._output(sys.executable, "-m", "asv", *words, **environment)

    def output_and_errors(self, *words: str, **environment: str) -> tuple[str, str]:
        """Return what asv prints to its standard output and to its standard error."""
        done = self._done(sys.executable, "-m", "asv", *words, **environment)
        return done.stdout, done.stderr

    def _output(self, *command, **environment):
        return self._done(*command, **environment).stdout

    def _done(self, *command, **environment):
        done = subprocess.run(
            command, cwd=self.newer, env={**self.environment, **environment}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done


def plant(folder: Path) -> Project:
    """The project in `folder`, with scripted times on the null backend and a home of its own for asv's machine file."""
    newer, older = folder / "newer", folder / "older"
    (folder / "script.json").write_text(json.dumps({f"{name}*": {"seconds": s} for name, s in SECONDS.items()}))
    project = Project(newer, older, _environment(folder))
    _furnish(newer)
    project._output("git", "init", "--quiet", "--initial-branch", "main")
    _commit(project, "Older")
    for ending in (".py", ".cu"):
        shutil.copy(HOUSE / f"kernels/basic/vector_add{ending}", newer / f"kernels/basic/{PLANTED}{ending}")
    _commit(project, "Newer")
    project._output("git", "worktree", "add", "--quiet", str(older), "HEAD~")
    project.asv("machine", "--yes", "--machine", "box")
    return project


def _environment(folder):
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("ASV", "GIT_", "PYTHON"))}
    settings = {"BACKEND": "null", "LABELS": "S0", "PROCESSES": "1"}
    ours = {f"PRISM_BENCH_ASV_{name}": value for name, value in settings.items()}
    return {**bare, **ours, "PRISM_BENCH_NULL": str(folder / "script.json"), "HOME": str(folder)}


def _furnish(checkout):
    """The files that asv needs of this project, and three of its kernels."""
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("prism_bench", "suites", "kernels/include", "kernels/peers"):
        shutil.copytree(HOUSE / name, checkout / name, ignore=leave)
    keep_compiled(checkout / "prism_bench")
    for name in ("asv.conf.json", *(f"kernels/{kept}{ending}" for kept in KEPT for ending in (".py", ".cu"))):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOUSE / name, checkout / name)


def _commit(project, message):
    who = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    project._output("git", "add", "prism_bench", "kernels", "suites", "asv.conf.json")
    project._output("git", *who, "commit", "--quiet", "--message", message)
