"""Launches that a GPU refuses: the emulator refuses them before anything runs."""

import numpy as np
import pytest

from prism_bench.emulator import ORDERS, compile_source
from prism_bench.emulator.build import MODES
from prism_bench.errors import SpecError

SOURCE = """
__device__ void run(int* y) {
    const unsigned block = blockIdx.x + blockIdx.y + blockIdx.z, thread = threadIdx.x + threadIdx.y + threadIdx.z;
    if (block + thread == 0) y[0] = 1;
}
#define KERNEL(name, most) extern "C" __global__ void __launch_bounds__(most) name(int* y) { run(y); }
template <int A, int B> constexpr int LARGER = A > B ? A : B;

extern "C" __global__ void unbounded(int* y) { run(y); }
// A kernel with __launch_bounds__(1) would be refused.
extern "C" __global__ void commented(int* y) { run(y); }
extern "C" __global__ void __launch_bounds__(64) bounded(int* y) { run(y); }
extern "C" __global__ __launch_bounds__(64, 2) void bounded_before(int* y)
{
    run(y);
}
KERNEL(of_a_macro, 64)
extern "C" __global__ void __cluster_dims__(2, 3) clustered(int* y) { run(y); }
extern "C" __global__ __cluster_dims__(16) void __launch_bounds__(64) of_sixteen(int* y) { run(y); }
struct Shape { static constexpr int THREADS = 64; };
template <class T, int MORE>
__global__ void __launch_bounds__(LARGER<T::THREADS, MORE>, MORE < 3 ? 1 : 2)
    of_a_template(int* __restrict__ y, int (*unused)[2] = nullptr) {
    run(y);
}
"""
BOUNDED = ("bounded", "bounded_before", "of_a_macro", "of_a_template<Shape, 2>")
ENTRIES = ("unbounded", "commented", *BOUNDED)
CLUSTERED = ("clustered", "of_sixteen")


@pytest.fixture(scope="module", params=MODES)
def module(request):
    built = compile_source(SOURCE, entries=(*ENTRIES, *CLUSTERED), mode=request.param)
    yield built
    built.close()


def arguments(entry):
    y = np.zeros(1, np.int32)
    return y, [y, np.zeros(2, np.int32)] if "template" in entry else [y]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("entry", BOUNDED)
def test_block_above_the_launch_bounds_is_refused(module, entry, order):
    y, passed = arguments(entry)
    (finding,) = module.launch(entry, 2, (16, 5), passed, order=order).findings
    assert finding.kind == "launch bounds"
    assert finding.message == f"block (16, 5, 1) has 80 threads; the __launch_bounds__ of {entry} allow 64"
    assert not y.any()


@pytest.mark.parametrize(
    ("entry", "threads"), [*((entry, 64) for entry in BOUNDED), *((entry, 80) for entry in ENTRIES[:2])]
)
def test_block_within_the_launch_bounds_runs(module, entry, threads):
    y, passed = arguments(entry)
    assert module.launch(entry, 1, threads, passed).is_clean
    assert y[0] == 1


@pytest.mark.parametrize(("entry", "grid", "words"), [
    ("clustered", (4, 6), ""),
    ("clustered", (4, 5), "grid (4, 5, 1) is no multiple of its clusters (2, 3, 1)"),
    ("clustered", 6, "grid (6, 1, 1) is no multiple of its clusters (2, 3, 1)"),
    ("of_sixteen", 16, "a cluster (16, 1, 1) has 16 blocks; a device takes at most 8 without the attribute"),
])  # fmt: skip
def test_clusters_are_portable_and_divide_the_grid(module, entry, grid, words):
    y, passed = arguments(entry)
    findings = module.launch(entry, grid, 32, passed).findings
    assert [("cluster", 1)] * bool(words) == [(finding.kind, len(finding.accesses)) for finding in findings]
    assert bool(y.any()) == (not words)
    assert all(words in finding.message for finding in findings)


@pytest.mark.parametrize(("grid", "block", "words"), [
    ((1, 70_000), 1, r"unbounded: grid \(1, 70000, 1\) has 70,000 in y; a launch has 1 to 65,535 there"),
    ((1, 1, 65_536), 1, r"grid \(1, 1, 65536\) has 65,536 in z"),
    (2**31, 1, r"grid \(2147483648, 1, 1\) has 2,147,483,648 in x; a launch has 1 to 2,147,483,647 there"),
    (1, (1, 1, 65), r"block \(1, 1, 65\) has 65 in z; a launch has 1 to 64 there"),
    (1, (32, 33), r"block \(32, 33, 1\) has 1056 threads; a block has at most 1,024"),
    ((1, 0), 1, r"grid \(1, 0, 1\) has 0 in y"),
])  # fmt: skip
def test_extents_beyond_the_device_are_refused(module, grid, block, words):
    y, passed = arguments("unbounded")
    with pytest.raises(SpecError, match=words):
        module.launch("unbounded", grid, block, passed)
    assert not y.any()


def test_largest_extents_run(module):
    for grid, block in (((1, 65_535), 1), ((1, 1, 65_535), 1), (1, (16, 1, 64)), (1, 1024)):
        assert module.launch("unbounded", grid, block, arguments("unbounded")[1]).is_clean


def test_shared_memory_beyond_the_device_is_refused(module):
    passed = arguments("unbounded")[1]
    assert module.launch("unbounded", 1, 1, passed, shared_bytes=227 * 1024).is_clean
    with pytest.raises(SpecError, match=r"unbounded: 232,449 bytes of dynamic shared memory; .* 232,448 \(227 KB"):
        module.launch("unbounded", 1, 1, passed, shared_bytes=227 * 1024 + 1)
