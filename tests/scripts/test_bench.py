"""`scripts/bench` and `scripts/setup`: the commands that they run, what they print, and how they end."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# Stands for `prism-bench`: it keeps its words, and ends with $CODE unless it writes the site.
COMMAND = """#!/usr/bin/env bash
echo "$*" >> calls
[ "$1" != report ] || exit 0
[ -z "${WAITS:-}" ] || { trap 'exit 2' INT; touch waiting; sleep 60 & wait; }
exit "${CODE:-0}"
"""
# Stands for the Python that makes .venv: a .venv whose pip prints what pip prints, and fails with $PIP_FAILS.
PYTHON = """#!/usr/bin/env bash
[ "$1" != -c ] || exit "${OLD:-0}"
[ "$1" != --version ] || { echo Python 3.12.1; exit; }
echo "made $3" >> calls
mkdir -p .venv/bin
cat > .venv/bin/python << 'END'
#!/usr/bin/env bash
[ "$*" != "-m pip --version" ] || exit 0
[[ "$*" = *--upgrade* ]] || echo "Collecting numpy
WARNING: no extra of that name
Installing collected packages: numpy, rich, typer"
[ -z "${PIP_FAILS:-}" ] || { echo "ERROR: no space is left" >&2; exit 1; }
END
chmod +x .venv/bin/python
"""
NEXT = "Next:\n  source .venv/bin/activate\n  prism-bench doctor "


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the scripts, and stand-ins for what they run."""
    (tmp_path / "scripts").mkdir()
    for name in ("bench", "setup", "install"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    executable(tmp_path / "python", PYTHON)
    return tmp_path


@pytest.fixture
def run(checkout):
    """A function that runs a script on a machine with a GPU or without one, and returns the process that ended."""

    def script(name, *words, gpu=False, **variables):
        executable(checkout / "scripts" / "cuda_extra", f"#!/bin/sh\necho {'cuda13' if gpu else ''}\n")
        environment = {**os.environ, "PYTHON": str(checkout / "python"), **variables}
        command = [checkout / "scripts" / name, *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)

    return script


@pytest.fixture
def bench(checkout, run):
    """A function that runs scripts/bench where everything is set up, and returns the process that ended."""
    executable(checkout / "scripts" / "setup", "#!/bin/sh\necho Next: ...\n")
    executable(checkout / ".venv" / "bin" / "prism-bench", COMMAND)
    return lambda *words, **given: run("bench", *words, **given)


def calls(checkout):
    return (checkout / "calls").read_text().splitlines()


@pytest.mark.parametrize(
    ("words", "chosen"),
    [((), " --part 10/10"), (("--all",), ""), (("--filter", "softmax"), " --filter softmax")],
)
def test_without_a_gpu_kernels_are_verified_on_the_emulator_and_nothing_is_timed(checkout, bench, words, chosen):
    done = bench(*words)
    assert (0, "") == (done.returncode, done.stderr)
    assert [f"verify --backend emulator{chosen}", "report"] == calls(checkout)
    assert f"$ .venv/bin/prism-bench verify --backend emulator{chosen}\n" in done.stdout
    assert "Nothing was timed: no NVIDIA GPU answers here." in done.stdout
    assert ("scripts/bench --all" in done.stdout) == (not words)
    assert "H200" in done.stdout
    assert "Next" not in done.stdout


@pytest.mark.parametrize(("words", "passed"), [((), ""), (("--all",), ""), (("--label", "S0"), " --label S0")])
def test_with_a_gpu_kernels_are_measured(checkout, bench, words, passed):
    done = bench(*words, gpu=True)
    assert 0 == done.returncode
    assert [f"run{passed}", "report"] == calls(checkout)
    assert "Nothing was timed" not in done.stdout


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize(("code", "last"), [("0", "report"), ("1", "report"), ("3", "report"), ("2", None)])
def test_it_ends_as_its_command_does_and_writes_no_site_where_that_could_not_work(checkout, bench, gpu, code, last):
    done = bench(gpu=gpu, CODE=code)
    assert int(code) == done.returncode
    assert [last] == calls(checkout)[1:] if last else 1 == len(calls(checkout))
    assert ("Nothing was timed" in done.stdout) == (not gpu and code != "2")


def test_a_failed_setup_ends_with_2_and_runs_nothing(checkout, bench):
    executable(checkout / "scripts" / "setup", "#!/bin/sh\nexit 2\n")
    assert 2 == bench().returncode
    assert not (checkout / "calls").exists()


def test_an_interrupted_bench_ends_with_2_and_writes_no_site(checkout, bench):
    executable(checkout / "scripts" / "cuda_extra", "#!/bin/sh\n")
    environment = {**os.environ, "WAITS": "yes"}
    started = subprocess.Popen([checkout / "scripts" / "bench"], env=environment, start_new_session=True)
    limit = time.monotonic() + 30
    while not (checkout / "waiting").exists() and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGINT)
    assert 2 == started.wait(timeout=30)
    assert ["verify --backend emulator --part 10/10"] == calls(checkout)


