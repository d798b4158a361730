"""Commands that compare builds, on a backend that runs references: what it does not run is not measured."""

import shutil
import subprocess

import pytest

from prism_bench.extensions.ci.commands import nightly
from prism_bench.run import builds
from prism_bench.workflows import pairs as pair_study
from tests.cli.conftest import TOYS

NUMPY = ("--backend", "numpy_reference")
CASE = "triple[n=1000]"


@pytest.fixture
def git(tmp_path):
    """A function for git in a repository with the toys as its kernels, in one commit."""

    def run(*words):
        command = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    shutil.copytree(TOYS / "arith", tmp_path / "kernels" / "arith", ignore=shutil.ignore_patterns("__pycache__"))
    run("init", "-q", "-b", "main")
    run("add", ".")
    run("commit", "-q", "-m", "first")
    return run


@pytest.fixture
def untimed(monkeypatch):
    """Nothing may be measured."""

    def refuse(*_, **__):
        raise AssertionError("it measured")

    monkeypatch.setattr(builds, "interleaved", refuse)
    monkeypatch.setattr(pair_study, "interleaved", refuse)


def changed(tmp_path, name, old, new):
    path = tmp_path / "kernels" / "arith" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def is_refused_at_once(found):
    """The one sentence, with what is known without a GPU, and 2."""
    assert found.code == 2, found.out + found.err
    last = found.err.splitlines()[-1]
    assert "runs the NumPy reference" in last
    assert "prism-bench compile --against" in last and "prism-bench verify --backend emulator" in last


def test_compare_measures_no_reference_where_a_source_alone_changed(shell, git, tmp_path, untimed):
    changed(tmp_path, "triple.cu", "3.0f", "4.0f")
    found = shell("compare", "HEAD", "--catalogue", "kernels", *NUMPY)
    is_refused_at_once(found)
    assert "nothing is measured" in found.err and "triple" in found.err


def test_compare_measures_no_reference_where_a_launch_alone_changed(shell, git, tmp_path, untimed):
    changed(tmp_path, "triple.py", "block=128", "block=64")
    is_refused_at_once(shell("compare", "HEAD", "--catalogue", "kernels", *NUMPY))


def test_compare_of_two_kernels_needs_their_code(shell, git, untimed):
    is_refused_at_once(shell("compare", "double", "double:by_adding", "--catalogue", "kernels", *NUMPY))


def test_compare_times_a_reference_that_changed_and_names_it(shell, git, tmp_path):
    changed(tmp_path, "triple.py", "3 * x", "x + x + x")
    changed(tmp_path, "double.cu", "2.0f", "3.0f")
    words = ("compare", "HEAD", "--catalogue", "kernels", *NUMPY, "--processes", "1")
    found = shell(*words)
    assert "Times are those of the NumPy reference" in found.out
    assert "the source or launch of double" in " ".join(found.out.split())
    plain = shell(*words, "--json").json
    assert plain["timed"] == "NumPy reference"
    roles = {one["case"]: one["changed"] for one in plain["cases"]}
    assert roles == {CASE: ["reference"]}


def test_compare_of_equal_trees_is_as_before(shell, git, untimed):
    assert shell("compare", "HEAD", "--catalogue", "kernels", *NUMPY).code == 0


def test_bisect_measures_no_reference_where_sources_alone_changed(shell, git, tmp_path, untimed):
    first = git("rev-parse", "HEAD")
    for number in (4, 5):
        changed(tmp_path, "triple.cu", f"{number - 1}.0f", f"{number}.0f")
        git("commit", "-q", "-a", "-m", str(number))
    found = shell("bisect", first, "HEAD", CASE, "--catalogue", "kernels", *NUMPY)
    is_refused_at_once(found)


def test_bisect_folds_commits_of_one_reference(shell, git, tmp_path, monkeypatch):
    first = git("rev-parse", "HEAD")
    changed(tmp_path, "triple.cu", "3.0f", "4.0f")
    git("commit", "-q", "-a", "-m", "source")
    changed(tmp_path, "triple.py", "3 * x", "x + x + x")
    git("commit", "-q", "-a", "-m", "reference")
    monkeypatch.setattr("prism_bench.cli.bisect._MOST", 1)
    words = ("bisect", first, "HEAD", CASE, "--catalogue", "kernels", *NUMPY)
    found = shell(*words, "--processes", "1", "--json")
    assert "3 commits, 2 of different code" in found.err
    assert "Times are those of the NumPy reference" in found.err
    assert (found.json["timed"], [len(node["commits"]) for node in found.json["nodes"]]) == ("NumPy reference", [2, 1])


def test_tune_needs_a_device(shell, toys):
    found = shell("tune", *toys, *NUMPY)
    assert found.code == 2
    assert "runs references and launches no kernel" in found.err


def without_gpu(monkeypatch):
    sentence = "backend numpy_reference, because no NVIDIA driver answers; references work without it"
    done = subprocess.CompletedProcess([], 0, f"<backend> {sentence}\n", "")
    monkeypatch.setattr(nightly.subprocess, "run", lambda *_, **__: done)


def test_a_nightly_run_without_a_gpu_times_no_reference(shell, toys, tmp_path, monkeypatch):
    without_gpu(monkeypatch)
    found = shell("nightly", *toys)
    is_refused_at_once(found)
    assert "no NVIDIA driver answers" in found.err
    assert not (tmp_path / "reports").exists()


def test_a_backend_that_is_named_is_no_accident(monkeypatch):
    for words in (NUMPY, ("--backend", "null"), ("--fleet", "local")):
        assert nightly.parsed(words).backend
    assert nightly.parsed(()).backend is None
