"""`prism-bench verify`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable

ENDLESS = Path(__file__).parent.parent / "endless"


def test_right_kernels_end_with_0(shell, toys):
    found = shell("verify", *toys, "--backend", "null")
    assert 0 == found.code
    assert "backend null: no device (scripted times)" == found.out.splitlines()[0]
    assert "null: 46 ok" in found.out


def test_json_holds_every_comparison_and_nothing_else(shell, toys):
    found = shell("verify", *toys, "--backend", "numpy_reference", "--json", "--filter", "double")
    assert 0 == found.code
    assert {"double[n=0]", "double[n=1]", "double[golden 1: n=3]", "double[n=1000]"} < {
        case["name"] for case in found.json
    }
    assert "double[nan: n=1]" in {case["name"] for case in found.json}, "a regime"
    assert all(entry["passed"] for case in found.json for entry in case["verification"])
    assert "backend numpy_reference" in found.err


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_signal_before_the_first_case_ends_the_command_without_a_result(shell, toys, monkeypatch, words):
    begun = []

    def interrupted(*_):
        begun.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr("prism_bench.run.job.Run.measure", interrupted)
    found = shell("verify", *toys, "double", *words)
    assert (2, 1, False) == (found.code, len(begun), "[]" in found.out), "other backends do not begin"
    assert found.err.endswith(
        "prism-bench: the verification was ended before a case was verified, so there is no result\n"
    )


def test_a_variant_alone_is_verified_where_it_runs(shell, toys):
    """A variant's reference is its kernel's: the backend of references has nothing to do."""
    found = shell("verify", *toys, "double:by_adding", "--json")
    assert 0 == found.code
    assert {"ok"} == {case["status"] for case in found.json}
    assert all(case["name"].startswith("double:by_adding[") for case in found.json)


def test_a_wrong_kernel_ends_with_1_and_says_where(shell, toys, script):
    script({"double[n=1000]": {"wrong": True}})
    found = shell("verify", *toys, "--backend", "null")
    assert 1 == found.code
    assert "wrong double[n=1000] on null: y[" in found.out


def test_a_crash_ends_with_1_and_the_rest_is_verified(shell, toys, script):
    script({"triple[n=1]": {"crash": True}})
    found = shell("verify", *toys, "--backend", "null", "--json")
    assert 1 == found.code
    statuses = {case["name"]: case["status"] for case in found.json}
    assert ("crashed", "ok") == (statuses["triple[n=1]"], statuses["double[n=1000]"])


def test_nan_in_a_result_is_still_json(shell, toys, script):
    script({"double[n=1000]": {"nan": True}})
    found = shell("verify", *toys, "--backend", "null", "--json")
    case = next(one for one in found.json if one["name"] == "double[n=1000]")
    assert "nan" == case["verification"][0]["actual"]


def test_a_case_too_large_is_skipped_and_is_no_fault(shell, toys, script):
    script({"triple*": {"memory": True}})
    found = shell("verify", *toys, "--backend", "null")
    assert 0 == found.code
    assert "wants 1 PB, scripted" in found.out


def test_a_kernel_that_never_ends_is_ended_and_named(shell, toys, script):
    """The limit holds for each edge alone, and the edge that hung is named, not the first of its kernel."""
    script({"double[n=1]": {"hang": True}})
    found = shell("verify", *toys, "--backend", "null", "--timeout", "2", "--json")
    assert 1 == found.code
    reasons = {case["name"]: case["reason"] for case in found.json if case["status"] == "timed out"}
    assert {"double[n=1]": "double[n=1]: no answer within 2 s"} == reasons


def test_parts_together_verify_every_case_once_and_keep_kernels_whole(shell, toys):
    whole = {case["name"] for case in shell("verify", *toys, "--backend", "null", "--json").json}
    parts = []
    for number in (1, 2):
        found = shell("verify", *toys, "--backend", "null", "--part", f"{number}/2", "--json")
        assert re.search(rf"part {number}/2: \d of 3 kernels\n", found.err)
        parts.append({case["name"] for case in found.json})
    assert (whole, set()) == (parts[0] | parts[1], parts[0] & parts[1])
    kernels = [{re.split(r"[\[:]", name)[0] for name in part} for part in parts]
    assert set() == kernels[0] & kernels[1]


def test_a_part_holds_the_same_kernels_whatever_the_label(shell, toys):
    words = ("verify", *toys, "--backend", "null", "--part", "1/3")
    lines = {shell(*words, *label).out.splitlines()[1] for label in ((), ("--label", "S0"), ("--label", "S2"))}
    assert {"part 1/3: 1 of 3 kernels"} == lines


def test_a_part_of_chosen_kernels_is_of_these_alone(shell, toys):
    found = shell("verify", *toys, "double:by_adding", "triple", "--backend", "null", "--part", "1/2", "--json")
    names = {case["name"].partition("[")[0] for case in found.json}
    assert names in ({"double:by_adding"}, {"triple"})


@pytest.mark.parametrize("part", ["3/2", "x"])
def test_what_is_no_part_ends_with_2(shell, toys, part):
    found = shell("verify", *toys, "--backend", "null", "--part", part)
    assert 2 == found.code
    assert f"--part {part}: it is I/N with I from 1 to N" in found.err


@pytest.mark.parametrize("backend", ["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_kernel_that_waits_for_ever_is_ended_where_it_runs(shell, backend):
    try:
        open_backend(backend)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    found = shell("verify", "--catalogue", ENDLESS, "--backend", backend, "--timeout", "5")
    assert 1 == found.code
    assert "timed out pauses[n=1]: no answer within 5 s" in found.out


def test_a_kernel_in_the_commands_own_process_is_ended_with_it():
    command = [sys.executable, "-m", "prism_bench", "traffic", "--catalogue", str(ENDLESS), "--timeout", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "compiler" in ended.stderr:
        pytest.skip(ended.stderr)
    assert 2 == ended.returncode
    assert ended.stderr.endswith("prism-bench: timed out: pauses[n=1000]: no answer within 2 s\n")
