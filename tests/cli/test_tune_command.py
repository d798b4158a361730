"""`prism-bench tune` and what it leaves behind: adopted beyond the noise, kept, used by a run, stale, refused."""

import json
import shutil
from pathlib import Path
from signal import SIGINT, raise_signal

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.record import identity, store
from prism_bench.workflows.tuning.choice import KeptChoices, path_for, write_kept
from prism_bench.workflows.tuning.choice import launched as launched_hash
from prism_bench.workflows.tuning_session import timed_in_turn
from tests.workflows.tuning.choices import choice

TUNABLE = Path(__file__).parent.parent / "tunable"
HALF = {"*@block=64,items=1": {"seconds": 5e-7, "noise": 0.0}, "*": {"seconds": 1e-6, "noise": 0.0}}


@pytest.fixture
def tune(shell, script):
    """A function that tunes the toy on the null backend by a script."""

    def run(behaviours, *words, catalogue=TUNABLE):
        script(behaviours)
        return shell("tune", "-b", "null", "--processes", "2", "--catalogue", catalogue, *words)

    return run


def kept():
    (path,) = Path("reports/tuning").glob("*.json")
    return json.loads(path.read_text())


def test_what_is_faster_is_adopted_kept_and_reported(tune):
    found = tune(HALF, "--output", "report.json")
    assert 0 == found.code
    assert "1 of 1 case leave their default: 2.00x among themselves, 2.00x over all" in found.out
    assert "block=64,items=1" in found.out
    (choice,) = kept()["choices"]
    assert ("tripled", {"block": 64, "items": 1}, 5) == (choice["kernel"], choice["configuration"], choice["tried"])
    (case,) = json.loads(Path("report.json").read_text())["cases"]
    assert (True, 5, {}) == (case["adopted"], case["space"], case["refused"])
    assert 2.0 == pytest.approx(case["speedup"], rel=0.05)
    assert case["interval"][0] <= case["speedup"] <= case["interval"][1]


def test_json_is_the_report_and_nothing_else(tune):
    found = tune({}, "--json")
    assert 5 == len(found.json["cases"][0]["searched"])


def test_where_nothing_is_faster_the_default_is_kept_and_that_is_remembered(tune):
    found = tune({})
    assert (0, True) == (found.code, "0 of 1 case leave their default" in found.out)
    assert {"block": 128, "items": 1} == kept()["choices"][0]["configuration"]


def test_wrong_ones_are_refused_however_quick(tune):
    fast_and_wrong = {"tripled[n=1000]@block=64,items=1": {"seconds": 1e-7, "wrong": True}}
    at_an_edge = {"tripled[n=300]@block=256,items=1": {"wrong": True}, "*@block=256,items=1": {"seconds": 2e-7}}
    found = tune({**fast_and_wrong, **at_an_edge})
    assert "0 of 1 case leave their default" in found.out
    assert "5, 2 refused" in found.out
    assert "refused: tripled[n=1000]@block=64,items=1: tripled[n=1000] on null: y[" in found.out


def test_what_this_machine_cannot_launch_is_skipped_as_in_a_run(tune):
    answer = tune({"*": {"memory": True}})
    assert 2 == answer.code
    assert "0 of 0 cases leave their default" in answer.out
    assert 1 == answer.out.count("skipped: tripled") and "refused" not in answer.out, answer.out
    assert not list(Path("reports/tuning").glob("*.json"))


def test_what_ctrl_c_left_open_is_not_kept(tune, monkeypatch):
    monkeypatch.setattr("prism_bench.workflows.tuning_session.timed_in_turn", interrupted)
    found = tune(HALF)
    assert (2, True) == (found.code, "the candidates were not timed again" in found.out)
    assert not Path("reports/tuning").exists()


def interrupted(*words, **more):
    raise KeyboardInterrupt


