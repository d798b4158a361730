"""Copies by the tensor memory accelerator and mbarriers: what they move, and the faults that a GPU stops or hides."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import ORDERS, MappedBuffer, compile_source, not_emulated
from prism_bench.errors import SpecError
from prism_bench.spec.launch import TensorMap
from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "bulk_copies.cu"
LINES = SOURCE.read_text().split("\n")
FAULTS = (
    "PLACE", "SIZE", "GLOBAL", "BARRIER", "NO_WAIT", "NO_EXPECT", "TOO_MANY", "TOO_FEW_BYTES", "TOO_MANY_BYTES",
    "BEYOND", "EARLY",
)  # fmt: skip
ENTRIES = [
    *(f"turned<{fault}>" for fault in ("NONE", *FAULTS)),
    *(f"increased<{fault}>" for fault in ("NONE", "NO_WAIT", "NO_EXPECT", "EARLY")),
    *(f"doubled<8, {columns}, {fault}>" for columns in (16, 32) for fault in ("NONE", "PLACE", "NO_WAIT", "EARLY")),
    *("shown<0>", "shown<128>", "shown<384>", "moved<true>", "moved<false>", "piped"),
]


@pytest.fixture(scope="module", params=["fast", "race"])
def module(request):
    return compile_source(SOURCE, entries=ENTRIES, mode=request.param)


@pytest.fixture(scope="module", params=["fast", "race", ON_DEVICE])
def anywhere(request):
    module = build(SOURCE, ENTRIES, request.param)
    yield module
    module.close()


@pytest.fixture(scope="module")
def watched():
    return compile_source(SOURCE, entries=ENTRIES, mode="race")


def turned(module, fault, order="forward"):
    x, y = np.arange(128, dtype=np.float32), np.full(128, -1, np.float32)
    report = module.launch(f"turned<{fault}>", 1, 64, [x, y], shared_bytes=512, order=order, patience=0.2)
    return report, (y == x.reshape(2, 64)[:, ::-1].ravel()).all()


def increased(module, fault, order="forward"):
    x, y = np.arange(3072, dtype=np.float32), np.full(3072, -1, np.float32)
    report = module.launch(f"increased<{fault}>", 3, 64, [x, y], order=order, patience=0.2)
    return report, (y == x + 1).all()


def doubled(module, columns, fault, order="forward"):
    x = np.arange(6 * 72, dtype=np.float32).reshape(6, 72)
    y = np.full_like(x, -1)
    maps = [MappedBuffer(array, TensorMap("m", box=(8, columns))) for array in (x, y)]
    entry = f"doubled<8, {columns}, {fault}>"
    report = module.launch(entry, 1, 64, [*maps, np.int32(-(-72 // columns))], order=order, patience=0.2)
    return report, (y == 2 * x).all()


def moved(module, entry):
    x, y = np.arange(3 * 4 * 16, dtype=np.uint16).reshape(3, 4, 16), np.zeros((3, 4, 16), np.uint16)
    maps = [MappedBuffer(array, TensorMap("m", box=(2, 4, 16))) for array in (x, y)]
    report = module.launch(entry, 2, 32, [*maps, np.int32(256)], shared_bytes=256)
    assert report.is_clean, str(report)
    return (x == y).all()


def at_line(report, word):
    finding = report.findings[0]
    return finding.accesses and any(f"// {word}" in LINES[access.line - 1] for access in finding.accesses)


@pytest.mark.parametrize("order", ORDERS)
def test_copies_bring_what_their_barriers_and_groups_wait_for(anywhere, order):
    for report, is_right in (turned(anywhere, "NONE", order), increased(anywhere, "NONE", order)):
        assert report.is_clean, str(report)
        assert is_right


# Not on a GPU: an H200 ended the kernels below whose boxes reach outside of the array with "illegal instruction", and
# what it is of them that it refuses is not known.
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("columns", [16, 32])
def test_boxes_go_through_two_buffers_and_back(module, columns, order):
    report, is_right = doubled(module, columns, "NONE", order)
    assert report.is_clean, str(report)
    assert is_right


@pytest.mark.parametrize("order", ORDERS)
def test_barriers_order_what_came_before_their_arrivals(anywhere, order):
    x, y = np.arange(10 * 64, dtype=np.float32), np.zeros(64, np.float32)
    report = anywhere.launch("piped", 1, 96, [x, y, np.int32(10)], order=order)
    assert report.is_clean, str(report)
    assert (y == x.reshape(10, 64)[:, ::-1].sum(0)).all()


@pytest.mark.parametrize(("fault", "line", "words"), [
    ("PLACE", "LOAD", "its place in shared memory at byte 136 of dynamic shared memory; its address is a multiple of 8 "
     "and has to be one of 16"),
    ("GLOBAL", "LOAD", "its place in global memory at byte 8 of argument 0; its address is a multiple of 8"),
    ("SIZE", "LOAD", "cp.async.bulk copies 248 bytes; it copies a multiple of 16"),
    ("BARRIER", "", "mbarrier at byte 4 of dynamic shared memory; its address is a multiple of 4 and has to be"),
])  # fmt: skip
def test_misaligned_copy_or_barrier_ends_the_launch_at_its_line(module, fault, line, words):
    report, is_right = turned(module, fault)
    (finding,) = report.findings
    assert finding.kind == "misaligned"
    assert words in finding.message
    assert (finding.accesses[0].block, finding.accesses[0].thread) == ((0, 0, 0), (0, 0, 0))
    assert at_line(report, line) if line else "mbarrier.init" in LINES[finding.line - 1]
    assert not is_right


ALONE = """
import sys
from tests.emulator import test_bulk_copies as bulk
from tests.emulator.on_device import build

