"""One look at one device through the real pynvml: SI values, reasons where there is none, and a device that is gone."""

import os

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import NO_DRIVER
from prism_bench.measure import Criterion
from prism_bench.monitor import nvml
from prism_bench.monitor.energy import energy_per_launch
from prism_bench.monitor.nvml import DeviceLost, devices, library, opened
from prism_bench.monitor.played_board import PlayedBoard
from prism_bench.monitor.probe import QUANTITIES, Probe


def look(now=0.0, place=0, **options):
    with opened() as pynvml:
        return Probe(pynvml, devices(pynvml)[place], **options).read(now)


def test_values_are_in_si_units(gpu):
    values = look().values
    assert {
        "utilization": 0.35, "memory_utilization": 0.12, "sm_clock": 1.98e9, "memory_clock": 3.201e9, "power": 310.5,
        "power_average": 300.0, "power_limit": 700.0, "energy": 5000.0, "temperature": 41, "memory_used": 30e9,
        "memory_free": 120e9, "memory_total": 150e9, "pcie_sent": 1.2e6, "pcie_received": 0.8e6, "mig": 0.0,
        "memory_temperature": 44, "max_sm_clock": 1.98e9, "ecc_uncorrected": 0.0, "rows_remapped": 0.0,
    }.items() <= {name: pytest.approx(value) for name, value in values.items()}.items()  # fmt: skip


def test_every_quantity_has_a_value_or_a_reason(gpu):
    reading = look()
    assert set(QUANTITIES) == set(reading.values) | set(reading.missing)
    assert not set(reading.values) & set(reading.missing)


def test_what_is_not_offered_is_null_with_its_reason_and_never_0(gpu):
    gpu.set(0, memory_temperature=None, power="!4", energy="!999")
    reading = look()
    assert not {"memory_temperature", "power", "energy", "board_throttled"} & set(reading.values)
    assert "this device does not offer it" == reading.missing["memory_temperature"]
    assert "this device does not offer it" == reading.missing["board_throttled"]
    assert "no permission to read it" == reading.missing["power"]
    assert "Unknown Error" == reading.missing["energy"]
    assert 300.0 == reading.values["power_average"]


def test_memory_that_the_driver_reserves_is_in_use_by_nobody(gpu):
    gpu.set(0, memory_reserved=660_000_000)
    values = look().values
    assert (30e9, 150e9 - 30e9 - 660e6) == (values["memory_used"], values["memory_free"])


def test_an_old_driver_says_so_and_its_old_names_are_tried(old_gpu):
    old_gpu.set(0, reasons=4)
    reading = look()
    assert 4.0 == reading.values["clock_reasons"]
    assert "this driver's NVML is too old to offer it" == reading.missing["sm_active"]


def test_gpm_gives_means_from_the_second_look_on(gpu):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0])
        assert "a mean needs a second sample" == probe.read(0.0).missing["sm_active"]
        values = probe.read(1.0).values
    assert (0.825, 0.4, 0.0, 0.61) == tuple(
        values[name] for name in ("sm_active", "sm_occupancy", "tensor_active", "dram_active")
    )


def test_a_measuring_process_reads_nothing_that_blocks(gpu):
    reading = look(full=False)
    assert not {"pcie_sent", "sm_active", "mig"} & (set(reading.values) | set(reading.missing))
    assert {"sm_clock", "power", "temperature", "clock_reasons"} <= set(reading.values)


def test_what_changes_slowly_stands_until_it_is_due(gpu):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0])
        probe.read(0.0)
        gpu.set(0, memory_used=31_000_000_000, sm_clock=1500)
        soon, later = probe.read(0.1), probe.read(0.6)
    assert (30e9, 1.5e9) == (soon.values["memory_used"], soon.values["sm_clock"])
    assert 31e9 == later.values["memory_used"]


def test_a_reading_is_completed_by_what_was_read_too_long_ago(gpu):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0])
        probe.read(0.0)
        probe.read(0.2)
        gpu.set(0, memory_used=31_000_000_000, sm_clock=1500)
        assert probe.completed(0.3, since=0.0) is None
        found = probe.completed(0.3, since=0.1)
    assert (1.98e9, 31e9) == (found.values["sm_clock"], found.values["memory_used"])


def test_with_a_budget_the_clock_is_read_every_time_and_every_call_has_its_cost(gpu):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0], full=False, budget=0.01)
        for now in (0.0, 0.001, 0.002):
            probe.read(now)
    costs = probe.costs()
    assert 3 == costs["sm_clock"].calls
    assert {1} == {costs[name].calls for name in ("temperature", "processes", "ecc_corrected")}
    assert all(one.wall > 0 for one in costs.values())


def test_the_mean_of_the_power_has_an_older_name(gpu):
    gpu.set(0, power=None, power_average=None, power_usage=250_000)
    reading = look()
    assert 250.0 == reading.values["power_average"]
    assert "this device does not offer it" == reading.missing["power"]


def test_what_was_not_offered_is_not_asked_for_again(gpu):
    gpu.set(0, temperature=None)
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0])
        probe.read(0.0)
        gpu.set(0, temperature=55)
        assert "temperature" in probe.read(100.0).missing


