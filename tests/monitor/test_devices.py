"""Which devices there are, which CUDA sees, and which one a word means."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.monitor.nvml import board_facts, by_uuid, chosen, devices, opened, visible
from prism_bench.monitor.probe import Probe
from prism_bench.record.identity import host_digest

FIRST, SECOND = "GPU-11111111-2222-3333-4444-555555555555", "GPU-99999999-2222-3333-4444-555555555555"
SLICE = "MIG-aaaaaaaa-2222-3333-4444-555555555555"


@pytest.fixture
def two(gpus):
    gpus.add()
    gpus.add(uuid=SECOND)
    return gpus


@pytest.fixture
def cut(two):
    """The second device is cut into slices, of which there is one."""
    two.set(1, mig=1)
    two.set(110, uuid=SLICE, name="NVIDIA H200 MIG 1g.18gb", memory_total=16_000, memory_used=1_000, processes="")
    return two


def listed():
    with opened() as pynvml:
        return devices(pynvml)


def uuids(found):
    return [one.uuid for one in found]


def test_every_device_is_listed_and_a_slice_behind_its_gpu(cut):
    assert [FIRST, SECOND, SLICE] == uuids(listed())
    assert [(0, False), (1, False), (1, True)] == [(one.index, one.is_slice) for one in listed()]


def test_one_that_does_not_answer_is_left_out(two):
    two.set(0, lost=1)
    assert [(1, SECOND)] == [(one.index, one.uuid) for one in listed()]


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (None, [FIRST, SECOND]),
        ("1,0", [SECOND, FIRST]),
        ("1", [SECOND]),
        ("", []),
        ("-1", []),
        ("0,7,1", [FIRST]),
        ("0,0", [FIRST]),
        (f"{SECOND},0", [SECOND, FIRST]),
        ("GPU-9999", [SECOND]),
        ("GPU-8", []),
    ],
)
def test_cuda_sees_what_its_variable_says_in_that_order(two, words, seen):
    environment = {} if words is None else {"CUDA_VISIBLE_DEVICES": words}
    assert seen == uuids(visible(listed(), environment))


def test_without_the_variable_slices_stand_for_the_gpu_that_is_cut(cut):
    assert [FIRST, SLICE] == uuids(visible(listed(), {}))
    assert [SLICE] == uuids(visible(listed(), {"CUDA_VISIBLE_DEVICES": SLICE}))


def test_a_word_names_an_index_or_the_beginning_of_a_uuid(cut):
    assert [SECOND] == uuids(chosen(listed(), ["1"]))
    assert [SLICE, FIRST] == uuids(chosen(listed(), ["MIG-aaaa", "0", "GPU-1"]))
    with pytest.raises(UsageError, match="unknown device '7'"):
        chosen(listed(), ["7"])


def test_cudas_own_spelling_of_a_uuid_is_understood(cut):
    assert SECOND == by_uuid(listed(), "99999999222233334444555555555555").uuid
    assert SLICE == by_uuid(listed(), SLICE).uuid
    assert by_uuid(listed(), "0" * 32) is None


def test_a_slice_has_its_own_memory_and_its_boards_clocks(cut):
    with opened() as pynvml:
        probe = Probe(pynvml, devices(pynvml)[2])
        reading = probe.read(0.0)
    assert (16_000, 1.98e9, 310.5) == tuple(reading.values[one] for one in ("memory_total", "sm_clock", "power"))
    assert "this device does not offer it" == reading.missing["utilization"]


def test_a_board_has_its_firmware_its_power_limit_and_its_host(two):
    two.set(1, power_limit=500_000, vbios="96.00.99")
    assert {"host": host_digest(), "vbios": "96.00.89.00.01", "power_limit": 700.0} == board_facts(FIRST)
    assert {"host": host_digest(), "vbios": "96.00.99", "power_limit": 500.0} == board_facts(
        SECOND.removeprefix("GPU-")
    )


def test_a_board_has_the_clocks_that_it_is_set_to(two):
    two.set(0, application_sm_clock=1395, application_memory_clock=3201, boost_sm_clock=1980)
    found = board_facts(FIRST)
    assert (1.395e9, 3.201e9, 1.98e9) == tuple(
        found[name] for name in ("application_sm_clock", "application_memory_clock", "boost_sm_clock")
    )


def test_what_a_board_does_not_offer_is_left_out(two):
    two.set(0, vbios=None)
    assert {"host": host_digest(), "power_limit": 700.0} == board_facts(FIRST)
    assert {"host": host_digest()} == board_facts("GPU-unknown")
    two.set(0, lost=1)
    assert {"host": host_digest()} == board_facts(FIRST)
