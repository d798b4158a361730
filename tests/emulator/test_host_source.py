"""The rewriting of CUDA sources: includes in place, line numbers kept, what macros cannot say, what is left out."""

import numpy as np
import pytest

from prism_bench.emulator import compile_source, entry_not_emulated, not_emulated
from prism_bench.emulator.build import host_source
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError


def launch_one(source, entry="k", **options):
    y = np.zeros(32, np.float32)
    assert compile_source(source, entries=[entry], **options).launch(entry, 1, 32, [y]).is_clean
    return y


def test_project_headers_stand_in_place_once(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "twice.cuh").write_text("#pragma once\n__device__ float twice(float x) { return 2 * x; }\n")
    (tmp_path / "near.cuh").write_text(
        '#include <twice.cuh>\n#include "twice.cuh"\n__device__ float four(float x) { return twice(twice(x)); }\n'
    )
    kernel = tmp_path / "k.cu"
    kernel.write_text(
        '#include "near.cuh"\n#include <cstdint>\n__global__ void k(float* y) { y[threadIdx.x] = four(uint32_t(1)); }\n'
    )
    assert set(launch_one(kernel, include_dirs=[tmp_path / "include"])) == {4}


def test_line_numbers_survive_includes_and_rewriting(tmp_path):
    (tmp_path / "head.cuh").write_text("// one\n// two\n")
    kernel = tmp_path / "broken.cu"
    kernel.write_text(
        '#include "head.cuh"\nextern "C"\n__global__ void k(float* y) {\n'
        "    extern __shared__\n    float s[];\n    undeclared = 1;\n}\n"
    )
    with pytest.raises(CompilationFailed, match=r"broken\.cu:6:.*undeclared"):
        compile_source(kernel, entries=["k"])


def test_error_in_a_header_names_the_header(tmp_path):
    (tmp_path / "head.cuh").write_text("\n__device__ int f() { return nothing; }\n")
    kernel = tmp_path / "k.cu"
    kernel.write_text('#include "head.cuh"\n__global__ void k(float* y) {}\n')
    with pytest.raises(CompilationFailed, match=r"head\.cuh:2:"):
        compile_source(kernel, entries=["k"])


@pytest.mark.parametrize("declaration", [
    "extern __shared__ float s[];",
    "extern __shared__ __align__(16) float s[];",
    "extern __shared__ alignas(alignof(float4)) float s[];",
    "extern   __shared__\n  float   s[];",
])  # fmt: skip
def test_dynamic_shared_memory_is_declared_in_many_ways(declaration):
    source = f"__global__ void k(float* y) {{ {declaration}\n s[threadIdx.x] = 3; y[threadIdx.x] = s[threadIdx.x]; }}\n"
    y = np.zeros(32, np.float32)
    compile_source(source, entries=["k"]).launch("k", 1, 32, [y], shared_bytes=128)
    assert set(y) == {3}


def test_dynamic_shared_memory_may_be_declared_again_outside_functions():
    again = "extern __shared__ float s[];\n"
    source = f"{again}__device__ void put(float v) {{ s[threadIdx.x] = v; }}\n{again}" + (
        "__global__ void k(float* y) { put(3); y[threadIdx.x] = s[threadIdx.x]; }\n"
    )
    y = np.zeros(32, np.float32)
    compile_source(source, entries=["k"]).launch("k", 1, 32, [y], shared_bytes=128)
    assert set(y) == {3}


