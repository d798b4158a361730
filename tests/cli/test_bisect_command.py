"""`prism-bench bisect` over a history of the package and toy kernels on the null backend."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from prism_bench.analysis.compare.noise import Floor, Noise, keep_noise
from prism_bench.backends.null import SCRIPT, open_backend
from prism_bench.cli import bisect
from prism_bench.record.identity import machine
from prism_bench.run import PROTOCOL
from prism_bench.workflows import bisecting
from tests.cli.conftest import TOYS
from tests.copied_package import copy_package

CASE, LARGE = "triple[n=1000]", "triple[n=2000]"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Six commits: all but the fifth change the kernel, the fourth makes it 1.5 times as slow. No test changes them."""
    root = tmp_path_factory.mktemp("bisect") / "repository"
    null = copy_package(root) / "backends" / "null.py"
    shutil.copytree(TOYS, root / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    spec = root / "kernels" / "arith" / "triple.py"
    both = '"S0": Workload(n=1000), "S2": Workload(n=2000)'
    spec.write_text(spec.read_text().replace('"S0": Workload(n=1000)', both))
    source = root / "kernels" / "arith" / "triple.cu"

    def git(*words):
        command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "main")
    commits, original = [], source.read_text()
    for number in range(6):
        if number != 4:
            source.write_text(original.replace("3", f"{number + 3}"))
        if number == 3:
            null.write_text(null.read_text().replace('"seconds", 1e-6', '"seconds", 1.5e-6'))
        (root / "note").write_text(str(number))
        git("add", ".")
        git("commit", "-q", "-m", f"commit {number}")
        commits.append(git("rev-parse", "HEAD"))
    return root, commits


@pytest.fixture
def history(repository, monkeypatch):
    """Return the folder of the repository and its commits; nothing is scripted."""
    monkeypatch.delenv(SCRIPT, raising=False)
    return repository


def words(root, *more):
    return "bisect", *more, "--backend", "null", "--catalogue", root / "kernels"


def test_the_commit_that_made_a_case_slower_is_named(shell, history, tmp_path):
    root, commits = history
    found = shell(*words(root, commits[0], "HEAD", CASE, "--state", tmp_path / "state.json"), "--json")
    assert 1 == found.code, found.err
    assert [[commits[3], commits[4]]] == found.json["culprits"]
    assert "6 commits, 5 of different code" in found.err
    assert 1.5 == pytest.approx(found.json["nodes"][-1]["ratio"], rel=0.05)
    again = shell(*words(root, commits[0], "HEAD", CASE, "--state", tmp_path / "state.json"))
    assert f"{CASE}: changed by {commits[3][:10]} commit 3" in again.out


def test_commits_that_did_not_change_the_code_are_no_suspects(shell, history):
    root, commits = history
    found = shell(*words(root, commits[3], commits[4], CASE))
    assert 0 == found.code
    assert "all commits have the same machine code" in found.out


def test_a_search_that_ends_undecided_ends_with_2(shell, history, monkeypatch):
    root, commits = history
    monkeypatch.setattr(bisect, "_MOST", 1)
    found = shell(*words(root, commits[0], "HEAD", CASE))
    assert 2 == found.code
    assert "undecided, the most measurements ended the search" in found.out


@pytest.mark.parametrize(
    ("options", "problem"),
    [(("HEAD~1", "HEAD"), "bisect needs one case after both commits"),
     (("HEAD", "HEAD~1", CASE), "HEAD is not among the first"),
     (("nonsense", "HEAD", CASE), "'nonsense' is no record"),
     (("HEAD~1", "HEAD", "double"), "choose one of double[n=1000], ")],
)  # fmt: skip
def test_a_mistake_is_one_sentence(shell, history, options, problem):
    found = shell(*words(history[0], *options))
    assert 2 == found.code
    assert problem in found.err


