"""Each planted fault of the device is named, with its cause and its cure."""

import pytest

from prism_bench.doctor import checks


def found():
    return {check.name: check for check in checks.device_checks()}


def states(names=None):
    return {name: check.state for name, check in found().items() if names is None or name in names}


def test_a_sound_device_is_well(gpu):
    assert {"works"} == set(states().values())
    assert {
        "NVML", "driver", "GPUs", "persistence mode of GPU 0", "MIG of GPU 0", "clocks of GPU 0",
        "temperature of GPU 0", "memory errors of GPU 0", "other processes on GPU 0", "GPM of GPU 0",
    } == set(states())  # fmt: skip
    assert "1.98 GHz of 1.98 GHz, not locked: every sample carries its own clock" == found()["clocks of GPU 0"].found


@pytest.mark.parametrize(
    ("planted", "name", "state", "cause"),
    [
        ({"persistence": 0}, "persistence mode of GPU 0", "note", "the driver unloads between processes"),
        ({"reasons": 0x48}, "clocks of GPU 0", "broken", "held down: hw slowdown, hw thermal"),
        ({"reasons": 2}, "clocks of GPU 0", "note", "application clocks or locked clocks are in force"),
        ({"temperature": 86}, "temperature of GPU 0", "note", "near the point where heat holds the clock down"),
        ({"ecc_uncorrected": 3}, "memory errors of GPU 0", "broken", "the memory is faulty"),
        ({"processes": "77:2000000000"}, "other processes on GPU 0", "note", "they share the device"),
        ({"processes": "!4"}, "other processes on GPU 0", "note", "no permission to read it"),
        ({"sm_active": None}, "GPM of GPU 0", "note", "this device does not offer it"),
        ({"lost": 1}, "GPUs", "missing", "the driver lists none"),
        ({"sm_clock": "!15"}, "GPU 0", "broken", "the device fell off the bus or needs a reset"),
    ],
)
def test_a_planted_fault_is_named(gpu, planted, name, state, cause):
    gpu.set(0, **planted)
    check = found()[name]
    assert state == check.state
    assert check.cause.startswith(cause)
    assert check.cure


def test_an_old_driver_is_too_old(gpu):
    gpu.library(driver="470.82.01")
    check = found()["driver"]
    assert ("broken", "470.82.01", "CUDA 12 needs 525 or newer") == (check.state, check.found, check.cause)


def test_devices_that_are_hidden_are_found(gpu, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert ("broken", "CUDA_VISIBLE_DEVICES hides them") == (found()["GPUs"].state, found()["GPUs"].cause)


def test_a_slice_says_what_it_shares(gpu):
    gpu.set(0, mig=1)
    gpu.set(100, uuid="MIG-aaaa", name="NVIDIA H200 MIG 1g.18gb", memory_total=16e9, memory_used=1e9, processes="")
    check = found()["MIG of GPU 0"]
    assert ("note", "a slice: NVIDIA H200 MIG 1g.18gb") == (check.state, check.found)


def test_no_library_is_a_fault_where_a_driver_is_loaded_and_else_just_no_gpu(gpu, monkeypatch, tmp_path):
    gpu.library(init="!12")
    monkeypatch.setattr(checks, "NODES", tmp_path / "none")
    assert {"NVML": "missing"} == states()
    (tmp_path / "none").write_text("")
    assert {"NVML": "broken"} == states()
    assert "NVML Shared Library Not Found" in found()["NVML"].found
