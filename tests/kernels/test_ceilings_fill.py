"""The ceiling benchmarks keep a Hopper multiprocessor full: their registers, shared memory and launches leave room."""

from math import prod

import pytest

from prism_bench.compilation import compile_source, nvrtc_version
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.case import Device
from prism_bench.spec.launch import Launch
from tests.built_in import CATALOGUE

SM_COUNT = 132
HOPPER = Device(sm_count=SM_COUNT, max_shared_bytes=227 * 1024, compute_capability=90)
THREADS, BLOCKS, REGISTERS, SHARED_BYTES = 2048, 32, 65536, 228 * 1024  # of a multiprocessor of compute capability 9.0
RESERVED_SHARED = 1024  # of each block
REGISTERS_AT_ONCE = 8  # of a thread: what a warp of 32 takes comes in 256
MOST_ELEMENTS = 16  # of a thread before there are too few threads
NOT_FULL = {
    "null": "an empty kernel measures its launch",
    "persistent_queue": "one block a multiprocessor serves the queue; it is no ceiling",
    "tensor_products": "two warpgroups, whose sums take half of the registers, keep the tensor cores busy",
}


def installed():
    try:
        return bool(nvrtc_version())
    except BackendUnavailable:
        return False


def room_for(block, registers, shared_bytes):
    """How many threads of such blocks a multiprocessor holds at once."""
    warps = -(-block // 32)
    own = 32 * -(-registers // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
    blocks = min(
        THREADS // (32 * warps), BLOCKS, REGISTERS // (own * warps), SHARED_BYTES // (shared_bytes + RESERVED_SHARED)
    )
    return 32 * warps * blocks


@pytest.mark.parametrize(
    ("block", "registers", "threads"),
    [(512, 32, 2048), (512, 33, 1536), (512, 50, 1024), (32, 16, 1024), (256, 255, 256)],
)
def test_room_follows_from_registers_and_blocks(block, registers, threads):
    assert threads == room_for(block, registers, 0)


def count(extent):
    return prod(extent) if isinstance(extent, tuple) else extent


def ceilings():
    machine = [case for case in CATALOGUE.cases() if case.spec.family == "machine"]
    return [case for case in machine if case.spec.name not in NOT_FULL]


def test_every_kernel_of_the_machine_is_checked_or_excused():
    machine = {case.spec.name for case in CATALOGUE.cases() if case.spec.family == "machine"}
    assert machine == {case.spec.name for case in ceilings()} | set(NOT_FULL)
    assert {"bandwidth", "read_bandwidth", "fp32"} == {case.spec.ceiling for case in ceilings()}


@pytest.mark.skipif(not installed(), reason="NVRTC is not installed")
@pytest.mark.parametrize("case", ceilings(), ids=lambda case: case.name)
def test_a_multiprocessor_is_full_of_the_ceilings_threads(case):
    """At every size there are blocks for all places, or one for each few elements of an array too small for that."""
    launches = [step for step in case.plan.steps(HOPPER) if isinstance(step, Launch)]
    compiled = compile_source(case.spec.source_file, case.plan.entries(HOPPER), "90", case.spec.options)
    for launch in launches:
        used = compiled.resources[compiled.lowered[launch.entry or case.spec.entry]]
        block, grid = count(launch.block), count(launch.grid)
        assert not used.spill_stores and not used.spill_loads
        assert room_for(block, used.registers, used.shared_bytes + launch.shared) == THREADS, used
        assert grid * block >= min(THREADS * SM_COUNT, case.workload["n"] // MOST_ELEMENTS)
