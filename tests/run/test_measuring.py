"""Peers are timed beside the kernel by the same clock; a wrong or failing one has an empty cell and a reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.measure import ClockGate, Criterion
from prism_bench.record.measurement import Sample
from prism_bench.run.measuring import DeviceWatcher, measure_cpu, measure_metric, measure_runnable
from prism_bench.run.peers import CasePeers
from prism_bench.run.settings import Settings

CASE = discover(Path(__file__).parent.parent / "toys").case("double[n=1000]")
THREE = Criterion(min_samples=3, max_samples=3)
SETTINGS = Settings(criteria=dict.fromkeys(("cold_time", "hot_time", "wall_time", "first_call_time"), THREE))


class Library(NullBackend):
    """The scripted backend with one library call per name, played by a scripted case."""

    def peers(self, case):
        return ("right", "wrong", "broken", "sticky")[: self.offered]

    def prepare_peer(self, case, name, runnable):
        if name == "broken":
            raise ImportError("no library here\nsecond line")
        if name == "sticky":
            raise RuntimeError("cudaErrorIllegalAddress")
        return NullBackend({"*": {"wrong": name == "wrong", "seconds": 2e-6}}).prepare(case, runnable.inputs)


def peers(offered, name="null", **settings):
    backend = Library({"*": {"seconds": 1e-6}})
    backend.offered, backend.name = offered, name
    with backend.prepare(CASE, CASE.inputs(0)) as runnable:
        return CasePeers(backend, runnable, DeviceWatcher(), replace(SETTINGS, **settings)).measure().measurements


def test_a_right_peer_is_timed_by_the_same_metrics():
    found = peers(1)
    assert [("peer:right", "cold_time"), ("peer:right", "launch_time"), ("peer:right", "hot_time")] == [
        (one.subject, one.metric) for one in found
    ]
    assert 2e-6 == pytest.approx(found[0].median, rel=0.1)


def test_a_wrong_peer_has_no_time_and_a_reason():
    wrong = peers(2)[-1]
    assert ("peer:wrong", (), False) == (wrong.subject, wrong.processes, wrong.valid)
    assert wrong.reason.startswith("peer wrong: its y differs from the reference by ")


def test_a_failing_peer_has_an_empty_cell_with_the_first_line_of_its_reason():
    broken = peers(3)[-1]
    reason = "peer broken: ImportError: no library here"
    assert ("peer:broken", (), reason) == (broken.subject, broken.processes, broken.reason)


def test_a_peer_that_spoils_the_device_ends_the_process():
    assert "peer sticky: RuntimeError: cudaErrorIllegalAddress" == peers(4)[-1].reason
    with pytest.raises(RuntimeError, match="IllegalAddress"):
        peers(4, name="cuda")


def test_peers_can_be_left_out():
    assert [] == peers(4, peers=False)


def test_the_cpu_is_timed_beside_the_kernel_at_the_documents_size_only():
    with NullBackend().prepare(CASE, CASE.inputs(0)) as runnable:
        (cpu,) = measure_cpu(runnable, SETTINGS)
        assert ("cpu", "wall_time", 3) == (cpu.subject, cpu.metric, len(cpu.samples))
        assert [] == measure_cpu(runnable, replace(SETTINGS, cpu_baseline=False))
        for other in (replace(CASE, label="S1"), replace(CASE, variant="by_adding")):
            runnable.case = other
            assert [] == measure_cpu(runnable, SETTINGS)


def test_what_belongs_to_the_first_process_is_left_out_of_the_others():
    with NullBackend().prepare(CASE, CASE.inputs(0)) as runnable:
        settings = replace(SETTINGS, first_process_only=("hot_time",))
        metrics = []
        for process in (0, 1):
            skipped = settings.left_out(CASE, process)
            measured = measure_runnable(runnable, "kernel", settings, DeviceWatcher(), skipped=skipped)
            metrics.append([measurement.metric for measurement in measured])
    assert [["cold_time", "launch_time", "hot_time"], ["cold_time", "launch_time"]] == metrics


def test_warm_up_calls_are_not_among_the_samples():
    calls = iter(range(100))
    measured = measure_metric("hot_time", "kernel", lambda: Sample(float(next(calls) + 1)), THREE, ClockGate())[0]
    assert (4.0, 5.0, 6.0) == measured.samples


def test_a_first_call_is_not_warmed_up():
    calls = iter(range(100))
    once = Criterion(min_samples=1, max_samples=1)
    measured = measure_metric("first_call_time", "kernel", lambda: Sample(float(next(calls) + 1)), once, ClockGate())[0]
    assert (1.0,) == measured.samples


def test_the_hosts_launch_cost_stays_valid_where_the_clock_was_throttled():
    gate = ClockGate(patience=0, pause=lambda seconds: None)
    gate.fastest = 2e9
    cold, launch = measure_metric("cold_time", "kernel", lambda: Sample(1e-6, 1e9, 5e-6), THREE, gate)
    assert (False, True) == (cold.valid, launch.valid)
    assert ("launch_time", (5e-6,) * 3, None) == (launch.metric, launch.samples, launch.reason)


def test_later_processes_measure_the_cold_time_of_a_peer_alone():
    backend = Library({"*": {"seconds": 1e-6}})
    backend.offered = 1
    with backend.prepare(CASE, CASE.inputs(0)) as runnable:
        found = CasePeers(backend, runnable, DeviceWatcher(), SETTINGS, process=1).measure().measurements
    assert ["cold_time", "launch_time"] == [one.metric for one in found]


def energies(behaviour, **more):
    """What the kernel's hot time and energy are on a board that is played."""
    settings = replace(SETTINGS, criteria={**SETTINGS.criteria, "energy": Settings().criteria["energy"]})
    backend = NullBackend({"*": {"joules": 0.01, **behaviour}})
    with backend.prepare(CASE, CASE.inputs(0)) as runnable:
        found = measure_runnable(runnable, "kernel", settings, DeviceWatcher(), energy=True, **more)
    return {one.metric: one for one in found}


def test_energy_follows_the_hot_time_and_shares_its_faults():
    found = energies({})
    assert ["cold_time", "launch_time", "hot_time", "energy"] == list(found)
    assert found["energy"].median == pytest.approx(0.01, rel=0.02)
    failed = energies({"fails": True})
    assert ("scripted to fail", "scripted to fail") == (failed["hot_time"].reason, failed["energy"].reason)
    assert "energy" not in energies({}, skipped=("hot_time",))
    doubtful = replace(found["energy"], valid=False, reason="another process worked on the GPU")
    assert (found["energy"].energy, None) == (found["energy"].launch_energy, doubtful.launch_energy.joules)
    assert doubtful.reason == doubtful.launch_energy.reason
