"""The fixture `prism`: what passes, what fails and in which words, what is kept and what is skipped."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from prism_bench.record import store

pytest_plugins = ["pytester"]
HOUSE = Path(__file__).resolve().parents[2]


def call(arguments, name="double"):
    return f"\ndef test_one(prism):\n    prism({name}, x, {arguments})\n"


def records(project):
    return [store.read(path) for path in store.records_in(project.path / "reports" / "runs")]


@pytest.mark.parametrize(
    ("arguments", "seconds", "passes"),
    [
        ("at_most='5 us'", 4e-6, True),
        ("at_most='5 us'", 6e-6, False),
        ("at_most=5e-6", 6e-6, False),
        ("at_most='5 us'", 5.02e-6, True),  # within the noise of 1 %
        ("peer=twice", 0.8e-6, True),
        ("peer=twice", 1.0e-6, True),  # as fast as its peer: undecided, which fails nothing
        ("peer=twice", 1.3e-6, False),
        ("peer=twice, speedup=0", 1.3e-6, True),
        ("peer=twice, speedup=1.5", 0.8e-6, False),
        ("mode='hot', at_most='5 us'", 6e-6, False),
    ],
)
def test_a_limit_fails_beyond_the_noise(project, arguments, seconds, passes):
    result = project(call(arguments), script={"test_it.py*": {"seconds": seconds}, "copy*": {"seconds": 1e-6}})
    result.assert_outcomes(passed=int(passes), failed=int(not passes))


def test_a_share_of_the_copy_ceiling_is_judged_and_kept(project):
    """The scripted copy of 800 kB takes 1 us: 800 GB/s."""
    tests = """
def test_met(prism):
    prism(double, x, bytes=400_000, at_least="20 %")

def test_missed(prism):
    prism(double, x, bytes=100_000, at_least=0.2)
"""
    result = project(tests, script={"*": {"seconds": 1e-6}})
    result.assert_outcomes(passed=1, failed=1)
    assert "at least 20 % of the copy ceiling: missed, 12 % to 12 % of 80" in result.stdout.str()
    assert "copy[n=100000]" in [case.name for case in records(project)[0].cases]


def test_a_failure_says_everything_in_ten_lines(project):
    result = project(call("at_most='5 us', peer=twice"), script={"test_it.py*": {"seconds": 6e-6}})
    lines = result.outlines
    first = next(number for number, line in enumerate(lines) if line.startswith("test_it.py::test_one: not"))
    text = lines[first : next(number for number in range(first, len(lines)) if lines[number].startswith("==="))]
    assert len(text) <= 10
    assert "not at most 5.00 us and not at least 1x as fast as twice, by more than the noise of 1.0%" in text[0]
    assert ["measured", "peer", "limit", "limit", "verified", "device", "repeat"] == [
        row.split()[0] for row in text[1:]
    ]
    assert "6.0" in text[1] and "us), cold time, 5 rounds" in text[1]
    assert "at most 5.00 us: missed, 20 % above the limit" in text[3]
    assert text[5].endswith("1000 values against the peer, largest error 0")
    assert text[7].endswith("pytest test_it.py::test_one")


def test_an_undecided_limit_gets_more_rounds(project):
    project(call("peer=twice"))
    (case,) = records(project)[0].cases
    assert 15 == len(case.measurement("cold_time").processes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("reference=twice", "wrong: 1 of 1000 values differ from the reference, at [501] 1003 for 1002"),
        ("reference=np.zeros(7)", "result 1 has shape [1000], not [7]"),
        ("peer=twice", "wrong: 1 of 1000 values differ from the peer"),
        ("reference=(np.zeros(7), np.zeros(7))", "1 result, and the reference has 2"),
    ],
)
def test_a_wrong_result_fails_and_has_no_time(project, arguments, words):
    result = project(call(arguments, "nearly"))
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()
    (case,) = records(project)[0].cases
    assert ("wrong", ()) == (case.status, case.measurements)


def test_errors_within_the_given_tolerance_are_none(project):
    project(call("reference=twice, atol=1.5", "nearly")).assert_outcomes(passed=1)


WRITES = """
out = np.empty(1000, np.float32)

def writes(x):
    out[:{count}] = x[:{count}] * 2

def test_one(prism):
    prism(writes, x, out=out, reference=twice{more})
