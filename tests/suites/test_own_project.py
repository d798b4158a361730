"""asv in a user's repository: the suites that `prism-bench init --with asv` wrote measure the catalogue of a commit."""

import json
import os
import subprocess
import sys

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.extensions.init.project import new_project
from tests.wheel import HOUSE

SECONDS = {"fmaf": 1e-6, "sinf": 2e-6}


@pytest.fixture
def project(tmp_path):
    """A project with asv's files and scripted times, and a function that runs Python in it as asv's processes do."""
    root, script = tmp_path / "mine", tmp_path / "script.json"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    new_project(root, ["asv"])
    changes = {"sinf": {"seconds": SECONDS["sinf"]}}
    script.write_text(json.dumps({"saxpy*": {"seconds": SECONDS["fmaf"], "with_source": changes}}))
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("ASV", "GIT_"))}
    settings = {"BACKEND": "null", "LABELS": "S0", "PROCESSES": "1"}
    ours = {f"PRISM_BENCH_ASV_{name}": value for name, value in settings.items()}
    environment = {**bare, **ours, SCRIPT: str(script), "HOME": str(tmp_path), "PYTHONPATH": str(HOUSE)}

    def run(*words, **more):
        done = subprocess.run(
            [sys.executable, *words], cwd=root, env=environment | more, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.root = root
    return run


def samples(project, **environment):
    """The middle of the cold times of the only case."""
    program = "from suites.measured import measure_commit as m; print(sorted(m()['samples']['cold_time'].items()))"
    ((name, times),) = eval(project("-c", program, **environment))
    return name, sorted(times)[len(times) // 2]


def test_the_cases_are_those_of_the_configured_catalogue(project):
    listed = json.loads(project("-m", "suites.listing"))
    assert [["saxpy[n=100000]", "S0"], ["saxpy[n=67108864]", "S1"]] == listed["cases"]
    classes = project("-c", "from suites.times import Cold; print(Cold.version, Cold.params)")
    assert "cold_time [['saxpy[n=100000]']]" in classes


def test_the_tree_of_the_commit_is_measured_not_the_working_tree(project):
    """asv checks a commit out into its environment."""
    own = project.root / ".asv" / "env" / "one" / "project"
    (own / ".git").mkdir(parents=True)
    new_project(own)
    source = own / "kernels" / "example" / "saxpy.cu"
    source.write_text(source.read_text().replace("fmaf(", "sinf(0.0f) + fmaf("))
    where = {"ASV_ENV_DIR": str(own.parent)}
    assert ("saxpy[n=100000]", pytest.approx(SECONDS["sinf"], rel=0.1)) == samples(
        project, **where, ASV_ENV_TYPE="virtualenv"
    )


def test_asv_takes_the_files(project):
    root = project.root
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm1"],
    ):
        subprocess.run(["git", "-C", root, *words], check=True, capture_output=True)
    project("-m", "asv", "machine", "--yes", "--machine", "box")
    commit = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    where = ("-E", f"existing:{sys.executable}", "--set-commit-hash", commit, "--launch-method", "forkserver")
    project("-m", "asv", "run", "--bench", "Cold", "--show-stderr", *where, ASV_PYTHONPATH=str(HOUSE))
    (path,) = root.glob("reports/asv/box/*-existing-*.json")
    result = json.loads(path.read_text())
    row = dict(zip(result["result_columns"], result["results"]["times.Cold.track_cold_time"], strict=False))
    assert [pytest.approx(SECONDS["fmaf"], rel=0.1)] == row["result"]
