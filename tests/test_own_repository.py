"""A user's way: install the wheel, set up an empty repository, make a kernel slower on a branch, and be told so."""

import json
import subprocess

import pytest

from prism_bench.backends.null import SCRIPT

# No GPU is needed: times are scripted, twice as long where the source holds the slower call.
FAST, SLOW = "fmaf(a, x[i], y[i])", "fmaf(a, x[i], y[i]) + 0.0f * sinf(x[i])"
TIMES = {"saxpy*": {"seconds": 1e-6, "sass": "one", "with_source": {"sinf": {"seconds": 2e-6, "sass": "two"}}}}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """An empty git repository."""
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    return root


@pytest.fixture(scope="module")
def bench(installed, repository):
    """A function that runs a command of the wheel in the repository, with scripted times."""
    script = repository / ".git" / "script.json"
    script.write_text(json.dumps(TIMES))

    def run(*words, code=0):
        done = installed.command(repository, *words, **{SCRIPT: str(script), "PRISM_BENCH_MACHINE": "box"})
        assert code == done.returncode, done.stdout + done.stderr
        return done

    return run


def git(repository, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", repository, *who, *words], check=True, capture_output=True)


def test_a_slower_kernel_on_a_branch_is_found_by_compare_and_check(bench, repository):
    wrote = json.loads(bench("init", "--with", "github", "--json").stdout)["wrote"]
    assert {"prism-bench.toml", "kernels/example/saxpy.cu", "kernels/example/saxpy.py"} < set(wrote)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Add a kernel")
    null = ("--backend", "null", "--processes")
    bench("run", *null, "1")
    git(repository, "checkout", "-q", "-b", "slower")
    source = repository / "kernels" / "example" / "saxpy.cu"
    assert FAST in source.read_text()
    source.write_text(source.read_text().replace(FAST, SLOW))
    compared = json.loads(bench("compare", *null, "2", "--json", code=1).stdout)
    (case,) = compared["cases"]
    assert ("slower", 2.0) == (case["verdict"], pytest.approx(case["ratio"], rel=0.05))
    git(repository, "commit", "-q", "-a", "-m", "Make the kernel slower")
    bench("run", *null, "1")
    checked = bench("check", code=1)
    assert "slower: saxpy[n=100000]: cold time" in checked.stdout
    assert "catalogue: kernels (prism-bench.toml)" in checked.stderr