@pytest.mark.parametrize("name", ["bench", "setup"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_sets_nothing_up(checkout, run, name, option):
    done = run(name, option)
    assert (0, "") == (done.returncode, done.stderr)
    assert "usage: " in done.stdout.splitlines()[0]
    assert f"scripts/{name}" in done.stdout.splitlines()[0]
    assert "#" not in done.stdout and "pipefail" not in done.stdout
    assert not (checkout / ".venv").exists()


def test_a_setup_prints_its_steps_and_the_next_commands(checkout, run):
    done = run("setup", "test")
    assert 0 == done.returncode
    *steps, last = done.stderr.splitlines()
    assert [
        "setup: making .venv (Python 3.12.1)",
        "setup: updating pip",
        "setup: choosing packages",
        "setup: WARNING: no extra of that name",
        "setup: installing packages: 3",
    ] == steps
    assert last.startswith("setup: done after ")
    assert done.stdout.startswith(NEXT)
    again = run("setup", "test")
    assert ("", done.stdout) == (again.stderr, again.stdout)
    assert ["made .venv"] == calls(checkout)


def test_another_extra_is_installed_into_the_same_environment(checkout, run):
    run("setup")
    assert "installing packages" in run("setup", "docs").stderr
    assert ["made .venv"] == calls(checkout)


def test_a_failed_setup_shows_the_error_of_pip_and_is_tried_again(checkout, run):
    failed = run("setup", PIP_FAILS="yes")
    assert (2, "") == (failed.returncode, failed.stdout)
    done = run("setup")
    assert (0, True) == (done.returncode, done.stdout.startswith(NEXT))


def test_an_error_of_pip_is_shown(checkout, run):
    run("setup")
    (checkout / "scripts" / "install").write_text("#!/bin/sh\necho ERROR: no space is left >&2\nexit 1\n")
    failed = run("setup", "docs")
    assert (2, "") == (failed.returncode, failed.stdout)
    assert "setup: ERROR: no space is left\nsetup: pip failed; .venv/setup.log has all" in failed.stderr
    assert "no space is left" in (checkout / ".venv" / "setup.log").read_text()


def test_an_environment_without_pip_is_made_again(checkout, run):
    """An interrupted setup leaves one."""
    executable(checkout / ".venv" / "bin" / "python", "#!/bin/sh\nexit 1\n")
    assert 0 == run("setup").returncode
    assert ["made .venv"] == calls(checkout)


def test_an_old_python_is_refused_and_leaves_nothing(checkout, run):
    done = run("setup", OLD="1")
    assert 2 == done.returncode
    assert "is no Python 3.11 or newer; name one: PYTHON=python3.12 scripts/setup" in done.stderr
    assert not (checkout / ".venv").exists()
