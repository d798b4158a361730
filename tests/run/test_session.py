"""One process's work on one case: every failure becomes that case's result; only a useless device ends the process."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.measure import Criterion
from prism_bench.monitor import Rules
from prism_bench.run.measuring import DeviceWatcher
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import Settings, Watching, from_plain, to_plain
from prism_bench.spec.case import Case
from prism_bench.spec.workload import Workload

TOYS = discover(Path(__file__).parent.parent / "toys")
SETTINGS = Settings(criteria={metric: Criterion(min_samples=3, max_samples=3) for metric in ("cold_time", "hot_time")})


def result(script, name="double[n=1000]", process=0, backend=NullBackend, timed=True):
    (found,) = MeasuringSession(backend({"*": script}), TOYS, SETTINGS, process, timed).task(name)
    return found


def metrics(found):
    return [one.metric for one in found.measurements]


def test_a_right_case_is_verified_and_timed():
    found = result({})
    assert ("ok", None, 2) == (found.status, found.reason, len(found.verification))
    assert ["cold_time", "launch_time", "hot_time"] == metrics(found)
    assert {"sass": "null", "language": "cuda", "registers": 0, "spill_bytes": 0, "launches": 1} == found.code


def test_later_processes_time_what_the_first_one_verified():
    found = result({}, process=1)
    assert (0, ["cold_time", "launch_time", "hot_time"]) == (len(found.verification), metrics(found))


def test_verifying_alone_times_nothing():
    assert [] == metrics(result({}, timed=False))


@pytest.mark.parametrize("fault", ["wrong", "unwritten", "nan", "shape", "mutates", "skips"])
def test_a_wrong_kernel_gets_no_time(fault):
    found = result({fault: True})
    assert ("wrong", ()) == (found.status, found.measurements)
    assert found.reason.startswith("double[n=1000] on null: ")


def test_a_case_too_large_is_skipped_with_the_bytes_it_wanted():
    found = result({"memory": True})
    assert ("skipped", "double[n=1000]: out of memory: wants 1 PB, scripted") == (found.status, found.reason)


def test_an_exception_fails_its_case_with_its_words():
    found = result({"raises": "no luck"})
    assert ("failed", "double[n=1000]: RuntimeError: no luck") == (found.status, found.reason)


def test_an_exception_on_an_edge_fails_that_edge():
    backend = NullBackend({"double[n=1]": {"raises": "no luck"}})
    found = MeasuringSession(backend, TOYS, SETTINGS, 0).task("edges:double")
    statuses = {one.name: one.status for one in found}
    assert ["double[n=0]", "double[n=1]", "double[golden 1: n=3]"] == list(statuses)[:3]
    assert ["double[n=1]"] == [name for name, status in statuses.items() if status not in ("ok", "skipped")]
    skipped = [one for one in found if one.status == "skipped"]
    assert {f"{one.name}: not run, since double[n=1] failed" for one in skipped} == {one.reason for one in skipped}
    assert skipped and all(":" in one.name.partition("[")[2] for one in skipped)


def test_a_metric_that_cannot_be_had_leaves_its_cell_empty_and_says_why():
    found = result({"fails": True})
    assert "ok" == found.status
    hot = found.measurement("hot_time")
    assert ((), False, "scripted to fail") == (hot.processes, hot.valid, hot.reason)
    assert found.measurement("cold_time").valid


class Device(NullBackend):
    """The null backend under the name of a device, whose errors can spoil the process."""

    name = "cuda"


STICKY = [
    "cudaErrorIllegalAddress: an illegal memory access was encountered",
    "CUDA_ERROR_LAUNCH_FAILED: launch failure",
]


@pytest.mark.parametrize("words", STICKY)
def test_an_error_that_spoils_the_device_ends_the_process(words):
    with pytest.raises(RuntimeError, match=words):
        result({"raises": words}, backend=Device)


@pytest.mark.parametrize("words", STICKY)
def test_the_same_words_without_a_device_are_an_ordinary_failure(words):
    assert "failed" == result({"raises": words}).status


def test_another_error_of_a_device_is_an_ordinary_failure():
    assert "failed" == result({"raises": "CUDA_ERROR_INVALID_VALUE: invalid argument"}, backend=Device).status


def test_a_device_that_answers_no_more_ends_the_process_whatever_the_error_said():
    class Gone(Device):
        def answers(self):
            return False

    with pytest.raises(RuntimeError, match="hardware stack error"):
        result({"raises": "cudaErrorHardwareStackError: hardware stack error"}, backend=Gone)


def test_memory_that_the_driver_had_not_is_a_reason_to_skip():
    found = result({"raises": "CUDA_ERROR_OUT_OF_MEMORY: out of memory"}, backend=Device)
    assert ("skipped", True) == (found.status, found.reason.startswith("double[n=1000]: out of memory: "))


def test_a_clock_that_stays_throttled_makes_the_measurement_invalid():
    session = MeasuringSession(NullBackend({"double*": {"clock": 1e9}, "*": {"clock": 2e9}}), TOYS, SETTINGS, 0)
    session._watcher = DeviceWatcher(pause=lambda seconds: None)
    session.task("triple[n=1000]")
    cold = session.task("double[n=1000]")[0].measurement("cold_time")
    assert (False, 3) == (cold.valid, len(cold.samples))
    assert cold.reason.startswith("throttled throughout")
    assert cold.throttled > 0


def test_settings_survive_the_trip_to_a_process():
    settings = Settings(processes=2, seeds=(3, 4, 5), timeout=7.0)
    assert settings == from_plain(json.loads(json.dumps(asdict(settings))))


def test_the_protocol_holds_what_a_series_must_share():
    protocol = Settings(seed=5).protocol()
    assert {"version", "processes", "seed", "seeds", "criteria"} == set(protocol)
    assert 5 == protocol["seed"]


def test_how_a_device_is_watched_goes_along_only_where_it_was_chosen():
    chosen = Settings(watching=Watching(hertz=5.0, energy=False, rules=Rules(repeats=0)))
    assert not {"watching", "peer_timeout"} & set(to_plain(Settings()))
    assert "known_seconds" not in to_plain(Settings(known_seconds={"a": 1.0}))
    for settings in (Settings(), chosen, Settings(peer_timeout=5.0)):
        assert settings == from_plain(json.loads(json.dumps(to_plain(settings) | {"of_tomorrow": 1})))


@pytest.mark.parametrize(("label", "seeds"), [("S0", (3, 4)), ("edge", (3, 4)), ("S1", (3,)), ("S2", (3,))])
def test_large_sizes_are_verified_with_one_seed(label, seeds):
    case = Case(TOYS.kernel("double"), Workload(n=8), label)
    assert seeds == Settings(seeds=(3, 4)).seeds_of(case)


@pytest.mark.parametrize("process", [0, 1])
def test_a_kernel_that_is_idle_once_it_is_timed_is_wrong_and_has_no_times(process):
    found = result({"idles": True}, process=process)
    assert ("wrong", ()) == (found.status, found.measurements)
    assert "of cold_time, though it was right when it was verified" in found.reason
    assert [True] * (2 - 2 * process) + [False] == [entry["passed"] for entry in found.verification]
    assert ("cold_time", 1) == (found.verification[-1]["metric"], found.verification[-1]["sample"])


@pytest.mark.parametrize(("process", "subjects"), [(0, 2), (1, 2), (2, 1)])
def test_two_processes_time_the_peers(process, subjects):
    found = result({"peers": {"library": {"seconds": 1e-6}}}, process=process)
    assert subjects == len({one.subject for one in found.measurements})


def compiled_reason(process, check_compiled, **more):
    """Why the compiled peer, which is wrong, has no time; False where it has one, None where it was left out."""
    bad = {"peers": {"torch": {}, "torch_compiled": {"wrong": True}}}
    session = MeasuringSession(NullBackend({"*": bad}), TOYS, SETTINGS, process, **more)
    session.check_compiled = check_compiled
    (found,) = session.task("double[n=1000]")
    assert not [one.reason for one in found.measurements if one.subject == "peer:torch" and one.reason]
    return next((one.reason or False for one in found.measurements if one.subject == "peer:torch_compiled"), None)


def test_compiled_peers_are_checked_where_their_label_is_named():
    wrong = "peer torch_compiled: its y differs from the reference by "
    assert compiled_reason(0, None, timed=False).startswith(wrong)
    assert compiled_reason(0, None).startswith(wrong)
    assert compiled_reason(0, ["S0"], verifies=False).startswith(wrong)
    assert compiled_reason(0, [], timed=False) is None
    assert compiled_reason(0, ["S1"], verifies=False) is False
    assert compiled_reason(1, None) is False


def test_the_first_call_is_measured_once_for_each_kernel():
    kernel, variant = TOYS.case("double[n=1000]"), TOYS.case("double:by_adding[n=1000]")
    settings = Settings()
    assert [(), ("first_call_time",)] == [settings.left_out(case, 0) for case in (kernel, variant)]
    assert ("first_call_time", "energy") == settings.left_out(kernel, 1)
    known = Settings(known_code={kernel.name: "ab12"})
    assert [("first_call_time",), (), ()] == [known.left_out(kernel, 0, code) for code in ("ab12", "cd34", None)]


@pytest.mark.parametrize("process", [0, 1])
def test_an_empty_launch_has_no_energy(process):
    kernels = discover(Path(__file__).parents[2] / "kernels")
    settings = Settings(watching=Watching(energy_labels=()), first_process_only=())
    ceilings = {case.spec.ceiling: case for case in kernels.cases() if case.spec.ceiling}
    assert {"launch"} == {name for name, case in ceilings.items() if not settings.measures_energy(case, process)}
