"""Barriers, deadlocks, spin-waits, the watchdog, the order of threads, and cooperative grids."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import ORDERS, compile_source

SOURCE = Path(__file__).parent / "kernels" / "scheduling.cu"
ENTRIES = [
    line.split("void ")[1].split("(")[0] for line in SOURCE.read_text().split("\n") if line.startswith("__global__")
]
# One library uses up what its process may write to; another one then has stacks all the same.
LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from prism_bench.emulator import compile_source

fast, race = (compile_source(Path(sys.argv[1]), entries=["grid_meets"], mode=mode) for mode in ("fast", "race"))

def launch(module, blocks):
    y = np.zeros(blocks * 64, np.int32)
    found = module.launch("grid_meets", blocks, 64, [y, np.int32(1)], cooperative=True).findings
    print(found[0].kind if found else "0 findings")

now = next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]
resource.setrlimit(resource.RLIMIT_DATA, (int(now) * 1024 + (2 << 30), -1))
for module, blocks in ((fast, 1000), (race, 100), (race, 1000), (fast, 100)):
    launch(module, blocks)
"""

# A library launches and is given up while a thread launches by another, whose signals its handler gets from then on.
SIDE_BY_SIDE = """
import sys
from pathlib import Path
from threading import Thread
import numpy as np
from prism_bench.emulator import compile_source

def module(entry):
    return compile_source(Path(sys.argv[1]), entries=[entry], mode="fast")

def waits(long):
    print(long.launch("waits_for_ever", 1, 32, [np.zeros(1, np.int32)], patience=1).findings[0].kind)

long = Thread(target=waits, args=[module("waits_for_ever")])
short = module("early_exit")
path = str(short.path)
long.start()
short.launch("early_exit", 1, 64, [np.zeros(64, np.int32)])
del short
long.join()
print(path in Path("/proc/self/maps").read_text())
"""


@pytest.fixture(scope="module", params=["fast", "race"])
def module(request):
    return compile_source(SOURCE, entries=ENTRIES, mode=request.param)


def line_of(text):
    return next(number for number, line in enumerate(SOURCE.read_text().split("\n"), 1) if text in line)


def only(report):
    assert len(report.findings) == 1, str(report)
    return report.findings[0]


@pytest.mark.parametrize("order", ORDERS)
def test_deadlock_names_the_waiting_threads(module, order):
    y = np.zeros(64, np.int32)
    finding = only(module.launch("barrier_missed", 1, 64, [y], order=order, patience=1))
    barrier = line_of("// the first warp")
    assert finding.kind == "deadlock"
    assert (
        f"33 thread(s) at __syncthreads (scheduling.cu:{barrier}), first block (0,0,0) thread (0,0,0)"
        in finding.message
    )
    assert "31 thread(s) at __shfl_sync (scheduling.cu:" in finding.message
    assert barrier in {access.line for access in finding.accesses}


def test_threads_that_ended_are_not_waited_for(module):
    y = np.zeros(64, np.int32)
    assert module.launch("early_exit", 1, 64, [y]).is_clean
    assert y.tolist() == [1] * 48 + [0] * 16


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("entry, left", [("early_exit_in_a_function", 0), ("returns_after_a_barrier", 2)])
def test_a_thread_that_returns_leaves_barriers_to_the_others(module, order, entry, left):
    y = np.zeros(64, np.int32)
    assert module.launch(entry, 1, 64, [y], order=order).is_clean
    assert y.tolist() == [1] * 48 + [left] * 16


@pytest.mark.parametrize("order", ORDERS)
def test_lanes_outside_of_the_mask_are_not_missed(module, order):
    y = np.zeros(64, np.int32)
    assert module.launch("part_of_a_warp", 1, 64, [y], order=order).is_clean
    assert y.tolist() == ([1] * 8 + [0] * 24) * 2


@pytest.mark.parametrize("order", ORDERS)
def test_spin_wait_on_a_volatile_flag_ends(module, order):
    flag, y = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert module.launch("flag_in_block", 1, 96, [flag, y], order=order).is_clean
    assert y[0] == 7


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_can_wait_for_each_other(module, order):
    progress, y = np.zeros(1, np.int32), np.zeros(20, np.int32)
    assert module.launch("chain_of_blocks", 20, 32, [progress, y], order=order, seed=1).is_clean
    assert y.tolist() == [i * i for i in range(20)]


@pytest.mark.parametrize("order", ORDERS)
def test_spin_lock_lets_each_thread_in_once(module, order):
    lock, y = np.zeros(1, np.int32), np.zeros(1, np.int32)
    report = module.launch("spin_lock", 4, 64, [lock, y], order=order)
    assert report.is_clean, str(report)
    assert y[0] == 256


def test_watchdog_ends_a_wait_that_yields(module):
    finding = only(module.launch("sleeps_for_ever", 1, 32, [np.zeros(1, np.int32)], patience=0.1))
    assert finding.kind == "no progress"
    assert re.search(r"no progress for 0.1 s of CPU time: .*thread\(s\) at (__nanosleep|an atomic)", finding.message)
    assert finding.line == line_of("__nanosleep(10)")


