"""Launches that a device refuses, by its limits and by the machine code of the kernel."""

import pytest

from prism_bench.compilation.cubin import ElfEntry, Resources
from prism_bench.compilation.launch_limits import EntryCode, refusal
from prism_bench.spec.launch import Launch, most_resident, most_warps


def refused(launch, registers=0, shared=0, capability=90, **extents):
    code = EntryCode(Resources(registers=registers, shared_bytes=shared), ElfEntry((), **extents))
    return refusal(launch, code, capability)


@pytest.mark.parametrize(("registers", "warps"), [(32, 64), (64, 32), (65, 28), (128, 16), (168, 12), (255, 8)])
def test_warps_of_a_multiprocessor_by_their_registers(registers, warps):
    assert warps == most_warps(registers)


@pytest.mark.parametrize(("threads", "registers", "fits"), [
    (1024, 64, True), (1024, 65, False), (896, 72, True), (928, 72, False), (256, 255, True), (257, 255, False),
])  # fmt: skip
def test_registers_limit_the_threads_of_a_block(threads, registers, fits):
    assert fits == (refused(Launch(1, threads), registers=registers) is None)


def test_refusal_names_the_limit_and_what_would_fit():
    reason = refused(Launch(4, 1024), registers=128)
    assert "block (1024, 1, 1) has 1,024 threads of 128 registers; the 65,536 registers" in reason
    assert "enough for 512 of them: __launch_bounds__(1024)" in reason


@pytest.mark.parametrize(("capability", "most"), [(75, 64), (80, 163), (86, 99), (89, 99), (90, 227), (120, 99)])
def test_dynamic_and_static_shared_memory_count_together(capability, most):
    largest = most * 1024
    assert refused(Launch(1, 32, shared=largest), capability=capability) is None
    assert refused(Launch(1, 32, shared=largest - 512), shared=512, capability=capability) is None
    reason = refused(Launch(1, 32, shared=largest - 512), shared=513, capability=capability)
    assert f"and 513 of static shared memory; a block of sm_{capability} has at most {largest:,}" in reason


def test_architecture_without_known_limit_is_not_judged():
    assert refused(Launch(1, 32, shared=1 << 20), capability=88) is None


def test_block_above_the_launch_bounds_and_beside_the_required_block():
    assert refused(Launch(1, (16, 4)), most_threads=64) is None
    assert "has 65 threads; the kernel's __launch_bounds__ allow 64" in refused(Launch(1, 65), most_threads=64)
    assert refused(Launch(1, (32, 2)), block=(32, 2, 1)) is None
    assert "compiled for blocks of (32, 2, 1) alone" in refused(Launch(1, 64), block=(32, 2, 1))


@pytest.mark.parametrize(("grid", "cluster", "words"), [
    (16, (8, 1, 1), None),
    (16, (16, 1, 1), "(16, 1, 1) have 16 blocks; a device takes at most 8"),
    ((4, 6), (2, 2, 1), None),
    ((4, 5), (2, 2, 1), "grid (4, 5, 1) is no multiple of its clusters (2, 2, 1)"),
])  # fmt: skip
def test_clusters_are_portable_and_divide_the_grid(grid, cluster, words):
    reason = refused(Launch(grid, 32), cluster=cluster)
    assert reason is None if words is None else words in reason


def test_extents_of_every_device():
    assert "has 70,000 in y" in refused(Launch((1, 70_000), 32))
    assert "has 65 in z" in refused(Launch(1, (1, 1, 65)))
    assert "a block has at most 1,024" in refused(Launch(1, (32, 33)))


def test_nothing_is_said_of_empty_launches_and_of_blocks_that_a_compiler_chooses():
    assert refused(Launch(0, 2048)) is None
    assert refused(Launch((1, 70_000))) is None


@pytest.mark.parametrize(("threads", "shared", "registers", "blocks"), [
    (32, 0, 0, 32), (1024, 0, 0, 2), (256, 0, 64, 4), (32, 200 * 1024, 0, 1), (32, 113 * 1024, 0, 2),
])  # fmt: skip
def test_cooperative_grid_fits_on_the_device(threads, shared, registers, blocks):
    assert 132 * blocks == most_resident(threads, shared, registers)
    launch = Launch(132 * blocks, threads, shared=shared, cooperative=True)
    assert refused(launch, registers=registers) is None
    larger = Launch(132 * blocks + 1, threads, shared=shared, cooperative=True)
    assert f"holds {132 * blocks:,} of them at a time" in refused(larger, registers=registers)