"""


def test_what_a_function_writes_is_compared(project):
    project(WRITES.format(count=1000, more="")).assert_outcomes(passed=1)


def test_what_a_function_leaves_unwritten_is_found_though_the_peer_wrote_it(project):
    tests = WRITES.format(count=999, more=", peer=whole")
    whole = "def whole(x):\n    out[:] = x * 2\n"
    result = project(whole + tests)
    result.assert_outcomes(failed=1)
    assert "1 of 1000 values differ from the reference, at [999] nan" in result.stdout.str()


def test_work_that_stops_after_the_first_call_is_found(project):
    tests = """
calls = []

def lazy(x):
    calls.append(1)
    return x * 2 if len(calls) < 2 else x

def test_one(prism):
    prism(lazy, x, reference=twice)
"""
    result = project(tests)
    result.assert_outcomes(failed=1)
    assert "right before it was timed, and then wrong: 999 of 1000" in result.stdout.str()


def test_it_says_when_nothing_was_verified(project):
    result = project(call("at_most='5 us'"))
    result.assert_outcomes(passed=1)
    assert "nothing was verified: give reference= or peer=" in result.stdout.str()


def test_a_time_that_cannot_be_trusted_fails(project):
    result = project(call("at_most='5 us'"), script={"test_it.py*": {"fails": True}})
    result.assert_outcomes(failed=1)
    assert "cannot be trusted: scripted to fail" in result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("at_most='5 uss'", "at_most='5 uss': give seconds, or text such as '5 us'"),
        ("at_least='80 %'", "at_least='80 %' is a share of the copy ceiling: give bytes=, too"),
        ("bytes=8, at_least=80", "at_least=80: give a share of the copy ceiling, 0.8 or '80 %'"),
        ("speedup=2", "speedup=2 needs peer=, the function to be compared with"),
        ("mode='warm'", "mode is 'warm'; it is one of cold, hot"),
        ("bytes=0", "bytes=0: give what one call takes, a number above 0"),
    ],
)
def test_a_bad_argument_is_named_at_the_line_of_the_test(project, arguments, words):
    result = project(call(arguments))
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert f"UsageError: {words}" in text
    assert "timed_test.py:" not in text, "the traceback ends in the test"


def test_a_kernel_of_the_catalogue_is_run_as_the_program_runs_it(project):
    table = f"[tool.prism-bench]\ncatalogue = '{HOUSE / 'tests' / 'toys'}'\n[tool.pytest.ini_options]\n"
    (project.path / "pyproject.toml").write_text(table)
    tests = """
def test_fast(prism):
    found = prism("double", at_most="1 ms")
    assert len(found.times.function.processes) == 3

def test_arguments(prism):
    prism("double", bytes=5)
"""
    result = project(tests)
    result.assert_outcomes(passed=1, failed=1)
    assert "the spec of a catalogue's kernel has its bytes; leave it out here" in result.stdout.str()
    (case,) = records(project)[0].cases
    assert ("test_it.py::test_fast", "double", "ok") == (case.name, case.kernel, case.status)
    assert any(entry["compared"] for entry in case.verification)


def test_a_suite_without_the_fixture_loads_nothing():
    script = (
        "import sys, time; import pytest; before = {*sys.modules}; began = time.perf_counter(); "
        "import prism_bench.pytest_plugin; print(time.perf_counter() - began); print(*{*sys.modules} - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    _, loaded = done.stdout.splitlines()
    ours = {name for name in loaded.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {"prism_bench", "prism_bench.moved", "prism_bench.pytest_plugin"} >= ours


def test_the_wheel_names_the_plugin():
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    assert {"prism": "prism_bench.pytest_plugin"} == project["entry-points"]["pytest11"]


def test_the_null_script_is_checked(project):
    result = project(call("at_most='5 us'"), script={"*": {"secods": 1}})
    result.assert_outcomes(errors=1)
    assert "it scripts secods" in result.stdout.str()


def test_json_of_a_worker_survives_the_way(tmp_path):
    from prism_bench.pytest_plugin.journal import Journal, PluginSettings
    from prism_bench.pytest_plugin.outcome import TimedTest

    settings = PluginSettings(tmp_path, tmp_path / "runs", backend="null")
    one, other = Journal(settings), Journal(settings)
    one.tested("test_a.py::test_a", TimedTest(lambda: 1.0, (), reference=1.0))
    assert json.loads(one.packed())["lines"]
    other.unpack(one.packed())
    other.unpack(one.packed())
    assert not other.close()
    assert ["test_a.py::test_a"] == [case.name for case in store.read(store.newest(tmp_path / "runs")).cases]