@pytest.mark.parametrize("fault", [{"lost": 1}, {"sm_clock": "!16"}, {"power": "!15"}])
def test_a_device_that_is_gone_is_lost(gpu, fault):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0])
        probe.read(0.0)
        gpu.set(0, **fault)
        with pytest.raises(DeviceLost, match="GPU"):
            probe.read(1.0)


@pytest.mark.parametrize(("code", "words"), [(9, "Driver Not Loaded"), (18, "version mismatch"), (4, "Permissions")])
def test_a_library_that_does_not_open_says_why_in_one_line(gpu, code, words):
    gpu.library(init=f"!{code}")
    with pytest.raises(BackendUnavailable, match=words) as told:
        library()
    assert "\n" not in str(told.value)
    assert "without it" in str(told.value)


def test_a_missing_library_is_named(gpu, monkeypatch):
    import pynvml

    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", missing)
    with pytest.raises(BackendUnavailable, match="NVML Shared Library Not Found"):
        library()


@pytest.mark.parametrize(("driver", "words"), [(None, NO_DRIVER), (object(), "runs go on without it")])
def test_a_library_that_is_missing_is_a_missing_driver_only_if_cuda_has_none_either(gpu, monkeypatch, driver, words):
    monkeypatch.setattr(nvml, "cuda_driver", lambda: driver)
    gpu.library(init="!12")
    with pytest.raises(BackendUnavailable) as error:
        library()
    assert words in str(error.value)


def processes_of(ours=frozenset()):
    return {one.pid: (one.name, one.memory, one.ours, one.busy) for one in look(ours=ours).processes}


def test_processes_other_than_ours_are_neighbours(gpu):
    me = os.getpid()
    gpu.set(0, processes=f"{me}:500 77:2000", busy="77")
    gpu.library(**{"process.77": "/opt/secret/train.py --lr 1"})
    found = processes_of(frozenset({me}))
    assert (True, False) == found[me][2:]
    assert ("train.py", 2000, False, True) == found[77]


def test_in_a_container_only_who_comes_later_is_known_to_be_a_neighbour(gpu):
    gpu.set(0, processes="41:500", busy=None)
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0], ours=frozenset({os.getpid()}))
        first = probe.read(0.0)
        gpu.set(0, processes="41:500 42:600")
        later = probe.read(10.0)
    assert [None] == [one.ours for one in first.processes]
    assert [(None, None), (False, None)] == [(one.ours, one.busy) for one in later.processes]


def test_processes_that_may_not_be_seen_are_unknown_and_not_none(gpu):
    gpu.set(0, processes="!4")
    reading = look()
    assert reading.processes is None
    assert "no permission to read it" == reading.missing["processes"]


def test_the_energy_counter_is_read_alone(gpu):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[0])
        assert 5000.0 == probe.energy()
        for lacking, reason in ((None, "this device does not offer it"), ("!4", "no permission to read it")):
            gpu.set(0, energy=lacking)
            assert reason == probe.energy()


def test_power_has_the_scopes_that_the_device_offers(gpu):
    with opened() as pynvml:
        whole = devices(pynvml)[0]
        assert {"gpu": 310.5} == Probe(pynvml, whole).power()
        gpu.set(0, power_module=480_250)
        assert {"gpu": 310.5, "module": 480.25} == Probe(pynvml, whole).power()
        gpu.set(0, power="!4")
        probe = Probe(pynvml, whole)
        assert [{"module": 480.25}] * 2 == [probe.power(), probe.power()]
        gpu.set(0, lost=1)
        with pytest.raises(DeviceLost):
            probe.power()


class Wired(PlayedBoard):
    """A board whose counter and power go through the fake library and pynvml before they are read."""

    def __init__(self, gpu, probe, **facts):
        super().__init__(**facts)
        self._gpu, self._probe = gpu, probe

    def energy(self):
        self._gpu.set(0, energy=round(super().energy() * 1e3))
        return self._probe.energy()

    def power(self):
        watts = {
            {"gpu": "power", "module": "power_module"}[scope]: round(w * 1e3) for scope, w in super().power().items()
        }
        self._gpu.set(0, **watts)
        return self._probe.power()


@pytest.mark.parametrize(
    ("facts", "scope", "reason"),
    [
        ({}, "gpu", None),
        ({"module": 150.0}, "module", None),
        ({"fault": "resets"}, None, "the energy counter was reset"),
    ],
)
def test_energy_through_the_library_has_scope_or_reason(gpu, facts, scope, reason):
    gpu.set(0, power_module=0 if "module" in facts else None)
    with opened() as pynvml:
        board = Wired(gpu, Probe(pynvml, devices(pynvml)[0]), **facts)
        criterion = Criterion(precision=0.02, min_samples=4, seconds=2.0)
        found = energy_per_launch(board.repeated(), board, criterion, clock=board.clock, pause=board.pause).energy
    assert scope == found.scope
    assert (found.reason or "").startswith(reason or "")
    if scope:
        assert found.joules == pytest.approx((600 + facts.get("module", 0.0)) * board.each, rel=0.03)