fault, on = sys.argv[1], build(bulk.SOURCE, bulk.ENTRIES, "device")
print("ended", bulk.doubled(on, 16, "PLACE") if fault == "BOX" else bulk.turned(on, fault))
"""


@pytest.mark.gpu
@pytest.mark.parametrize("fault", ["PLACE", "GLOBAL", "BARRIER", "BOX"])  # of 248 bytes an H200 never ends
def test_a_gpu_stops_what_the_emulator_calls_misaligned(fault):
    """In a process of its own, since the fault ends its context."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, fault],
        cwd=SOURCE.parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode, done.stdout
    assert "CUDARuntimeError" in done.stderr or "CUDADriverError" in done.stderr, done.stderr


def test_box_needs_a_multiple_of_128_in_shared_memory(module):
    report, _ = doubled(module, 16, "PLACE")
    (finding,) = report.findings
    assert finding.kind == "misaligned"
    assert "cp.async.bulk.tensor: its place in shared memory at byte" in finding.message
    assert "of static shared memory; its address is a multiple of 64 and has to be one of 128" in finding.message
    assert at_line(report, "BOX")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("run", [turned, increased, lambda *given: doubled(given[0], 16, *given[1:])])
def test_missing_wait_is_wrong_and_watched_as_a_read_of_what_is_not_there_yet(module, watched, run, order):
    assert not run(module, "NO_WAIT", order)[1]
    report, _ = run(watched, "NO_WAIT", order)
    assert {"unwritten shared read", "race"} & {finding.kind for finding in report.findings}
    assert any(at_line(report, word) for word in ("READ", "LOAD", "STORE", "BOX"))


@pytest.mark.parametrize("run", [turned, increased])
def test_missing_bytes_of_a_phase_are_found(module, watched, run):
    report, is_right = run(module, "NO_EXPECT")
    assert not is_right
    report, _ = run(watched, "NO_EXPECT")
    assert report.findings[0].kind == "unwritten shared read"
    assert at_line(report, "READ")


@pytest.mark.parametrize(("fault", "kind", "words", "line"), [
    ("TOO_MANY", "mbarrier", "more arrivals in one phase than init gave the barrier", "TOO_MANY"),
    ("TOO_FEW_BYTES", "no progress", "thread(s) at mbarrier (bulk_copies.cu:", ""),
    ("TOO_MANY_BYTES", "mbarrier", "copies bring more bytes than the phase of their barrier expects", ""),
])  # fmt: skip
def test_phases_that_a_device_refuses_or_that_never_end(module, fault, kind, words, line):
    report, is_right = turned(module, fault)
    finding = report.findings[0]
    assert (finding.kind, is_right) == (kind, False)
    assert words in finding.message
    assert finding.accesses[0].file.endswith("bulk_copies.cu")
    assert at_line(report, line) if line else "asm volatile(" in LINES[finding.line - 1]


def test_copy_from_outside_of_a_buffer_is_found_at_its_line(watched):
    report, _ = turned(watched, "BEYOND")
    assert report.findings[0].kind == "out of bounds"
    assert report.findings[0].argument == 0
    assert at_line(report, "LOAD")


def test_copy_to_outside_of_a_buffer_is_found(module, watched):
    x, y = np.zeros(3072, np.float32), np.zeros(3000, np.float32)
    finding = module.launch("increased<NONE>", 3, 64, [x, y]).findings[0]
    assert (finding.kind, finding.argument) == ("out of bounds", 1)
    report = watched.launch("increased<NONE>", 3, 64, [x, y])
    assert "bytes 0 byte(s) past the end of argument 1" in report.findings[0].message
    assert at_line(report, "STORE")


@pytest.mark.parametrize(("run", "line"), [(turned, "LOAD"), (increased, "STORE")])
def test_copies_that_no_wait_orders_after_what_came_before_race(watched, run, line):
    report, _ = run(watched, "EARLY")
    assert report.findings[0].kind == "race"
    assert at_line(report, line)


def test_load_into_a_buffer_that_a_store_still_reads_is_wrong(module):
    assert not doubled(module, 32, "EARLY")[1]


