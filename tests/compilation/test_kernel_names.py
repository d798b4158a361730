"""Names of kernels are read from a source; an entry that it lacks is named, with what it has."""

from prism_bench.compilation.cubin import kernels_in, missing_entry

CODE = """
extern "C" __global__ void plain(const float* x) {}
template <int N, typename T> __global__ __launch_bounds__(256, (2 + 1)) void bounded(T* x) {}
__global__ void __launch_bounds__(128) late(int n) {}
__device__ float helper(float x) { return x; }
"""


def test_every_kernel_is_found_whatever_its_attributes():
    assert ("plain", "bounded", "late") == kernels_in(CODE)


def test_an_entry_that_the_source_lacks_is_named_with_what_it_has():
    assert missing_entry(["plain", "bounded<1, float>", "space::late"], CODE, "a.cu") is None
    assert "a.cu: no kernel 'gone', which the spec launches; the source defines plain, bounded, late" == missing_entry(
        ["plain", "gone<4>"], CODE, "a.cu"
    )


def test_a_source_without_kernels_says_so():
    assert "a.cu: no kernel 'f', which the spec launches; the source defines no kernel at all" == missing_entry(
        ["f"], "int x;", "a.cu"
    )
