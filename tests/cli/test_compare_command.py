"""`prism-bench compare`: records, folders, variants and commits; and what it ends with."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.record import store
from tests.analysis.measured_pairs import records
from tests.copied_package import copy_package
from tests.report.synthetic import MACHINE

QUICK = ("--backend", "null", "--processes", "2")
ONCE = ("--backend", "null", "--processes", "1")


@pytest.fixture
def two(tmp_path):
    """A function that keeps two records with these ratios and gives their paths."""

    def keep(ratios, **changes):
        return [
            store.save(record, tmp_path / f"{name}.json.gz")
            for name, record in zip(("old", "new"), records(ratios, **changes), strict=True)
        ]

    return keep


def test_slower_ends_with_1_and_shows_what_changed(shell, two):
    found = shell("compare", *two([1.0, 1.1]))
    assert (1, "") == (found.code, found.err)
    assert found.out.splitlines()[0].startswith("1 slower  1 same  new against old")
    assert "k1[n=100]" in found.out
    assert "k0[n=100]" not in found.out
    assert "k0[n=100]" in shell("compare", *two([1.0, 1.1]), "--all").out


@pytest.mark.parametrize("ratios", [[1.0], [0.9]])
def test_same_and_faster_end_with_0(shell, two, ratios):
    assert 0 == shell("compare", *two(ratios)).code


def test_a_failed_control_ends_with_3(shell, two):
    found = shell("compare", *two([1.2] * 9 + [1.0] * 291, sass=("aa", "aa")))
    assert 3 == found.code
    assert "control: 300 cases of identical code, median change +0." in found.out


@pytest.mark.parametrize("count", [0, -100])
@pytest.mark.parametrize("side", [0, 1])
def test_times_that_no_clock_can_read_end_with_3_as_in_check(shell, two, count, side):
    """A record with a negative or a zero time was compared with exit code 0, the case left out."""
    paths = two([1.0, 1.0])
    data = json.loads(gzip.decompress(paths[side].read_bytes()))
    for group in data["cases"][0]["measurements"][0]["processes"]:
        group["counts"] = [count] * len(group["counts"])
    paths[side].write_bytes(gzip.compress(json.dumps(data).encode()))
    found = shell("compare", *paths)
    name = ("old", "new")[side]
    assert 3 == found.code and found.out.startswith(f"untrusted: {name}'s cold time is not to be trusted: a time of ")
    assert "(k0[n=100])" in found.out and "1 same" in found.out
    assert 3 == shell("check", paths[side], "--runs", paths[side].parent / "runs").code


def test_one_kernel_of_identical_code_that_is_slower_is_slower(shell, two):
    found = shell("compare", *two([1.45], sass=("aa", "aa")))
    assert 1 == found.code
    assert "1 slower" in found.out
    assert "too few to say anything of the machine" in found.out


def test_json_holds_the_numbers_and_nothing_else(shell, two):
    found = shell("compare", *two([1.1]), "--json").json
    (case,) = found["cases"]
    assert ({"slower": 1}, "slower") == ({k: v for k, v in found["counts"].items() if v}, case["verdict"])
    assert case["low"] < 1.1 < case["high"]
    assert 1.1 == pytest.approx(case["cycles"]["ratio"], rel=0.01)
    assert ["slower"] == [finding["kind"] for finding in found["findings"]]


def test_a_metric_is_chosen_by_its_name(shell, two):
    found = shell("compare", *two([1.1]), "--metric", "cold_tim")
    assert (2, "prism-bench: unknown metric 'cold_tim'; did you mean cold_time") == (found.code, found.err[:62])
    assert "has no hot time" in shell("compare", *two([1.1]), "--metric", "hot_time").out


def test_a_larger_least_change_makes_less_worth_a_word(shell, two):
    assert "same: within" in shell("compare", *two([1.03]), "--least", "0.1", "--all").out
    assert "inconclusive" in shell("compare", *two([1.0]), "--least", "0.0001", "--all").out


@pytest.mark.parametrize(
    "changes", [{"backend": "null"}, {"protocol": {"version": 2}}, {"machine": {**MACHINE, "device": "NVIDIA H100"}}]
)
def test_records_that_say_nothing_about_each_other_are_refused(shell, two, changes):
    found = shell("compare", *two([1.0], **changes))
    assert (2, "") == (found.code, found.out)
    assert found.err.startswith("prism-bench: new: its ")
    assert 1 == found.err.count("\n")


def test_a_record_and_something_else_do_not_compare(shell, two, toys):
    old, _ = two([1.0])
    found = shell("compare", old, toys[1])
    assert 2 == found.code
    assert f"prism-bench: {old} is a record and the other side is not" in found.err


def test_a_damaged_record_is_named(shell, two):
    old, new = two([1.0])
    new.write_bytes(b"{")
    found = shell("compare", old, new)
    assert 2 == found.code
    assert found.err.startswith(f"prism-bench: {new}: not a readable run record")


def test_a_damaged_noise_floor_is_named(shell, two):
    noise = Path("reports/noise/nvidia-h200.json")
    noise.parent.mkdir(parents=True)
    noise.write_text("{}")
    found = shell("compare", *two([1.0]))
    assert 2 == found.code
    assert f"prism-bench: {noise}: schema is None, not 1" in found.err


def test_two_folders_are_measured_in_turn(shell, toys, tmp_path):
    copy = shutil.copytree(toys[1], tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    words = ("compare", toys[1], copy, *ONCE, *toys, "--filter", "triple", "--all")
    found = shell(*words, "--records", "kept")
    assert 0 == found.code
    assert "1 inconclusive  copy against toys" in found.out
    assert 1 == len(store.read("kept/b.json.gz").case("triple[n=1000]").measurement("cold_time").processes)


def scripted(name, seconds):
    Path(name).write_text(json.dumps({"*": {"seconds": seconds, "noise": 0.001}}))
    return f"{SCRIPT}={Path(name).resolve()}"


@pytest.mark.parametrize(
    ("words", "count"),
    [((), 3), (("--processes", "2"), 2), (("--processes", "1-3", "--least", "0"), 3)],
)
def test_processes_are_added_until_a_case_is_decided_or_the_most_are_measured(shell, toys, words, count):
    """Nothing is the same for `--least 0`, so that such a case is measured in as many processes as there may be."""
    shell("compare", toys[1], toys[1], "--backend", "null", *toys, "--filter", "triple", "--all",
          "--records", "kept", *words)  # fmt: skip
    assert count == processes_of("kept/b.json.gz")


@pytest.mark.parametrize("text", ["5-3", "0", "0-3", "many", "3-", "-3", "2.5"])
def test_a_number_of_processes_is_one_or_a_range(shell, toys, text):
    found = shell("compare", toys[1], toys[1], "--backend", "null", *toys, f"--processes={text}")
    assert (2, True) == (found.code, "Invalid value for '--processes'" in found.err)


def test_only_a_comparison_and_a_run_add_processes(shell, toys):
    found = shell("tune", *toys, "triple", "--backend", "null", "--processes", "3-15")
    assert (2, True) == (found.code, "3-15: only compare and run add processes; give one number" in found.err)


def test_a_run_without_a_gpu_measures_in_the_most_processes(shell, toys):
    shell("run", *toys, "--backend", "null", "--filter", "triple", "--processes", "1-2", "--output", "kept.json.gz")
    assert 2 == processes_of("kept.json.gz")


def processes_of(path):
    return len(store.read(path).case("triple[n=1000]").measurement("cold_time").processes)


def test_an_option_is_compared_through_the_environment_of_one_side(shell, toys):
    words = ("compare", toys[1], toys[1], *QUICK, *toys, "--filter", "triple")
    # Other variables may make the same code take another time: everything is measured.
    found = shell(*words, "--env", "A:" + scripted("a.json", 1e-5), "--env", "B:" + scripted("b.json", 2e-5))
    assert 1 == found.code
    assert "1 slower  B against A" in found.out
    assert "control" not in found.out


def test_a_variant_is_compared_with_its_kernel(shell, toys):
    found = shell("compare", "double", "double:by_adding", *ONCE, *toys, "--json")
    assert 0 == found.code
    assert ["double[n=1000]"] == [case["case"] for case in found.json["cases"]]


@pytest.mark.parametrize("word", ["NAME", "=x", "NAME=x", "B:NAME", "B:=x", "C:NAME=x"])
def test_an_environment_names_its_side(shell, toys, word):
    found = shell("compare", toys[1], toys[1], *QUICK, "--env", word)
    assert (2, f"prism-bench: --env {word}: write A:NAME=VALUE or B:NAME=VALUE\n") == (found.code, found.err)


@pytest.fixture
def repository(tmp_path, toys):
    """The package with the toys for its kernels, in two commits; the second one is twice as slow on paper."""
    root = tmp_path / "repository"

    def git(*words):
        command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, check=True, capture_output=True)

    null = copy_package(root) / "backends" / "null.py"
    shutil.copytree(toys[1], root / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert '"seconds", 1e-6' in null.read_text()
    null.write_text(
        null.read_text().replace('"seconds", 1e-6', '"seconds", 2e-6').replace('"sass", "null"', '"sass", "two"')
    )
    git("commit", "-q", "-a", "-m", "two")
    return root


def test_two_commits_are_measured_each_by_its_own_package(shell, repository, monkeypatch):
    monkeypatch.delenv(SCRIPT, raising=False)
    words = ("--catalogue", repository / "kernels", "--filter", "triple")
    found = shell("compare", "HEAD~1", "HEAD", *QUICK, *words, "--json")
    assert 1 == found.code
    (case,) = found.json["cases"]
    assert ("slower", 2.0) == (case["verdict"], pytest.approx(case["ratio"], rel=0.05))
    assert ["HEAD~1", "HEAD"] == [found.json["a"], found.json["b"]]


def test_what_is_nothing_is_said(shell, repository):
    found = shell("compare", "HEAD", "nonsense", *QUICK, "--catalogue", repository / "kernels")
    assert 2 == found.code
    assert "'nonsense' is no record, no folder, no kernel of the catalogue and no commit" in found.err


@pytest.fixture
def foreign(tmp_path, toys):
    """A repository of somebody else: only a catalogue, in a folder of its own, on a branch that changed one kernel."""
    root = tmp_path / "foreign"
    shutil.copytree(toys[1], root / "gpu" / "kernels", ignore=shutil.ignore_patterns("__pycache__"))

    def git(*words):
        command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "mine")
    source = root / "gpu" / "kernels" / "arith" / "triple.cu"
    source.write_text(source.read_text().replace("3.0f * x[i]", "4.0f * x[i] - x[i] * 1.0f  /* changed */"))
    git("commit", "-q", "-a", "-m", "two")
    return root


@pytest.mark.parametrize("words", [(), ("main",), ("main", "mine"), ("HEAD~1",)])
def test_commits_of_any_repository_are_compared_with_any_catalogue(shell, foreign, words):
    options = ("--catalogue", foreign / "gpu" / "kernels", "--filter", "triple", "--json")
    found = shell("compare", *words, *QUICK, *options)
    assert found.code in (0, 2), found.err
    (case,) = found.json["cases"]
    assert "triple[n=1000]" == case["case"]
    assert (words[1] if len(words) == 2 else "working tree") == found.json["b"]


def test_only_what_changed_is_measured_and_a_verdict_on_it(shell, foreign, script):
    script({"*": {"noise": 0.001, "with_source": {"changed": {"seconds": 2e-6}}}})
    words = ("compare", "main", *QUICK, "--catalogue", foreign / "gpu" / "kernels", "--json", "--records", "kept")
    found = shell(*words, "--filter", "triple", "--filter", "nothing")
    assert 1 == found.code, found.err
    roles = {one["case"]: (one["role"], one["changed"], one["verdict"]) for one in found.json["cases"]}
    assert ("measured", ["code"], "slower") == roles["triple[n=1000]"]
    assert {"same machine code"} == {role for case, (role, _, _) in roles.items() if case.startswith("nothing")}
    assert (1, None) == (found.json["selection"]["changed"], found.json["selection"]["everything"])
    assert {"reading", "compiling", "verifying", "timing", "starting"} == set(found.json["selection"]["seconds"])
    assert ["triple[n=1000]"] == [case.name for case in store.read("kept/b.json.gz").cases if case.measurements]
    stages = ["compiling what differs between the sides", "verifying, 0 of 6", "pair 1 of 2, ", "pair 2 of 2, "]
    assert all(stage in found.err for stage in stages), found.err


def test_a_comment_is_no_change_and_nothing_is_measured(shell, foreign):
    kernels = foreign / "gpu" / "kernels"
    (kernels / "arith" / "double.cu").write_text((kernels / "arith" / "double.cu").read_text() + "// a remark\n")
    words = ("compare", "mine", *ONCE, "--catalogue", kernels, "--records", "kept")
    found = shell(*words)
    assert 0 == found.code, found.err
    assert "4 same machine code  working tree against mine" == found.out.splitlines()[1].rstrip()
    assert "changed: 0 of 4 cases" in found.out
    assert "nothing is measured; --all measures all" in found.out
    assert not Path("kept").exists()


def test_a_kernel_that_no_longer_builds_is_reported(shell, foreign):
    source = foreign / "gpu" / "kernels" / "arith" / "triple.cu"
    source.write_text("no kernel")
    found = shell("compare", "main", *ONCE, "--catalogue", foreign / "gpu" / "kernels", "--json")
    if found.json["selection"]["by"] == "source text":
        pytest.skip("NVRTC is not installed")
    reason = next(one["reason"] for one in found.json["cases"] if one["case"] == "triple[n=1000]")
    assert reason.startswith("working tree does not build: ")
    assert 1 == found.code


def test_a_commit_without_the_catalogue_is_named(shell, foreign):
    (foreign / "gpu" / "kernels").rename(foreign / "moved")
    found = shell("compare", "main", *QUICK, "--catalogue", foreign / "moved")
    assert 2 == found.code
    assert "main: that commit has no folder moved, where the catalogue is now" in found.err


def test_a_record_alone_does_not_compare(shell, two):
    found = shell("compare", two([1.0])[0])
    assert 2 == found.code
    assert "is a record and the other side is not" in found.err
