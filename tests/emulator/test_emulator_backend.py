"""The emulator as a backend: a small catalogue, verified, watched, and refused where it must be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism_bench import Launch, Requirement, TensorMap
from prism_bench.backends import open_backend
from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import discover
from prism_bench.emulator import ORDERS
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError, VerificationFailed
from prism_bench.run import verify
from prism_bench.run.verification import passed

SPEC = '''"""Test."""

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Workload, Zero

spec = KernelSpec(
    entry="scaled",
    arguments=(In("x", "n"), Out("y", "n"), Scratch("count", "1", dtype="uint32"), Size("n")),
    launch=lambda n: (Zero("count"), Launch(grid=-(-n // 64), block=64)),
    reference=lambda x: 3 * x,
    workloads={"S0": Workload(n=1000)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=65)),
    options=("-DFACTOR=3", "--use_fast_math"),
)
'''
KERNEL = """#include "step.cuh"
extern "C" __global__ void scaled(const float* x, float* y, unsigned int* count, int n) {
    const int i = place();
    if (i < n) y[i] = FACTOR * x[i];
    atomicAdd(count, 1u);
}
"""
HELPER = "#pragma once\n__device__ inline int place() { return blockIdx.x * blockDim.x + threadIdx.x; }\n"


@pytest.fixture
def catalogue(tmp_path):
    """Writes a catalogue of one kernel, its source changed as asked, and finds its cases."""

    def write(*change) -> list:
        (tmp_path / "include").mkdir()
        (tmp_path / "family").mkdir()
        (tmp_path / "include" / "step.cuh").write_text(HELPER)
        (tmp_path / "family" / "scaled.py").write_text(SPEC)
        source = KERNEL.replace(*change) if change else KERNEL
        (tmp_path / "family" / "scaled.cu").write_text(source)
        found = discover(tmp_path)
        assert not found.problems
        return [*found.cases(), *found.edges()]

    return write


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", ["fast", "race"])
def test_kernel_passes_under_each_order(catalogue, mode, order):
    for case in catalogue():
        assert passed(verify(EmulatorBackend(mode, order), case))


def test_kernel_passes_under_the_sanitizers(catalogue):
    for case in catalogue():
        assert passed(verify(EmulatorBackend("address"), case))


def test_backend_is_opened_by_its_name():
    backend = open_backend("emulator")
    assert (backend.name, backend.mode) == ("emulator", "fast")
    assert backend.facts()["device"].startswith("emulated on")


@pytest.mark.parametrize("own", ["", "#pragma once\n__device__ inline float infinity() { return 3.0f; }\n"])
def test_headers_that_a_catalogue_lacks_are_the_built_in_ones(catalogue, tmp_path, own):
    cases = catalogue("y[i] =", "if (infinity() < 4.0f) y[i] = -1.0f; else y[i] =")
    source = cases[0].spec.source
    source.write_text('#include "sums/reduce.cuh"\n' + source.read_text())
    if own:
        (tmp_path / "include" / "sums").mkdir()
        (tmp_path / "include" / "sums" / "reduce.cuh").write_text(own)
    assert (not own) == passed(verify(EmulatorBackend(), cases[0]))


@pytest.mark.parametrize("options", [
    ("-DFACTOR=3", "--std=c++20"), ("-D", "FACTOR=3", "-std=c++20"), ("--define-macro=FACTOR=3", "--std", "c++20"),
    ("-DFACTOR=2", "-DFACTOR=3", "--std=c++17", "-std=c++20", "-lineinfo"),
])  # fmt: skip
def test_definitions_and_the_standard_of_a_spec_reach_the_compiler(catalogue, options):
    """Whatever their spelling, and the last of several."""
    (case, *_) = catalogue("const int i", "static_assert(__cplusplus >= 202002L && FACTOR == 3);\n    const int i")
    assert passed(verify(EmulatorBackend(), replace(case, spec=replace(case.spec, options=options))))
    older = replace(case, spec=replace(case.spec, options=("-DFACTOR=3", "--std=c++14")))
    with pytest.raises(CompilationFailed, match=r"scaled\.cu:3:.*static assertion failed"):
        verify(EmulatorBackend(), older)


def test_finding_fails_the_verification_with_its_place(catalogue):
    cases = catalogue("if (i < n) ", "")
    with pytest.raises(VerificationFailed, match=r"scaled\[n=1000\] on emulator \(race\): out of bounds.*scaled\.cu:4"):
        verify(EmulatorBackend("race"), cases[0])


def test_misaligned_vector_fails_the_verification_with_its_element(catalogue):
    aligned, misaligned = (f"if (i == 0) y[i] = 3 * reinterpret_cast<const float4*>(x + {at})->x" for at in (4, 1))
    cases = catalogue("if (i < n) y[i]", f"if (n < 8) return; {aligned}; if (i < n) y[i]")
    assert passed(verify(EmulatorBackend("race"), cases[0]))
    source = cases[0].spec.source
    source.write_text(source.read_text().replace(aligned, misaligned))
    words = (
        r"misaligned: access to float4 at x\[1\]; its address is a multiple of 4 and has to be one of 16 \[scaled\.cu:4"
    )
    with pytest.raises(VerificationFailed, match=words):
        verify(EmulatorBackend("race"), cases[0])


def test_launch_that_no_device_takes_fails_the_verification(catalogue):
    cases = catalogue("__global__ void", "__global__ void __launch_bounds__(32)")
    with pytest.raises(VerificationFailed, match=r"launch bounds: block \(64, 1, 1\) has 64 threads.*scaled allow 32"):
        verify(EmulatorBackend(), cases[0])
    tall = replace(cases[0], spec=replace(cases[0].spec, launch=lambda n: Launch((1, 70_000), 64)))
    with pytest.raises(SpecError, match="scaled: grid .* has 70,000 in y; a launch has 1 to 65,535 there"):
        verify(EmulatorBackend(), tall)


def test_wrong_result_is_told_by_verification(catalogue):
    cases = catalogue("FACTOR * x[i]", "2 * x[i]")
    assert not passed(verify(EmulatorBackend(), cases[0]))


def test_source_that_does_not_compile_names_its_line(catalogue):
    cases = catalogue("atomicAdd(count", "atomicAdd(counter")
    with pytest.raises(CompilationFailed, match=r"scaled\.cu:5:.*counter"):
        verify(EmulatorBackend(), cases[0])


def test_source_that_is_not_emulated_says_why(catalogue):
    cases = catalogue("atomicAdd(count, 1u)", 'asm("membar.gl;")')
    with pytest.raises(BackendUnavailable, match="not emulated: inline PTX"):
        verify(EmulatorBackend(), cases[0])


def test_a_case_that_requires_instructions_is_not_emulated(catalogue):
    case = catalogue()[0]
    needing = replace(case, spec=replace(case.spec, requires=Requirement("wgmma", 90)))
    with pytest.raises(BackendUnavailable, match="not emulated: wgmma; the compile check and the GPU take it"):
        verify(EmulatorBackend(), needing)


def test_crash_ends_a_child_and_fails_the_verification(catalogue):
    cases = catalogue("y[i] = FACTOR", "y[1ll << 40] = FACTOR")
    with pytest.raises(VerificationFailed, match=r"crash.*SIGSEGV.*scaled\.cu:4"):
        verify(EmulatorBackend(isolate=True), cases[0])


def test_reports_tell_what_each_launch_moved(catalogue):
    case = catalogue()[0]
    with EmulatorBackend("race", traffic=True).prepare(case, case.inputs()) as runnable:
        runnable()
        (report,) = runnable.reports
    assert (report.traffic.bytes_read, report.traffic.bytes_written) == (4000 + 4096, 4000 + 4096)


MAPPED = """#include <cuda.h>
#include <cuda/barrier>
namespace cde = cuda::device::experimental;
extern "C" __global__ void scaled(const __grid_constant__ CUtensorMap x, float* y, unsigned int* count, int n) {
    __shared__ alignas(1024) float tile[32];
    __shared__ cuda::barrier<cuda::thread_scope_block> full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        cde::cp_async_bulk_tensor_2d_global_to_shared(tile, &x, 32 * blockIdx.x, 0, full);
        cuda::device::barrier_arrive_tx(full, 1, sizeof tile);
    }
    __syncthreads();
    full.wait_parity(0);
    const int i = 32 * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * tile[threadIdx.x];
}
"""


@pytest.mark.parametrize(
    "backend", [EmulatorBackend(), EmulatorBackend("race", isolate=True), EmulatorBackend("address")]
)
def test_arrays_are_passed_as_tensor_maps(catalogue, backend):
    def mapped(case, lines=1):
        spec = replace(case.spec, launch=lambda n: Launch(-(-n // 32), 32, maps=(TensorMap("x", lines),)))
        return replace(case, spec=spec)

    whole, *_, edge = catalogue(KERNEL, MAPPED)
    assert passed(verify(backend, mapped(whole)))
    with pytest.raises(SpecError, match=r"x: a tensor map needs rows of whole 16 bytes, not \d+; the array"):
        verify(backend, mapped(edge))
    with pytest.raises(VerificationFailed, match="256 bytes that are not in shared memory"):
        verify(backend, mapped(whole, lines=2))


def test_outputs_hold_poison_until_they_are_written(catalogue):
    case = catalogue()[0]
    runnable = EmulatorBackend().prepare(case, case.inputs())
    assert np.isnan(runnable.arrays(["y"])["y"]).all()
    runnable()
    assert not np.isnan(runnable.arrays(["y"])["y"]).any()


def test_catalogue_of_the_checkout_is_found():
    assert discover(Path(__file__).parents[2] / "kernels").kernels
