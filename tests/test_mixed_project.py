"""Triton, a PyTorch operator and an unchanged CUDA file of a user's folder, through every command of the wheel."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from tests.mixed_project import CASES, write_project

# Twice as long, with other machine code, once a change is in the source; the operator's code is not known.
CHANGED = {
    CASES["triton"]: ("num_warps\": 8", "kernels/rows/scale.triton.py", "num_warps\": 4"),
    CASES["sources"]: ("(x + blockIdx.x * cols + c) * 1.0f", "src/scale_rows.cu", "(x + blockIdx.x * cols + c)"),
    CASES["operator"]: ("square().clone()", "kernels/rows/squared_relu.py", "square()"),
}  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent
WHO = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Project:
    """The folder as a repository, with the wheel's command line on a backend."""

    def __init__(self, site, root, backend, **environment):
        self.root, self.backend = root, backend
        asv = {f"PRISM_BENCH_ASV_{name}": value for name, value in
               {"BACKEND": backend, "LABELS": "S0", "PROCESSES": "1"}.items()}  # fmt: skip
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("ASV", "GIT_"))}
        more = {"PRISM_BENCH_MACHINE": "box", "HOME": str(root.parent), **WHO, **asv, **environment}
        self.environment = {**bare, "PYTHONPATH": _path(site), "ASV_PYTHONPATH": _path(site), **more}
        write_project(root)
        self("init", "--with", "asv")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.measure()
        self.git("checkout", "-qb", "change")
        for word, name, old in CHANGED.values():
            path = root / name
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, word))

    def __call__(self, *words, codes=(0,), module="prism_bench"):
        done = subprocess.run([sys.executable, "-m", module, *words], cwd=self.root, env=self.environment,
                              capture_output=True, text=True, timeout=240)  # fmt: skip
        assert done.returncode in codes, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def git(self, *words):
        done = subprocess.run(["git", *words], cwd=self.root, env=self.environment, check=True, capture_output=True,
                              text=True)  # fmt: skip
        return done.stdout

    def measure(self):
        """Run the catalogue as the nightly run does."""
        self("run", "--backend", self.backend, "--processes", "3", "--no-peers")

    def asv(self):
        """Return what asv keeps of the commit."""
        self("machine", "--yes", "--machine", "box", module="asv")
        commit = self.git("rev-parse", "HEAD").strip()
        self("run", "--bench", "Cold", "--show-stderr", "-E", f"existing:{sys.executable}", "--set-commit-hash", commit,
             "--launch-method", "forkserver", module="asv")  # fmt: skip
        (path,) = (self.root / "reports/asv/box").glob(f"{commit[:8]}*.json")
        return path.read_text()


def _path(site):
    """The wheel first; behind it what the tests themselves were given, such as packages in a folder of their own."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([str(site), *(one for one in given if one and Path(one).resolve() != ROOT)])


@pytest.fixture(scope="module")
def project(installed, tmp_path_factory):
    """The project on the null backend, on which a change takes twice as long."""
    root = tmp_path_factory.mktemp("mixed")
    behaviours = {
        name: {"seconds": 1e-6, "sass": "one", "with_source": {word: {"seconds": 2e-6, "sass": "two"}}}
        for name, (word, _, _) in CHANGED.items()
    }
    script = root.parent / "script.json"
    script.write_text(json.dumps(behaviours))
    return Project(installed.site, root, "null", **{SCRIPT: str(script)})


def cases_of(root):
    """Return the cases of the newest record by name."""
    path = max((root / "reports" / "runs" / "box").glob("*.json.gz"))
    return {case["name"]: case for case in json.loads(gzip.decompress(path.read_bytes()))["cases"]}


def test_run_has_them_all_with_their_languages(project):
    timed = {name: case for name, case in cases_of(project.root).items() if case["measurements"]}
    assert set(CASES.values()) == set(timed)
    languages = {name: timed[case]["code"]["language"] for name, case in CASES.items()}
    assert {"scale": "cuda", "triton": "triton", "sources": "cuda", "operator": "callable"} == languages


def test_compare_finds_each_change_in_its_own_source(project):
    done = project("compare", "--backend", "null", "--all", "--json", codes=(1,))
    verdicts = {one["case"]: one["verdict"] for one in json.loads(done.stdout)["cases"]}
    assert {**dict.fromkeys(CHANGED, "slower"), CASES["scale"]: "same"} == verdicts


def test_check_and_the_site_have_them(project):
    project.git("commit", "-qam", "two")
    project.measure()
    checked = json.loads(project("check", "--json", codes=(1,)).stdout)
    worse = {
        check["case"]
        for part in checked["parts"]
        for check in part["checks"]
        if check["answer"] in ("slower", "degraded")
    }
    assert set(CHANGED) == worse
    project("report")
    view = json.loads((project.root / "reports/site/operations/scale.json").read_text())
    assert ["Triton", "CUDA C++"] == [row["title"] for row in view["workloads"][0]["rows"]]
    for kernel in ("scale_rows", "squared_relu"):
        assert (project.root / f"reports/site/kernels/{kernel}.html").is_file()


def test_asv_takes_them(project):
    kept = project.asv()
    assert all(case in kept for case in CASES.values())


@pytest.mark.gpu
def test_a_gpu_takes_them_through_every_command(installed, tmp_path_factory):
    for module in ("torch", "triton"):
        pytest.importorskip(module)
    project = Project(installed.site, tmp_path_factory.mktemp("mixed_gpu"), "cuda")
    timed = {name: case for name, case in cases_of(project.root).items() if case["measurements"]}
    assert set(CASES.values()) == set(timed)
    assert {"ok"} == {case["status"] for case in timed.values()}
    compared = json.loads(project("compare", "--all", "--json", codes=(0, 1, 3)).stdout)
    assert set(CASES.values()) == {one["case"] for one in compared["cases"]}
    project.git("commit", "-qam", "two")
    project.measure()
    checked = json.loads(project("check", "--json", codes=(0, 1, 3)).stdout)
    assert {check["case"] for part in checked["parts"] for check in part["checks"]} >= set(CASES.values())
    project("report")
    for kernel in ("scale", "scale_rows", "squared_relu"):
        assert (project.root / f"reports/site/kernels/{kernel}.html").is_file()
    kept = project.asv()
    assert all(case in kept for case in CASES.values())