def test_a_commit_that_is_wrong_is_left_out(shell, history, script):
    root, commits = history
    script({"triple*": {"with_source": {"5.0f": {"wrong": True}}}})
    found = shell(*words(root, commits[1], commits[3], CASE, "--state", "state.json", "--json"))
    assert 1 == found.code, found.err
    (change,) = found.json["changes"]
    assert ([commits[3]], [commits[2]]) == (change["commits"], change["or_before"])
    assert "1 could not be; most likely" in found.err
    again = shell(*words(root, commits[1], commits[3], CASE, "--state", "state.json"))
    head = f"changed by {commits[3][:10]} commit 3, or one of 1 before it that could not be measured ("
    assert head in again.out
    assert f"commit 2 (not measured: {CASE} on null: y[" in again.out


@pytest.mark.parametrize("end", [0, 1])
def test_the_ends_have_to_be_right(shell, history, script, end):
    root, commits = history
    script({"triple*": {"with_source": {("3.0f", "4.0f")[end]: {"wrong": True}}}})
    found = shell(*words(root, commits[0], commits[1], CASE))
    assert 2 == found.code
    assert CASE not in found.out
    assert (f"{commits[0][:12]} has to be measured" in found.err) == (end == 0)
    assert f"{CASE} at " in found.err


def test_a_case_of_a_label_that_is_not_configured_is_measured(shell, history):
    root, commits = history
    Path("prism-bench.toml").write_text(f'catalogue = "{root}/kernels"\nlabels = ["S0"]\n')
    found = shell(*words(root, commits[2], commits[3], LARGE, "--json"))
    assert 1 == found.code, found.err
    assert [[commits[3]]] == found.json["culprits"]


@pytest.fixture
def floors(tmp_path):
    """A function that keeps a noise floor of the null backend's machine, and returns its folder."""

    def keep(protocol=PROTOCOL):
        floor = Floor(1e-6, 0.02, 0.0, 10, 6, 0.03, 0, 20, "2026-11-20T22:14:05")
        known = machine(open_backend().facts())
        device = str(known.get("device") or known["id"])
        keep_noise(Noise(known["id"], device, "null", protocol, {(CASE, "cold_time"): floor}), tmp_path / "noise")
        return tmp_path / "noise"

    return keep


def test_compiling_takes_from_the_time_limit_and_the_noise_floor_is_read(shell, history, monkeypatch, floors):
    root, commits = history
    seen, real_bisected, real_nodes = {}, bisecting.bisected, bisect._nodes
    clock = Ahead()
    monkeypatch.setattr(bisect, "time", clock)

    def compile_slowly(*given):
        found = real_nodes(*given)
        clock.seconds = 1000
        return found

    def searched(case, nodes, measure, limits, **more):
        seen.update(more, seconds=limits.seconds)
        return real_bisected(case, nodes, measure, limits, **more)

    monkeypatch.setattr(bisect, "_nodes", compile_slowly)
    monkeypatch.setattr(bisecting, "bisected", searched)
    limits = ("--time-limit", "500", "--noise", floors())
    found = shell(*words(root, commits[0], "HEAD", CASE, *limits))
    assert 2 == found.code
    assert "undecided, the time limit ended the search" in found.out
    assert 0 == seen["seconds"]
    assert 0.02**2 == pytest.approx(seen["floor"].variance)


class Ahead:
    """A clock that `seconds` puts ahead."""

    def __init__(self):
        self.seconds = 0

    def monotonic(self):
        return time.monotonic() + self.seconds


def test_a_noise_floor_of_another_protocol_is_not_used(floors, capsys):
    assert None is bisect._floor(CASE, open_backend(), floors(PROTOCOL - 1))
    assert f"is of protocol {PROTOCOL - 1}, not {PROTOCOL}: it is not used" in capsys.readouterr().err
    assert None is bisect._floor("double[n=1000]", open_backend(), floors())
    assert None is not bisect._floor(CASE, open_backend(), floors())