@pytest.mark.parametrize("shift", [0, 128, 384])
@pytest.mark.parametrize("lines", [8, 64])
def test_rows_of_128_bytes_are_swizzled_by_the_bits_of_their_address(anywhere, lines, shift):
    x, y = np.arange(80 * 64, dtype=np.float32).reshape(80, 64), np.zeros(lines * 32, np.float32)
    arguments = [MappedBuffer(x, TensorMap("m", lines)), y, np.int32(32), np.int32(5), np.int32(lines * 128)]
    report = anywhere.launch(f"shown<{shift}>", 1, 32, arguments)
    assert report.is_clean, str(report)
    row = np.arange(lines)[:, None] + shift // 128
    pieces = x[5 : 5 + lines, 32:].reshape(lines, 8, 4)
    assert (y.reshape(lines, 8, 4) == pieces[np.arange(lines)[:, None], np.arange(8) ^ row % 8]).all()


def test_outside_of_the_array_a_box_is_zero_and_counts_for_its_barrier(module):
    x, y = 1 + np.arange(5 * 12, dtype=np.float32).reshape(5, 12), np.full(64, -1, np.float32)
    arguments = [MappedBuffer(x, TensorMap("m", box=(8, 8))), y, np.int32(-3), np.int32(2), np.int32(256)]
    report = module.launch("shown<0>", 1, 32, arguments)
    assert report.is_clean, str(report)
    expected = np.zeros((8, 8), np.float32)
    expected[:3, 3:] = x[2:5, :5]
    assert (y.reshape(8, 8) == expected).all()


def test_boxes_of_three_dimensions_go_there_and_back(module):
    assert moved(module, "moved<true>")


def test_stores_without_a_wait_happen_at_the_thread_s_end(module):
    assert moved(module, "moved<false>")


def test_floats_are_rounded_to_tf32_where_the_map_says_so(anywhere):
    x, y = np.linspace(1, 2, 256, dtype=np.float32).reshape(8, 32), np.zeros(256, np.float32)
    arguments = [MappedBuffer(x, TensorMap("m", 8, tf32=True)), y, np.int32(0), np.int32(0), np.int32(1024)]
    assert anywhere.launch("shown<0>", 1, 32, arguments).is_clean
    bits = y.view(np.uint32)
    assert not (bits & 0x1FFF).any()
    assert np.allclose(np.sort(y), np.sort(x.ravel()), rtol=2**-11)


def test_a_map_that_is_none_and_one_that_no_device_makes_are_refused(watched):
    x, y = np.zeros((8, 32), np.float32), np.zeros(256, np.float32)
    rest = [y, np.int32(0), np.int32(0), np.int32(1024)]
    (finding,) = watched.launch("shown<0>", 1, 32, [np.zeros(1, "V128")[0], *rest]).findings
    assert (finding.kind, "is no tensor map of 2 dimension(s)" in finding.message) == ("tensor map", True)
    with pytest.raises(SpecError, match="a tensor map needs rows of whole 16 bytes"):
        watched.launch("shown<0>", 1, 32, [MappedBuffer(x[:, :3], TensorMap("m")), *rest])
    with pytest.raises(SpecError, match="argument 1: tensor map of float32 passed, kernel takes pointer"):
        watched.launch("shown<0>", 1, 32, [MappedBuffer(x, TensorMap("m"))] * 2 + rest[1:])


def test_copies_work_in_a_child_process_and_under_the_sanitizers():
    module = compile_source(SOURCE, entries=["moved<false>", "turned<NONE>"], mode="address")
    assert moved(module, "moved<false>")
    report, is_right = turned(module, "NONE")
    assert report.is_clean, str(report)
    assert is_right
    module.close()


@pytest.mark.parametrize(("code", "reason"), [
    ('asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(b));', None),
    ('asm volatile("{.reg .b64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}" : "=r"(b) : "l"(p));', None),
    ('asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %1, %1, %1, %1}], [%2];"\n'
     ' "cp.async.bulk.wait_group.read %3;" :: "l"(m), "r"(x), "r"(b), "n"(N) : "memory");', None),
    ('asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster '
     '[%0], [%1, {%2}], [%3], %4;" :: "r"(s), "l"(m), "r"(x), "r"(b), "h"(k));', "inline PTX"),
    ('asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(b), "r"(c));', "inline PTX"),
    ('asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(b));', "inline PTX"),
    ('asm volatile("cp.async.bulk.commit_group; membar.gl;");', "inline PTX"),
    ('asm volatile("bra AWAY;");', "inline PTX"),
    ('asm volatile(TEXT "cp.async.bulk.commit_group;");', "inline PTX"),
    ("cde::cp_async_bulk_wait_group_read<0>(); const CUtensorMap* map;", None),
    ("cde::cp_reduce_async_bulk_shared_to_global(to, from, 16);", "tensor memory accelerator"),
    ("cde::cp_async_bulk_tensor_2d_global_to_shared_multicast(to, map, 0, 0, b, 3);", "tensor memory accelerator"),
    ("cuda::device::barrier_arrive_tx(b, 1, 16); cuda::device::barrier_native_handle(b);", None),
    ("__mbarrier_arrive(&b);", "mbarrier"),
])  # fmt: skip
def test_known_instructions_are_emulated_and_others_named(code, reason):
    assert reason == not_emulated(f"__global__ void k() {{ {code} }}\n")
