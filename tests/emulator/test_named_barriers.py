"""Barriers for some threads of a block: bar.sync and bar.arrive in inline PTX, __barrier_sync_count, cuda::barrier."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import ORDERS, compile_source, not_emulated

SOURCE = Path(__file__).parent / "kernels" / "named_barriers.cu"
ENTRIES = [
    *("handed_over<true>", "handed_over<false>", "pairs<64>", "pairs<96>", "pairs<40>", "whole_block", "sixteen"),
    *("counted<true>", "counted<false>", "dropped", "by_twos", "copied"),
]


@pytest.fixture(scope="module", params=["fast", "race"])
def module(request):
    return compile_source(SOURCE, entries=ENTRIES, mode=request.param)


@pytest.fixture(scope="module")
def watched():
    return compile_source(SOURCE, entries=ENTRIES, mode="race")


def launched(module, entry, threads, numbers, order="forward", **options):
    x, y = np.arange(numbers, dtype=np.float32), np.full(numbers, -1, np.float32)
    return module.launch(entry, 1, threads, [x, y], order=order, **options), x, y


def reversed_by(x, length):
    return x.reshape(-1, length)[:, ::-1].ravel()


@pytest.mark.parametrize("order", ORDERS)
def test_warps_hand_over_and_wait_by_barriers_of_their_own(module, order):
    report, x, y = launched(module, "handed_over<true>", 64, 64, order)
    assert report.is_clean, str(report)
    assert (y == 2 * reversed_by(x, 32)).all()
    report, x, y = launched(module, "whole_block", 64, 64, order)
    assert report.is_clean, str(report)
    assert (y == x[::-1]).all()


@pytest.mark.parametrize("order", ORDERS)
def test_phases_are_counted_and_threads_dropped(module, order):
    report, x, y = launched(module, "counted<true>", 64, 192, order)
    assert report.is_clean, str(report)
    assert (y == 2 * reversed_by(x, 64)).all()
    report, x, y = launched(module, "dropped", 64, 64, order)
    assert report.is_clean, str(report)
    assert (y[:32] == x[:31:-1]).all()
    report, x, y = launched(module, "copied", 64, 64, order)
    assert report.is_clean, str(report)
    assert (y == x[::-1]).all()


@pytest.mark.parametrize("entry", ["handed_over<false>", "counted<false>"])
def test_missing_wait_is_a_race(watched, entry):
    report, *_ = launched(watched, entry, 64, 192)
    assert {"race"} <= {finding.kind for finding in report.findings}
    lines = [line for line, text in enumerate(SOURCE.read_text().split("\n"), 1) if "2 * tile" in text]
    assert {access.line for access in report.findings[0].accesses} & set(lines)


def test_warp_that_is_not_full_counts_as_whole(module):
    x, y = np.arange(104, dtype=np.float32), np.zeros(104, np.float32)
    report = module.launch("pairs<64>", 1, 104, [x, y])
    assert report.is_clean, str(report)
    assert (y == np.concatenate([x[63::-1], x[:63:-1]])).all()


@pytest.mark.parametrize(("entry", "threads", "kind", "words"), [
    ("pairs<96>", 104, "deadlock", "thread(s) at bar.sync (named_barriers.cu:"),
    ("pairs<40>", 104, "named barrier", "bar.sync of barrier 0 for 40 threads; it takes a multiple of 32, at most the"),
    ("pairs<96>", 64, "named barrier", "at most the block's 64"),
    ("sixteen", 64, "named barrier", "bar.sync of barrier 16; a block has the barriers 0 to 15"),
    ("by_twos", 64, "cuda::barrier", "more arrivals in one phase than init gave the barrier"),
])  # fmt: skip
def test_barriers_that_a_device_refuses_or_that_never_open(module, entry, threads, kind, words):
    arrays = [np.zeros(104, np.float32)] * (1 if entry in ("sixteen", "by_twos") else 2)
    (finding, *_) = module.launch(entry, 1, threads, arrays).findings
    assert kind == finding.kind
    assert words in finding.message
    assert finding.accesses[0].file.endswith("named_barriers.cu")


@pytest.mark.parametrize(("code", "reason"), [
    ('asm volatile("bar.sync 1, 64;");', None),
    ('__asm__ __volatile__ ("barrier.cta.sync.aligned %0, %1;\\n\\t" : : "r"(f(1)), "n"(64) : "memory");', None),
    ('asm volatile("bar.sync %0, %1;" :: "r"(1));', "inline PTX"),
    ('asm volatile("bar.arrive 1;");', "inline PTX"),
    ('asm volatile("bar.red.popc.u32 %0, 1, 64, p;" : "=r"(n));', "inline PTX"),
    ("cuda::device::barrier_arrive_tx(b, 1, 16);", None),
    ("cuda::device::barrier_arrive_later(b);", "mbarrier"),
    ("\n#include <cuda/barrier>\ncuda::barrier<cuda::thread_scope_block> b;", None),
    ("\n#include <cuda/pipeline>\n", "libcu++"),
])  # fmt: skip
def test_barriers_of_whole_statements_are_emulated_and_others_named(code, reason):
    assert reason == not_emulated(f"__global__ void k() {{ {code} }}\n")