def test_ctrl_c_before_the_first_case_writes_no_report(tune, monkeypatch):
    monkeypatch.setattr("prism_bench.workflows.tuning_session.Trials.__call__", lambda *_: raise_signal(SIGINT))
    found = tune(HALF, "--output", "report.json", "--json")
    assert (2, False) == (found.code, "{" in found.out)
    assert not Path("report.json").exists()


def test_a_default_without_a_time_ends_with_1(tune):
    found = tune({"*": {"wrong": True}})
    assert 1 == found.code
    assert not Path("reports/tuning").exists()


def test_no_more_is_tried_than_the_budget_allows(tune):
    found = tune({}, "--budget", "3", "--json")
    assert 2 <= found.json["cases"][0]["tried"] <= 3


def test_time_that_runs_out_leaves_cases_untuned_and_ends_with_2(tune, monkeypatch):
    monkeypatch.setattr("prism_bench.workflows.tuning_session.SEARCH_SHARE", 0.0)
    found = tune({}, "tripled", "-l", "S0", "-l", "S1", "--time-limit", "100")
    assert 2 == found.code
    assert "not tuned, for lack of time: tripled[n=1000], tripled[n=100000]" in found.out


def test_what_is_known_is_kept_after_every_round(tune, monkeypatch):
    """So that a machine that is lost in the third round has left what two rounds told."""
    seen = []

    def lost(*words, **more):
        for times in timed_in_turn(*words, **more):
            yield times
            seen.append(kept()["choices"] if Path("reports/tuning").exists() else [])
            seen.append(json.loads(Path("report.json").read_text())["cases"][0]["adopted"])
        raise BackendUnavailable("the device is gone")

    monkeypatch.setattr("prism_bench.workflows.tuning_session.timed_in_turn", lost)
    found = tune(HALF, "--output", "report.json")
    assert [[], False] == seen[:2], "one process says nothing of the spread between processes"
    assert ({"block": 64, "items": 1}, True) == (seen[2][0]["configuration"], seen[3])
    assert (2, {"block": 64, "items": 1}) == (found.code, kept()["choices"][0]["configuration"])


def test_a_store_that_cannot_be_read_is_told_before_anything_is_measured(tune, monkeypatch):
    monkeypatch.setattr("prism_bench.workflows.tuning_session.Trials", None)
    path = path_for(identity.machine({})["id"])
    path.parent.mkdir(parents=True)
    path.write_text("{")
    found = tune({})
    assert (2, True) == (found.code, "not readable as a store of choices" in found.err)


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("--tolerance", "0.1"), "--tolerance 0.1: it is for --precision and --policy"),
        (("none.json",), "none.json: no such file"),
        (("tripled:plain",), "none of these cases can be tuned"),
        (("trippled",), "unknown kernel, family or case 'trippled'; did you mean tripled"),
    ],
)
def test_a_wrong_word_ends_with_2_and_says_so(tune, words, complaint):
    found = tune({}, *words)
    assert 2 == found.code
    assert complaint in found.err


