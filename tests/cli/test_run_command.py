"""`prism-bench run`: one record, and an exit code that says what to think of it."""

import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from prism_bench.record import store

QUICK = ("run", "--backend", "null", "--processes", "1")


@pytest.fixture
def run(shell, toys):
    """A function that runs the toys once on the null backend, with more words."""
    return lambda *words: shell(*QUICK, *toys, *words)


def only_record():
    (path,) = Path("reports/runs").glob("*/*")
    return store.read(path)


def test_a_run_ends_with_0_and_writes_one_record_below_the_machine(run):
    found = run()
    assert 0 == found.code
    record = only_record()
    assert record.complete
    assert found.out.splitlines()[-1].startswith(f"record: reports/runs/{record.machine['id']}/")
    assert "backend null: no device (scripted times)" == found.out.splitlines()[0]


def test_it_says_how_long_it_will_take_and_from_where_it_knows(run):
    rough = run().out.splitlines()[1]
    assert rough.startswith("4 cases, 1 process: about ")
    assert rough.endswith(" s (rough: no complete record of this machine has enough of these cases)")
    created = only_record().created
    assert run().out.splitlines()[1].endswith(f" s (from the record of {created[:10]})")
    assert "3 cases, 2 processes: about " in run("--no-peers", "--processes", "2", "double", "triple", "--json").err


def test_peers_are_announced_where_a_spec_names_some(shell, tmp_path):
    found = shell(*QUICK, "vector_add", "--label", "S0", "--runs", str(tmp_path))
    assert ", 1 process, peers: about" in found.out.splitlines()[1]


def test_json_is_the_record_with_derived_values_and_nothing_else(run):
    found = run("--json")
    assert 0 == found.code
    assert {case.name for case in only_record().cases} == {case["name"] for case in found.json["cases"]}
    assert all("derived" in case for case in found.json["cases"])
    assert {"schema", "findings", "limits"} <= set(found.json)


def test_filter_label_and_processes_are_kept(run):
    run("--filter", "double", "--label", "S1", "--processes", "2")
    timed = [case for case in only_record().cases if case.measurements]
    assert {"double[n=100000]", "double:by_adding[n=100000]"} == {case.name for case in timed}
    assert {2} == {len(one.processes) for case in timed for one in case.measurements}


def test_the_record_goes_where_it_is_told(run):
    assert "record: here/mine.json" in run("--filter", "triple", "--output", "here/mine.json").out
    assert 1 == json.loads(Path("here/mine.json").read_text())["schema"]


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [({"wrong": True}, 1, "wrong"), ({"crash": True}, 1, "crashed"), ({"memory": True}, 0, "skipped")],
)
def test_what_happened_to_a_kernel_makes_the_exit_code(run, script, fault, code, status):
    script({"triple[n=1000]": fault})
    found = run()
    assert code == found.code
    assert status == only_record().case("triple[n=1000]").status
    assert only_record().case("double[n=1000]").measurements


def test_a_hang_is_ended_by_the_timeout_and_ends_with_1(run, script):
    script({"triple[n=1000]": {"hang": True}})
    assert 1 == run("--filter", "triple", "--timeout", "1").code
    assert "timed out" == only_record().case("triple[n=1000]").status


def test_a_peer_that_hangs_is_ended_after_a_third_of_the_timeout_and_the_case_is_well(run, script):
    script({"triple[n=1000]": {"peers": {"torch": {"hang": True}, "cupy": {"seconds": 3e-6}}}})
    assert 0 == run("--filter", "triple", "--timeout", "3").code
    case = only_record().case("triple[n=1000]")
    assert "ok" == case.status
    assert case.measurement("cold_time", "peer:cupy").valid
    reason = case.measurement("cold_time", "peer:torch").reason
    assert "peer torch: no answer within 1 s, so its process was ended" == reason


def test_a_time_below_the_floor_of_the_run_cannot_be_trusted_and_ends_with_3(run, script):
    script({"nothing*": {"seconds": 5e-6, "noise": 0.001}, "triple*": {"seconds": 1e-6}, "*": {"seconds": 1e-5}})
    found = run()
    assert 3 == found.code
    cold = only_record().case("triple[n=1000]").measurement("cold_time")
    assert not cold.valid
    assert "below the launch overhead" in cold.reason


def test_a_problem_of_the_catalogue_ends_with_1_and_the_rest_is_measured(shell, toys, tmp_path):
    mine = shutil.copytree(toys[1], tmp_path / "mine")
    (mine / "arith" / "lonely.cu").write_text("")
    found = shell(*QUICK, "--catalogue", mine)
    assert 1 == found.code
    assert "lonely.cu: has no spec lonely.py next to it" in found.err
    assert only_record().case("double[n=1000]").measurements


def test_a_folder_that_cannot_be_written_still_shows_what_was_measured(run):
    Path("file").write_text("in the way")
    found = run("--filter", "triple", "--runs", "file/runs")
    assert 2 == found.code
    assert "prism-bench: cannot write file/runs/" in found.err
    assert "triple" in found.out


def test_ctrl_c_keeps_what_was_measured(run, monkeypatch):
    module = import_module("prism_bench.run.job")
    begun = []

    def interrupt(progress):
        begun.append(progress.task)
        if len(begun) == 7:
            raise KeyboardInterrupt

    take = module.Run.__init__
    monkeypatch.setattr(module.Run, "__init__", lambda self, *words, **_: take(self, *words[:3], interrupt))
    found = run()
    assert 2 == found.code
    assert not only_record().complete
    assert [case for case in only_record().cases if case.measurements]
    assert "Traceback" not in found.err


def test_real_references_are_timed_on_the_cpu(shell, toys):
    found = shell("run", "--backend", "numpy_reference", "--processes", "1", *toys, "--filter", "triple")
    assert 0 == found.code
    wall = only_record().case("triple[n=1000]").measurement("wall_time")
    assert all(sample > 0 for sample in wall.samples)


def test_a_variant_has_no_reference_of_its_own_to_time(shell, toys):
    found = shell("run", "--backend", "numpy_reference", "--processes", "1", *toys, "--filter", "double:by_adding")
    assert 2 == found.code
    assert "no case is left to run" in found.err
    assert "0 cases" not in found.out


@pytest.mark.parametrize("fault", ["unwritten", "nan", "wrong", "crash", "raises", "shape"])
def test_json_is_strict_whatever_the_kernel_did(run, script, fault):
    script({"double*": {fault: "words" if fault == "raises" else True}})
    found = run("--json")
    assert 1 == found.code
    plain = json.loads(found.out, parse_constant=pytest.fail)
    assert plain == json.loads(json.dumps(plain, allow_nan=False))
    if fault == "unwritten":
        errors = {(one["derived"]["error"], one["derived"].get("error_reason")) for one in plain["cases"]}
        assert (None, "infinite") in errors


def test_the_record_tells_where_the_time_went(shell, run):
    assert "time of the run: " in run("triple").out
    (path,) = Path("reports/runs").glob("*/*")
    spent = shell("show", str(path), "--json").json["time_spent"]
    assert {"verification", "kernels"} <= spent.keys()
    rest = only_record().duration - sum(seconds for phase, seconds in spent.items() if phase != "starts and waiting")
    assert pytest.approx(max(0.0, rest)) == spent.get("starts and waiting", 0.0)