def test_watchdog_ends_a_loop_that_never_yields(module):
    finding = only(module.launch("waits_for_ever", 1, 32, [np.zeros(1, np.int32)], patience=0.1))
    assert finding.kind == "no progress"
    assert f"thread(s) at {'a loop' if module.mode == 'fast' else 'an atomic'}" in finding.message
    assert finding.line == line_of("void waits_for_ever") + 1


def test_watchdog_ends_progress_that_leads_nowhere(module):
    finding = only(module.launch("meets_for_ever", 1, 32, [np.zeros(1, np.int32)], patience=0.02))
    assert finding.kind == "no progress"
    assert "not ended" in finding.message


def test_module_works_on_after_a_launch_was_ended(module):
    module.launch("waits_for_ever", 1, 32, [np.zeros(1, np.int32)], patience=0.05)
    y = np.zeros(64, np.int32)
    assert module.launch("early_exit", 1, 64, [y]).is_clean
    assert y.sum() == 48


@pytest.mark.parametrize("order", ORDERS)
def test_grid_barrier_and_shared_memory_of_blocks_that_take_turns(module, order):
    y = np.arange(5 * 64, dtype=np.int32)
    report = module.launch("grid_meets", 5, 64, [y, np.int32(3)], cooperative=True, order=order)
    assert report.is_clean, str(report)
    np.testing.assert_array_equal(y, (np.arange(320) + 3) % 320 + 1000)


def test_large_cooperative_grid_can_be_launched_again(module):
    for _ in range(2):
        y = np.arange(250 * 64, dtype=np.int32)
        assert module.launch("grid_meets", 250, 64, [y, np.int32(1)], cooperative=True).is_clean
        np.testing.assert_array_equal(y, (np.arange(16000) + 1) % 16000 + 1000)


def test_grid_with_more_threads_than_stacks_stops_and_leaves_stacks_to_the_next(module):
    for _ in range(2):
        many = [np.zeros(1100 * 64, np.int32), np.int32(1)]
        assert "too many threads" == only(module.launch("grid_meets", 1100, 64, many, cooperative=True)).kind
        y = np.arange(250 * 64, dtype=np.int32)
        assert module.launch("grid_meets", 250, 64, [y, np.int32(1)], cooperative=True).is_clean
        np.testing.assert_array_equal(y, (np.arange(16000) + 1) % 16000 + 1000)


def test_large_grid_takes_nothing_from_a_limit_of_memory_for_long():
    ended = subprocess.run([sys.executable, "-c", LIMITED, str(SOURCE)], capture_output=True, text=True, check=True)
    assert ["too many threads", "0 findings"] * 2 == ended.stdout.splitlines()


def test_no_library_is_unloaded_while_another_one_runs():
    ended = subprocess.run([sys.executable, "-c", SIDE_BY_SIDE, str(SOURCE)], capture_output=True, text=True)
    assert (0, ["no progress", "False"]) == (ended.returncode, ended.stdout.splitlines()), ended.stderr


def test_grid_barrier_needs_a_cooperative_launch(module):
    finding = only(module.launch("grid_meets", 5, 64, [np.zeros(320, np.int32), np.int32(1)]))
    assert finding.kind == "grid sync"
    assert finding.line == line_of("grid.sync();")


@pytest.mark.parametrize(("entry", "kind", "thread", "where"), [
    ("gives_up", "trap", (5, 0, 0), "__trap();"),
    ("asserts", "assertion", (9, 0, 0), "assert(threadIdx"),
])  # fmt: skip
def test_kernel_that_stops_itself_tells_where(module, entry, kind, thread, where):
    finding = only(module.launch(entry, 1, 32, [np.zeros(32, np.int32)]))
    assert (finding.kind, finding.line, finding.accesses[0].thread) == (kind, line_of(where), thread)


def test_orders_run_threads_as_named(module):
    ranks = {}
    for order in ORDERS:
        count, ranks[order] = np.zeros(1, np.int32), np.zeros(64, np.int32)
        module.launch("order_of_threads", 2, 32, [count, ranks[order]], order=order, seed=2)
    assert ranks["forward"].tolist() == list(range(64))
    assert ranks["reverse"].tolist() == list(range(63, -1, -1))
    assert sorted(ranks["shuffled"]) == list(range(64))
    assert ranks["shuffled"].tolist() not in (ranks["forward"].tolist(), ranks["reverse"].tolist())


def test_shuffled_order_follows_its_seed(module):
    def ranks(seed):
        y = np.zeros(64, np.int32)
        module.launch("order_of_threads", 2, 32, [np.zeros(1, np.int32), y], order="shuffled", seed=seed)
        return y.tolist()

    assert ranks(1) == ranks(1)
    assert ranks(1) != ranks(2)


def test_clocks_go_forward(module):
    y = np.full(32, -1, np.int64)
    assert module.launch("clocks", 1, 32, [y]).is_clean
    assert (y >= 0).all()