def test_an_impossible_space_is_the_kernels_problem(tune, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(TUNABLE, folder)
    spec = folder / "arith" / "tripled.py"
    spec.write_text(spec.read_text().replace("block * items <= 256", "block * items <= 1"))
    found = tune({}, catalogue=folder)
    assert 2 == found.code
    assert "tune: the default block=128,items=1 needs at most 256 elements a block" in found.err


@pytest.fixture
def launched(shell, script):
    """A function that runs the toy with the choice of block 64 in the store, whose text may be changed before."""

    def run(*words, catalogue=TUNABLE, change=lambda text: text):
        script(HALF)
        found = choice(
            workload={"n": 1000}, toolchain={}, source=launched_hash(discover(TUNABLE).kernel("tripled"))
        )  # fmt: skip
        machine = identity.machine({})["id"]
        path = write_kept(KeptChoices(machine, "no device (scripted times)", "null", (found,)), path_for(machine))
        path.write_text(change(path.read_text()))
        where = ("-b", "null", "-l", "S0", "--processes", "1", "--catalogue", catalogue, "--output", "r.json.gz")
        return shell("run", "-f", "tripled", *where, *words)

    return run


def recorded():
    record = store.read(Path("r.json.gz"))
    return record, record.case("tripled[n=1000]")


def test_a_run_launches_by_the_choice_and_its_record_says_so(launched):
    assert "tuned: 1 of 2 cases by reports/tuning/" in launched().err
    record, case = recorded()
    assert ({"block": 64, "items": 1}, ["tripled[n=1000]"]) == (case.configuration, list(record.tuning["choices"]))
    assert pytest.approx(5e-7, rel=0.05) == case.measurement("cold_time").median


def test_an_untuned_run_launches_as_the_spec_says(launched):
    assert "" == launched("--untuned").err
    record, case = recorded()
    assert ({"block": 128, "items": 1}, {"asked": "untuned"}) == (case.configuration, record.tuning)
    assert pytest.approx(1e-6, rel=0.05) == case.measurement("cold_time").median


def test_a_changed_source_makes_the_choice_stale_and_a_run_says_so(launched, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(TUNABLE, folder)
    source = folder / "arith" / "tripled.cu"
    source.write_text(source.read_text().replace("3.0f", "3.f"))
    found = launched(catalogue=folder)
    assert "stale choices, the default is launched: tripled[n=1000]: the source changed" in found.err
    record, case = recorded()
    assert {"tripled[n=1000]": "the source changed"} == record.tuning["stale"]
    assert {"block": 128, "items": 1} == case.configuration


def test_a_store_of_another_device_is_told_and_not_used(launched):
    found = launched(change=lambda text: text.replace("no device (scripted times)", "NVIDIA A100"))
    assert "untuned: the stored choices are of device NVIDIA A100, not no device (scripted times)" in found.err
    assert "unused" in recorded()[0].tuning


def test_a_store_that_is_cut_ends_with_2(launched):
    found = launched(change=lambda text: text[:100])
    assert (2, True) == (found.code, "not readable as a store of choices" in found.err)


LEAN = {"*@block=64,items=1": {"joules": 0.008, "seconds": 1.1e-6, "noise": 0.002},
        "*@block=256,items=1": {"joules": 0.012, "seconds": 7e-7, "noise": 0.002},
        "*": {"joules": 0.010, "seconds": 1e-6, "noise": 0.002}}  # fmt: skip


def test_what_takes_least_energy_is_adopted_with_the_front_of_time_and_joules(tune):
    found = tune(LEAN, "--least", "energy", "--output", "report.json")
    assert 0 == found.code
    assert " less energy " in found.out and "less time or less energy" in found.out
    (choice,) = kept()["choices"]
    assert ({"block": 64, "items": 1}, "energy") == (choice["configuration"], choice["least"])
    assert pytest.approx([0.010, 0.008], rel=0.02) == choice["joules"]
    assert pytest.approx([1e-6, 1.1e-6], rel=0.02) == choice["seconds"]
    (case,) = json.loads(Path("report.json").read_text())["cases"]
    front = [task.partition("@")[2] for task, *_ in (entry.values() for entry in case["front"])]
    assert ["block=256,items=1", "block=64,items=1"] == [front[0], front[-1]]
    assert 1.25 == pytest.approx(case["speedup"], rel=0.03)


def test_without_an_energy_counter_nothing_is_tuned_for_energy(tune):
    found = tune({}, "--least", "energy")
    assert (2, True) == (found.code, "no energy to tune by: this device has no energy counter" in found.err)
    assert not Path("reports/tuning").exists()


@pytest.mark.parametrize("words", [("--least", "watts"), ("--least", "energy", "--policy")])
def test_other_quantities_and_modes_are_refused(tune, words):
    assert 2 == tune({}, *words).code
