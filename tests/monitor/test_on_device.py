"""The same on a real device: its driver answers, a sampler is cheap, a launch has an energy."""

import pytest

from prism_bench.monitor import watched
from prism_bench.monitor.probe import QUANTITIES
from prism_bench.run import Settings
from prism_bench.run.measuring import DeviceWatcher
from tests.built_in import CATALOGUE

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend():
    from prism_bench.backends import open_backend

    return open_backend("cuda")


@pytest.fixture
def sampler(backend):
    with watched(backend.facts()["uuid"]) as found:
        yield found


def test_cudas_device_is_found_and_every_quantity_has_a_value_or_a_reason(sampler):
    sampler.beat()
    reading = sampler.latest()
    assert {"sm_clock", "temperature", "clock_reasons"} <= set(reading.values)
    assert set(reading.values) | set(reading.missing) <= {*QUANTITIES, "processes"}


def test_a_window_around_a_kernel_has_its_clocks(backend, sampler):
    import prism_bench

    with prism_bench.prepare("vector_add", "S1") as runnable:
        once = runnable.timers()["hot_time"]()
        with sampler.window() as window:
            for _ in range(100):
                once()
    low, _, high = window.evidence.spans["sm_clock"]
    assert 1e8 < low <= high < 4e9
    assert window.evidence.lost is None
    assert not window.evidence.busy_neighbours


def test_a_launch_has_an_energy_within_what_the_board_may_take(sampler):
    import prism_bench

    with prism_bench.prepare("vector_add", "S1") as runnable:
        once = runnable.timers()["hot_time"]()
        seconds = once().seconds
        (measured,) = DeviceWatcher(sampler).energy(once, Settings().criteria["energy"])
    energy = measured.energy
    assert energy.reason or 20 < energy.joules / seconds < 1500
    assert energy.reason or energy.uncertainty <= 0.25 * energy.joules
    assert energy.reason or energy.scope in ("gpu", "module")


def test_repeating_keeps_count_and_lets_the_device_rest(backend):
    import prism_bench

    with prism_bench.prepare("vector_add", "S0") as runnable:
        once = runnable.timers()["hot_time"]()
        replays = once.repeated()
        counts = [next(replays) for _ in range(4)]
        replays.close()
    assert counts == sorted(set(counts))
    assert all(0 == count % once.launches for count in counts)
    assert backend.harness.stream.done


def test_a_run_record_carries_evidence_and_energy(tmp_path, monkeypatch):
    from prism_bench.run import Settings, run

    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    settings = Settings(processes=1, peers=False, cpu_baseline=False)
    record = run(CATALOGUE, "cuda", CATALOGUE.cases(["vector_add"], ["S1"]), settings)
    case = next(case for case in record.cases if case.kernel == "vector_add" and case.label == "S1")
    assert all(one.evidence and one.evidence[0].readings for one in case.measurements)
    energy = case.measurement("energy").energy
    assert energy.joules or energy.reason
    assert record.monitor[0]["beats"]
