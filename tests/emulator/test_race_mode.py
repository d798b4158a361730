"""What the race mode counts, against counts by hand; and synchronisation that it must not mistake for a race."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import ORDERS, compile_source
from prism_bench.emulator.build import find_compiler

SOURCE = Path(__file__).parent / "kernels" / "traffic.cu"
ENTRIES = [
    *("copied", "copied_by_vector", "strided", "one_for_all", "bytes", "banks", "histogram", "last_block_sums"),
    "by_value",
]


@pytest.fixture(scope="module")
def module():
    return compile_source(SOURCE, entries=ENTRIES, mode="race")


def traffic(module, *launch):
    report = module.launch(*launch)
    assert report.is_clean, str(report)
    return report.traffic


def floats(n):
    return np.zeros(n, np.float32)


def test_each_byte_of_a_copy_moves_once(module):
    moved = traffic(module, "copied", 5, 256, [floats(1111), floats(1111), np.int32(1111)])
    source, target = moved.arguments
    assert (source.argument, source.bytes_read, source.unique_read, source.bytes_written) == (0, 4444, 4444, 0)
    assert (target.argument, target.bytes_written, target.unique_written, target.bytes_read) == (1, 4444, 4444, 0)
    assert (moved.bytes_read, moved.bytes_written, moved.unique_bytes) == (4444, 4444, 8888)
    assert moved.global_requests == 2 * 35  # 1111 threads are 34 full warps and one of 23
    assert moved.global_sectors == 2 * 139  # 4444 bytes begin 139 sectors


def test_vector_of_four_is_one_request_of_sixteen_sectors(module):
    if find_compiler().is_clang:
        pytest.skip("clang splits a float4 into scalars before they are counted")
    moved = traffic(module, "copied_by_vector", 1, 64, [floats(256), floats(256)])
    assert (moved.bytes_read, moved.global_requests, moved.sectors_per_request) == (1024, 4, 16)


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_stride_costs_sectors(module, stride, sectors):
    moved = traffic(module, "strided", 1, 32, [floats(31 * stride + 1), floats(32), np.int32(stride)])
    assert moved.global_sectors == sectors + 4
    assert moved.arguments[0].unique_read == 128


def test_broadcast_reads_one_sector_and_counts_each_lanes_bytes(module):
    moved = traffic(module, "one_for_all", 1, 32, [floats(1), floats(32)])
    assert (moved.arguments[0].bytes_read, moved.arguments[0].unique_read, moved.global_sectors) == (128, 4, 1 + 4)


def test_single_bytes_are_told_apart(module):
    moved = traffic(module, "bytes", 1, 96, [np.zeros(96, np.uint8), np.zeros(96, np.uint8)])
    assert (moved.bytes_read, moved.unique_bytes, moved.global_sectors) == (96, 192, 6)


def test_struct_that_is_handed_on_by_value_is_read(module):
    moved = traffic(module, "by_value", 1, 32, [np.zeros(64, np.float32), floats(32)])
    assert (moved.arguments[0].bytes_read, moved.arguments[0].unique_read) == (2 * 256, 256)


@pytest.mark.parametrize(("stride", "wavefronts"), [(1, 1), (2, 2), (4, 4), (32, 32), (31, 1), (0, 1)])
def test_bank_conflicts_are_wavefronts(module, stride, wavefronts):
    report = module.launch("banks", 1, 32, [floats(32), np.int32(stride)])
    assert report.is_clean == (stride != 0)
    assert (report.traffic.shared_requests, report.traffic.shared_wavefronts) == (2, 2 * wavefronts)


def test_atomics_are_counted_and_do_not_race(module):
    moved = traffic(module, "histogram", 1, 64, [np.zeros(64, np.int32), np.zeros(4, np.uint32)])
    assert moved.atomics == 64
    assert moved.arguments[1].unique_written == 4


@pytest.mark.parametrize("order", ORDERS)
def test_fence_and_ticket_order_what_was_written_before_them(module, order):
    x, y = np.arange(6, dtype=np.float32), floats(1)
    report = module.launch("last_block_sums", 6, 64, [x, floats(6), y, np.zeros(1, np.uint32)], order=order)
    assert report.is_clean, str(report)
    assert y[0] == 15


def test_fast_mode_does_not_count():
    fast = compile_source(SOURCE, entries=ENTRIES)
    assert fast.launch("one_for_all", 1, 32, [floats(1), floats(32)]).traffic is None


def test_finding_of_an_access_out_of_bounds_names_the_argument(module):
    finding = module.launch("copied", 1, 64, [floats(64), floats(60), np.int32(64)]).findings[0]
    assert (finding.kind, finding.argument) == ("out of bounds", 1)
    assert "past the end of argument 1, which has 240 bytes" in finding.message
    assert finding.accesses[0].thread == (60, 0, 0)
    assert finding.accesses[0].is_write


def test_access_far_from_every_buffer_ends_the_launch_and_not_the_process(module):
    (finding,) = module.launch("strided", 1, 32, [floats(32), floats(32), np.int32(2**25)]).findings
    assert finding.kind == "out of bounds"
    assert "far from every buffer" in finding.message


def test_a_library_that_is_unloaded_leaves_no_memory_behind():
    """It keeps what the last launch accessed, 24 bytes for each word of the buffers, for whoever asks."""
    n = 1 << 20
    x, y = floats(n), floats(n)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) << 12

    def launched_by_a_fresh_library():
        fresh = compile_source(SOURCE, entries=["copied", "strided"], mode="race")
        assert fresh.launch("copied", n // 256, 256, [x, y, np.int32(n)]).is_clean
        return resident()

    before = [launched_by_a_fresh_library() for _ in range(3)][-1]
    after = [launched_by_a_fresh_library() for _ in range(5)][-1]
    assert after - before < x.nbytes, "what one launch leaves is several times as much"