def test_a_header_that_two_sources_reach_on_different_ways_is_read_once(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.cuh").write_text('#include "../once.cuh"\n')
    (tmp_path / "once.cuh").write_text("#pragma once\n__device__ float three() { return 3; }\n")
    kernel = tmp_path / "k.cu"
    kernel.write_text(
        '#include "first/first.cuh"\n#include "second/second.cuh"\n'
        "__global__ void k(float* y) { y[threadIdx.x] = three(); }\n"
    )
    assert set(launch_one(kernel)) == {3}


def test_kernel_may_be_called_like_a_library_function():
    assert set(
        launch_one('extern "C" __global__ void fma(float* y) { y[threadIdx.x] = ::fmaf(2, 3, 4); }\n', "fma")
    ) == {10}


def test_shared_memory_in_templates_beside_plain_kernels():
    source = (
        "template <typename T> __device__ T last(T v) { __shared__ T slot;\n"
        " if (threadIdx.x == 31) slot = v; __syncthreads(); return slot; }\n"
        "__global__ void k(float* y) { __shared__ float mine[32]; mine[threadIdx.x] = threadIdx.x;\n"
        " y[threadIdx.x] = last(mine[threadIdx.x]) + last(static_cast<int>(threadIdx.x)); }\n"
    )
    assert set(launch_one(source)) == {62}


def test_variables_are_found_outside_functions_only():
    source = (
        "__constant__ float a[3];\n__device__ int b = 4;\n// __device__ int c;\n"
        "__device__ float f(float x) { const float d = x; return d; }\n"
    )
    assert host_source(source, (), ()).symbols == ("a", "b")


def test_defines_reach_the_source():
    source = "__global__ void k(float* y) { y[threadIdx.x] = VALUE; }\n"
    assert set(launch_one(source, defines={"VALUE": 7})) == {7}
    assert set(launch_one(source, defines=("VALUE=8",))) == {8}


def test_device_macros_are_defined():
    source = (
        "#if defined(CPU_CUDA) && __CUDA_ARCH__ == 900\n__global__ void k(float* y) { y[threadIdx.x] = 1; }\n#endif\n"
    )
    assert set(launch_one(source)) == {1}


def test_missing_source_and_unknown_mode_are_refused(tmp_path):
    with pytest.raises(SpecError, match="no kernel source at"):
        compile_source(tmp_path / "none.cu", entries=["k"])
    with pytest.raises(SpecError, match="mode 'slow' is none of fast, race, address"):
        compile_source("\n", entries=["k"], mode="slow")


NOT_EMULATED = {
    "inline PTX": 'asm volatile("membar.gl;");',
    "thread block clusters": "auto c = cg::this_cluster();",
    "tensor memory accelerator": 'asm("x"); cde::cp_reduce_async_bulk_shared_to_global(to, from, 16);',
    "wgmma": "wgmma::f();",
    "mbarrier": "__mbarrier_init(p, 1);",
    "textures or surfaces": "tex2D<float>(t, x, y);",
    "dynamic parallelism": "child<<<1, 32>>>();",
    "libcu++": "\n#include <cuda/atomic>\n",
}


@pytest.mark.parametrize("reason", NOT_EMULATED)
def test_source_that_cannot_be_emulated_says_why(reason):
    assert not_emulated(f"__global__ void k() {{ {NOT_EMULATED[reason]} }}\n") == reason


@pytest.mark.parametrize(
    "code",
    ['asm __volatile__("membar.gl;");', '__asm__ __volatile__("x");', '__asm("x");', 'asm/**/volatile ("x");',
     "\n#define PTX asm volatile\n PTX(\"x\");", "\n#define PTX(text) __asm__ \\\n  volatile(text)\n PTX(\"x\");",
     'as\\\nm("x");'],
)  # fmt: skip
def test_inline_ptx_is_found_by_its_word_however_it_is_written(code: str) -> None:
    assert not_emulated(f"__global__ void k() {{ {code} }}\n") == "inline PTX"


@pytest.mark.parametrize("text", ['"bar.sync 0;"', '"mov.u32 %0, %laneid;" : "=r"(y)', '"x" : "=f"(y)'])
def test_what_the_assembler_refuses_is_not_emulated(text: str) -> None:
    """No reader of the source sees a word that the preprocessor pastes together."""
    code = f"#define PASTE(a, b) a##b\n__global__ void k(float* x) {{ int y; PASTE(as, m)({text}); *x = y; }}\n"
    assert not_emulated(code) is None
    with pytest.raises(BackendUnavailable, match="not emulated: inline PTX"):
        compile_source(code, entries=["k"])


@pytest.mark.parametrize("source", [
    "#ifdef CPU_CUDA\nint f();\n#else\nint f() { asm(\"x\"); }\n#endif\n",
    "#ifndef CPU_CUDA\nint f() { asm(\"x\"); }\n#endif\n",
    "#if !defined(CPU_CUDA)\n#if A\nasm(\"x\");\n#endif\n#else\nint f();\n#endif\n",
    "// asm(\"x\"); wgmma\n/* tex2D<float>( */ const char* s = \"mbarrier\";\n",
    "#include <cuda/std/cstdint>\nint asm_like(int);\n",
])  # fmt: skip
def test_devices_branch_comments_and_strings_do_not_count(source):
    assert not_emulated(source) is None


def test_header_with_ptx_counts_unless_it_has_a_branch_for_the_cpu(tmp_path):
    kernel = tmp_path / "k.cu"
    kernel.write_text('#include "ptx.cuh"\n__global__ void k() {}\n')
    (tmp_path / "ptx.cuh").write_text('__device__ void f() { asm volatile("x"); }\n')
    assert not_emulated(kernel) == "inline PTX"
    (tmp_path / "ptx.cuh").write_text(
        '#ifdef CPU_CUDA\n__device__ void f() {}\n#else\n__device__ void f() { asm volatile("x"); }\n#endif\n'
    )
    assert not_emulated(kernel) is None


def test_an_entry_that_only_devices_have_is_not_emulated() -> None:
    code = """
        template <class T> __global__ void k() {}
        struct Both {};
        template <class E> struct Ahead;
        template <class T> struct Passed {};
        template <class E> struct Passed<Ahead<E>> { using Kind = E; };
        #ifndef CPU_CUDA
        struct Thirds { static constexpr bool FAST = true; };
        template <class E>
        struct Ahead : Passed<E> {
        };
        #endif
        """
    assert entry_not_emulated("k<Thirds>", code) == "'Thirds' is in code for devices alone"
    assert entry_not_emulated("k<Ahead<int>>", code) == "'Ahead' is in code for devices alone"
    assert entry_not_emulated("k<Passed<int>>", code) is None
    assert entry_not_emulated("k<Both>", code) is None
    assert entry_not_emulated("k<true>", code) is None
    assert entry_not_emulated("k<Unknown>", code) is None, "what is nowhere is the card's fault"


RUN_WHEN_LOADED = {
    "constructor": "__attribute__((constructor)) static void f() { volatile int a = 1; }",
    "early constructor": "__attribute__((constructor(99))) static void f() { volatile int a = 1; }",
    "destructor": "__attribute__((destructor)) static void f() { volatile int a = 1; }",
    "object": "volatile int g; struct Before { Before() { g = 1; } }; static Before before;",
    "variable": "int f(); volatile int v = 1; int f() { return v; } __device__ int g = f();",
    "list of a section": 'void f() {}\n__attribute__((section(".ctors"), used)) void (*const p)() = f;',
    "code of a section": '__attribute__((section(".init"), used)) void f() {}',
    "indirect function": "static int a() { return 1; }\nstatic int (*f())() { return a; }\n"
    '__attribute__((ifunc("_ZN12_GLOBAL__N_1L1fEv"), used)) int g();',
}


@pytest.mark.parametrize("mode", ["fast", "race"])
@pytest.mark.parametrize("kind", RUN_WHEN_LOADED)
def test_code_that_a_loader_would_run_is_refused_where_only_kernels_may_be(kind: str, mode: str) -> None:
    kernel = "\n__constant__ float table[2] = {1, 2};\n__global__ void k(float* y) { y[0] = table[1]; }\n"
    if kind == "constructor":
        compile_source(kernel, entries=["k"], mode=mode, only_kernels=True)
    with pytest.raises(SpecError, match=r"host code that would run when it is loaded"):
        compile_source(f"{RUN_WHEN_LOADED[kind]}{kernel}", entries=["k"], mode=mode, only_kernels=True)
