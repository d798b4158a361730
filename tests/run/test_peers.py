"""A bad peer costs its own cell, with the reason, whatever it does to its process; the others keep their times."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.errors import MeasurementInvalid
from prism_bench.io.installation import pip_install
from prism_bench.io.workers import WorkerDied
from prism_bench.record.measurement import Measurement
from prism_bench.run.job import Run
from prism_bench.run.measuring import DeviceWatcher
from prism_bench.run.peers import (
    LONGEST_REASON,
    CasePeers,
    named,
    peers_far_behind,
    peers_without_time,
)
from prism_bench.run.session import result_of
from prism_bench.run.settings import combined
from prism_bench.run.worker import PeerSteps
from prism_bench.spec.peer import LIBRARIES, PeerFacts
from prism_bench.spec.tolerance import normwise
from tests.run.conftest import TOYS
from tests.run.test_measuring import CASE, SETTINGS

GOOD = {"seconds": 2e-6}
SCENE = "double[n=1000]"


@pytest.fixture
def cells(play):
    """A function that runs one case with planted peers in real processes; returns its cells and its whole result."""

    def run(peers, **more):
        peers = {"before": GOOD, **peers, "later": GOOD}
        record = play({SCENE: {"peers": peers}}, filters=[SCENE], **{"processes": 2, **more})
        result = record.case(SCENE)
        return {one.subject: one for one in result.measurements if one.metric == "cold_time"}, result

    return run


def well(cell, processes=2):
    return cell.valid and processes == len(cell.processes)


BAD = {
    "raises": ({"raises": "no luck"}, "peer bad: RuntimeError: no luck"),
    "changes": ({"changes": True}, "peer bad: it changed numpy.seterr['divide'] and left it so"),
    "wrong": ({"wrong": True}, "peer bad: its y differs from the reference by "),
    "memory": ({"memory": True}, "peer bad: "),
    "crash": ({"crash": True}, "peer bad: it crashed: the process ended (killed by signal 6)"),
    "hang": ({"hang": True}, "peer bad: no answer within 2 s, so its process was ended"),
    "leaks": ({"leaks": 2 << 20}, "peer bad: it leaks: "),
}


@pytest.mark.parametrize(
    ("fault", "lanes"), [*((fault, 1) for fault in BAD), ("changes", 3), ("crash", 3), ("hang", 3), ("leaks", 3)]
)
def test_a_bad_peer_costs_its_cell_and_nothing_else(cells, monkeypatch, fault, lanes):
    behaviour, reason = BAD[fault]
    monkeypatch.setattr("prism_bench.run.pool.WORTH_A_START", 1)
    found, result = cells({"bad": behaviour}, peer_timeout=2.0, lanes=lanes)
    assert "ok" == result.status
    assert well(found["kernel"]) and well(found["peer:before"]) and well(found["peer:later"])
    assert (False, ()) == (found["peer:bad"].valid, found["peer:bad"].processes)
    assert found["peer:bad"].reason.startswith(reason)
    assert 1 == len([one for one in result.measurements if one.subject == "peer:bad"])
    assert 2 == len(result.verification)


def taken(peers, backend=NullBackend, **plan):
    """The results of the planted peers in this process."""
    backend = backend({"*": {"peers": peers}})
    with backend.prepare(CASE, CASE.inputs(0)) as runnable:
        return CasePeers(backend, runnable, DeviceWatcher(), SETTINGS, **plan).measure()


def test_what_a_peer_changed_is_restored_before_the_next_one():
    with np.errstate(divide="warn"):
        results = taken({"bad": {"changes": True}, "good": GOOD})
        assert "warn" == np.geterr()["divide"]
    assert [False, True] == [one.valid for one in results.measurements if one.metric == "cold_time"]


def test_what_a_peer_changed_before_it_raised_is_restored_and_the_error_is_the_reason():
    with np.errstate(divide="warn"):
        (cell,) = taken({"bad": {"changes": True, "wrong": True}}).measurements
        assert "warn" == np.geterr()["divide"]
    assert cell.reason.startswith("peer bad: its y differs")


def test_an_avoided_peer_is_not_touched_and_has_its_reason():
    results = taken({"bad": {"crash": True}}, avoided={"bad": "it crashed: killed by signal 6"})
    (cell,) = results.measurements
    assert ("peer bad: it crashed: killed by signal 6", ()) == (cell.reason, cell.processes)
    assert {} == results.facts


def test_a_peer_far_behind_in_the_first_process_is_not_measured_again(cells):
    kernel = cells({})[0]["kernel"].median
    peers = {"far": {"seconds": 2.1 * kernel}, "near": {"seconds": 1.9 * kernel}}
    found, result = cells(peers, processes=3)
    assert (1, 2) == (len(found["peer:far"].processes), len(found["peer:near"].processes))
    assert found["peer:far"].valid and {"far", "near"} <= result.peers.keys()
    assert 2 == len(cells(peers, peer_repeated_within=None)[0]["peer:far"].processes)


def test_peers_far_behind_are_those_beyond_the_factor_of_a_kernel_with_a_time():
    kernel, peer = Measurement("cold_time", "kernel", ((1.0,),)), Measurement("cold_time", "peer:p", ((3.0,),))
    result = result_of(CASE, "ok", measurements=(kernel, peer), reason=None)
    assert ["p"] == peers_far_behind(result, 2.9)
    assert [] == peers_far_behind(result, 3.0) == peers_far_behind(result, None)
    assert [] == peers_far_behind(replace(result, measurements=(peer,)), 2.0)
    doubtful = replace(kernel, valid=False)
    assert [] == peers_far_behind(replace(result, measurements=(doubtful, peer)), 2.0)
    assert [] == peers_far_behind(replace(result, measurements=(kernel, replace(peer, valid=False))), 2.0)


def test_each_step_of_a_peer_is_announced_and_the_end_of_all():
    steps = []
    taken({"a": GOOD, "b": GOOD}, begun=steps.append)
    assert ["a", "b", ""] == list(dict.fromkeys(steps))
    assert 4 == steps.count("a")  # its set-up, its check, and two metrics
    steps.clear()
    taken({}, begun=steps.append)
    assert [] == steps


def test_peers_that_are_only_checked_have_no_times():
    results = taken({"good": GOOD, "bad": {"wrong": True}}, timed=False)
    assert ["peer:bad"] == [one.subject for one in results.measurements]


class Unsteady(NullBackend):
    """A peer whose calls after the timing are not those before."""

    def prepare_peer(self, case, name, runnable):
        def confirm():
            raise MeasurementInvalid("torch.compile compiled it again while it was timed")

        peer = super().prepare_peer(case, name, runnable)
        peer.confirm = confirm if name == "torch_compiled" else peer.confirm
        return peer


def test_a_peer_that_was_not_as_named_throughout_has_no_time_in_any_metric():
    cells = taken({"torch_compiled": GOOD, "torch": GOOD}, Unsteady).measurements
    bad = [one for one in cells if one.subject == "peer:torch_compiled"]
    assert [(False, (), "torch.compile compiled it again while it was timed")] == [
        (one.valid, one.samples, one.reason.removeprefix("peer torch_compiled: ")) for one in bad
    ]
    assert all(one.samples for one in cells if one.subject == "peer:torch")


class Rough(NullBackend):
    """Peers whose results are off by a relative error."""

    off = 0.0
    library = "torch"

    def prepare_peer(self, case, name, runnable):
        peer = super().prepare_peer(case, name, runnable)
        exact = peer.arrays
        peer.arrays = lambda names: {key: value * (1 + self.off) for key, value in exact(names).items()}
        peer.evidence = lambda: {"library": self.library, "version": "1.2", "launches": 3, "sass": "abc"}
        return peer


def rough(off, monkeypatch, strong=False):
    monkeypatch.setattr(Rough, "off", off)
    monkeypatch.setattr("prism_bench.run.peers.CasePeers.is_strong", lambda self, name: strong)
    results = taken({"good": GOOD}, Rough)
    return results.measurements, results.facts["good"]


def test_a_peer_within_the_kernels_tolerance_has_no_remark(monkeypatch):
    measurements, facts = rough(0.0, monkeypatch)
    assert ({"library": "torch", "version": "1.2", "launches": 3}, True) == (facts, measurements[0].valid)


def test_a_peer_that_passes_the_looser_tolerance_only_keeps_its_time_and_says_how_imprecise_it_is(monkeypatch):
    measurements, facts = rough(5e-4, monkeypatch)
    assert measurements[0].valid
    precise = "1000 of 1000 elements are outside the kernel's tolerance (exact)"
    assert f"its y differs from the reference by 0.0005; {precise}" == facts["precision"]


def test_a_tolerance_of_the_norm_is_named_by_its_limit(monkeypatch):
    by_norm = replace(CASE, spec=replace(CASE.spec, tolerance=normwise(1e-5), golden=()))
    monkeypatch.setitem(globals(), "CASE", by_norm)
    _, facts = rough(5e-4, monkeypatch)
    assert "its y differs from the reference by 0.0005; the kernel is allowed 1e-05" == facts["precision"]


def test_a_peer_of_a_strong_library_must_pass_the_kernels_tolerance(monkeypatch):
    measurements, facts = rough(5e-4, monkeypatch, strong=True)
    assert ("peer good: its y differs from the reference by 0.0005", False) == (
        measurements[0].reason, measurements[0].valid
    )  # fmt: skip
    assert "precision" not in facts


def test_the_libraries_of_the_extra_are_strong_and_torch_is_not():
    assert {"torch": False, "cupy": False} == {name: LIBRARIES[name].is_strong for name in ("torch", "cupy")}


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    absent = replace(LIBRARIES["torch"], module="no_such_module")
    monkeypatch.setattr("prism_bench.backends.cuda.peers.library_state.LIBRARIES", {"torch": absent})
    monkeypatch.setattr("prism_bench.run.peers.CasePeers.library", lambda self, name: "torch")
    (cell,) = taken({"torch": GOOD}).measurements
    assert f"torch is not installed ({pip_install('peers', anywhere=True)})" == cell.reason


@pytest.mark.parametrize(
    ("name", "library"), [("torch", "torch"), ("torch_compiled", "torch"), ("torch_autotuned", "torch"), ("x", None)]
)
def test_the_library_of_a_form_is_that_of_its_peer(name, library):
    case = replace(CASE, spec=replace(CASE.spec, peers={"torch": lambda x, torch: 2 * x}))
    peers = CasePeers(NullBackend(), SimpleNamespace(case=case), DeviceWatcher(), SETTINGS)
    assert library == peers.library(name)


def test_a_reason_names_its_peer_once_and_stays_short():
    assert "peer torch_compiled: it hangs" == named("it hangs", "torch_compiled")
    assert "it changed torch.set_default_dtype" == named("it changed torch.set_default_dtype", "torch_compiled")
    assert LONGEST_REASON == len(named("x" * 1000, "torch"))


def test_a_metric_that_cannot_be_had_has_a_reason_that_names_the_peer():
    cells = {one.metric: one for one in taken({"good": {"fails": True}}).measurements}
    assert ("peer good: scripted to fail", True) == (cells["hot_time"].reason, cells["cold_time"].valid)


def cell(subject, *processes, metric="cold_time", reason=None):
    return Measurement(metric, subject, processes, valid=not reason, reason=reason)


def result(*measurements, **facts):
    case = result_of(CASE, "ok", None, measurements=measurements)
    return replace(case, peers={"torch": PeerFacts(**facts)} if facts else {})


def test_a_peer_without_a_time_in_one_process_has_none():
    timed = result(cell("kernel", (1.0,)), cell("peer:torch", (2.0,)), cell("peer:torch", (3.0,), metric="hot_time"))
    lost = result(cell("kernel", (1.0,)), cell("peer:torch", reason="torch raised"))
    whole = combined([timed, lost, timed])
    assert 3 == len(whole.measurement("cold_time").processes)
    assert [("cold_time", (), "torch raised")] == [
        (one.metric, one.processes, one.reason) for one in whole.measurements if one.subject == "peer:torch"
    ]


def test_a_metric_that_one_process_lacks_costs_that_process_alone():
    once = result(cell("peer:torch", (2.0,)), cell("peer:torch", metric="hot_time", reason="no graph"))
    assert {} == peers_without_time(once)
    assert 2 == len(combined([once, once]).measurement("cold_time", "peer:torch").processes)


def test_the_facts_of_all_processes_become_one_and_their_differences_a_note():
    first = result(cell("peer:torch", (2.0,)), library="torch", launches=3, precision="less")
    other = result(cell("peer:torch", (2.0,)), library="torch", launches=5, version="2.11")
    whole = combined([first, other])
    assert {"library": "torch", "launches": 3, "precision": "less", "version": "2.11"} == whole.peers["torch"]
    assert ("its processes differ in launches: 3 and 5",) == whole.measurement("cold_time", "peer:torch").notes


def test_a_peer_that_ends_its_worker_twice_ends_the_case():
    run = Run(discover(TOYS), "null", SETTINGS)
    death = WorkerDied("double[n=1000]", "crashed", "the process ended (exit status 3)")
    death.peer = "bad"
    assert [True, False] == [run.avoid(death, SCENE), run.avoid(death, SCENE)]
    run.results.clear()
    run.follow([death], 0, finished := [])
    assert ([SCENE], "crashed") == (finished, run.results[SCENE][0].status)


def test_a_set_up_may_take_three_times_as_long_as_another_step_of_a_peer():
    events = []
    steps = PeerSteps(events.append, 10.0)
    for name in ("a", "a", "b", "", "b"):
        steps(name)
    assert [30.0, 10.0, 30.0, None, 30.0] == [event.get("within") for event in events]
    assert ["a", "a", "b", "", "b"] == [event["peer"] for event in events]
