"""Host code is cut out of a source by its structure; the lines stay, and what is not clear is refused with its line."""

from pathlib import Path

import pytest

from prism_bench.compilation.host_source.device_side import device_side
from prism_bench.compilation.host_source.syntax import items_of, nodes_of, parse
from prism_bench.errors import CompilationFailed

PROJECT = Path(__file__).parents[2] / "extensions" / "init" / "sources" / "project" / "src"


def cut_of(tmp_path, text, entries=(), **headers):
    for name, content in headers.items():
        (tmp_path / f"{name}.h").write_text(content)
    source = tmp_path / "k.cu"
    source.write_text(text)
    return device_side(source, (), entries)


def lines_of(tmp_path, text, entries=(), **headers):
    """Return the lines that are left of a source, without the blank ones."""
    text = cut_of(tmp_path, text, entries, **headers).text.split('k.cu"\n', 1)[1]
    return [line.strip() for line in text.split("\n") if line.strip() and not line.startswith("#line")]


MAIN = "int main() { k<<<1, 1>>>(); }\n"
KERNEL = "__global__ void k() {}\n"


def test_device_code_keeps_its_lines():
    side = device_side(PROJECT / "softmax.cu", (), ())
    own = side.text.split(f'#line 8 "{PROJECT / "softmax.cu"}"\n')[1].split("\n")
    written = (PROJECT / "softmax.cu").read_text().split("\n")[7:]
    left = {number: line for number, line in enumerate(own) if line.strip()}
    assert len(left) > 40
    assert all(written[number] == line for number, line in left.items())


def test_the_cut_names_what_is_gone():
    cuts = {cut.what: (cut.path.name, cut.first, cut.last) for cut in device_side(PROJECT / "softmax.cu").cuts}
    assert ("softmax.cu", 85, 101) == cuts["function main"]
    assert ("softmax.cu", 14, 22) == cuts["function softmax_cpu"]
    assert ("common.h", 24, 24) == cuts["function RowShape"]
    assert not any("float.h" in what for what in cuts)
    assert not any("kernel" in what or "warp" in what for what in cuts)


@pytest.mark.parametrize(
    "text",
    ["float f(float x) { return x; }\n__global__ void k(float* y) { *y = f(*y); }\n",
     "#include <cuda_fp16.h>\n#include <mma.h>\n#include <cuda_runtime.h>\nint f() { return 1; }\n"],
)  # fmt: skip
def test_a_source_without_host_code_is_left_alone(tmp_path, text):
    assert cut_of(tmp_path, text) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("constexpr int N = 4, M = 5;\n__global__ void k() { int a[N]; }\n", "constexpr int N = 4, M = 5;"),
        ("constexpr int f() { return 2; }\n__global__ void k() { int a[f()]; }\n", "constexpr int f() { return 2; }"),
        ("struct P { int n; };\n__global__ void k(P p) {}\n", "struct P { int n; };"),
        ("typedef float Real;\n__global__ void k(Real* p) {}\n", "typedef float Real;"),
        ("using Real = float;\n__global__ void k(Real* p) {}\n", "using Real = float;"),
        ("enum Mode { FAST, SLOW };\n__global__ void k(int m) { m = SLOW; }\n", "enum Mode { FAST, SLOW };"),
        ("#define SIZE Inner::N\nstruct Inner { static constexpr int N = 4; };\n__global__ void k() { int a[SIZE]; }\n",
         "struct Inner { static constexpr int N = 4; };"),
        ("__constant__ float c[4];\n__global__ void k() {}\n", "__constant__ float c[4];"),
        ("namespace cg = cooperative_groups;\n__global__ void k() { cg::sync(cg::this_grid()); }\n",
         "namespace cg = cooperative_groups;"),
        ("struct Relu { __device__ float operator()(float x) { return x; } };\n__global__ void k() {}\n",
         "struct Relu { __device__ float operator()(float x) { return x; } };"),
        ("#define HD __host__ __device__\nHD int twice(int x) { return 2 * x; }\n__global__ void k() {}\n",
         "HD int twice(int x) { return 2 * x; }"),
        ("using namespace nvcuda;\n__global__ void k() {}\n", "using namespace nvcuda;"),
        ("#define MAKE(T) __device__ T id_##T(T x);\nMAKE(float)\n__global__ void k() {}\n", "MAKE(float)"),
        ("template <class T> __global__ void t(T* x) {}\ntemplate __global__ void t<float>(float*);\n",
         "template __global__ void t<float>(float*);"),
    ],
)  # fmt: skip
def test_what_the_device_names_is_kept(tmp_path, text, left):
    assert left in lines_of(tmp_path, text + MAIN)


@pytest.mark.parametrize(
    "gone",
    [
        "#include <vector>", "using namespace std;", "using std::vector;", "static std::vector<int> cache;",
        "struct Timer { cudaEvent_t start; void go() { cudaEventRecord(start); } };",
        "typedef std::vector<float> Floats;",
        "template <typename T> T ceil_div(T a, T b) { return (a + b - 1) / b; }", "void later(int n);",
        "HOST int only() { return 1; }", "static_assert(sizeof(long) == 8);",
        "PYBIND11_MODULE(ext, m) { m.def(\"k\", &run); }",
        "namespace fs = std::filesystem;", 'extern "C" void run_k(float* x) { k<<<1, 1>>>(); }', "BENCHMARK(k);",
        "auto r = R\"(kernel } ( \")\";", "int host() { return '{' + \"}\"[0]; }",
        "template void launch<float>(float*);",
    ],
)  # fmt: skip
def test_what_only_the_host_has_is_cut(tmp_path, gone):
    text = f"#define HOST __host__ inline\n{gone}\n{KERNEL}{MAIN}"
    assert ["#define HOST __host__ inline", "__global__ void k() {}"] == lines_of(tmp_path, text)


def test_both_branches_of_a_condition_are_cut_each_by_itself(tmp_path):
    text = "#ifdef FAST\n__device__ int f() { return 1; }\n#else\nint f() { return 2; }\n#endif\n" + KERNEL + MAIN
    expected = ["#ifdef FAST", "__device__ int f() { return 1; }", "#else", "#endif", "__global__ void k() {}"]
    assert expected == lines_of(tmp_path, text)


def test_names_in_template_arguments_of_the_entry_are_kept(tmp_path):
    text = "enum class Layout { Row };\ntemplate <Layout L> __global__ void k() {}\n" + MAIN
    assert "enum class Layout { Row };" in lines_of(tmp_path, text, ("k<Layout::Row>",))


def test_constructors_of_kept_classes_are_cut_and_data_is_not(tmp_path):
    text = (
        "struct P { P(int n); ~P(); int n; void (*then)(int); int get() { return n; } };\n__global__ void k(P p) {}\n"
    )
    (left,) = [line for line in lines_of(tmp_path, text + MAIN) if "struct" in line]
    assert "structP{intn;void(*then)(int);};" == left.replace(" ", "")


def test_headers_of_the_project_are_in_place_once(tmp_path):
    header = "#pragma once\n#include <iostream>\n__device__ int f() { return 1; }\nvoid g() { std::cout << 1; }\n"
    text = '#include "a.h"\n#include "a.h"\n' + KERNEL
    assert ["__device__ int f() { return 1; }", "__global__ void k() {}"] == lines_of(tmp_path, text, a=header)


def test_a_function_without_specifiers_is_the_devices_where_nothing_launches(tmp_path):
    functions = "float f(float x) { return x; }\nvoid log() {}\n"
    text = f"#include <iostream>\n{functions}__global__ void k(float* y) {{ *y = f(1); }}\n"
    left = lines_of(tmp_path, text)
    assert "float f(float x) { return x; }" in left
    assert "void log() {}" not in left


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#define BEGIN {\nvoid run() BEGIN\n    k<<<1, 1>>>();\n}\n", None),
        ("#define LOOP(n) for (int i = 0; i < n; i++) {\nvoid run() {\n    LOOP(3)\n    k<<<1, 1>>>();\n}\n}\n", None),
        ("#ifdef A\nvoid run(int a) {\n#else\nvoid run() {\n#endif\n    k<<<1, 1>>>();\n}\n", None),
        ("void run() { k<<<1, 1>>>();\n", 1),
    ],
)  # fmt: skip
def test_unclear_structure_is_refused_with_the_line(tmp_path, text, line):
    with pytest.raises(CompilationFailed) as caught:
        cut_of(tmp_path, f"{text}__global__ void k() {{}}\n")
    assert 'compiler="nvcc" in the spec takes the file as it is' in str(caught.value)
    assert f"k.cu:{line or ''}" in str(caught.value)


def test_what_is_left_is_parsed_without_a_defect():
    side = device_side(PROJECT / "softmax.cu")
    assert not parse(Path("k.cu"), side.text.encode()).root.has_error


def test_headers_beyond_the_project_are_the_hosts_unless_they_are_for_devices(tmp_path):
    (tmp_path / "toolkit").mkdir()
    (tmp_path / "project" / "src").mkdir(parents=True)
    for name in ("cublas_v2.h", "reduce.cuh", "cute.hpp"):
        (tmp_path / "toolkit" / name).write_text("int of_host();\n")
    (tmp_path / "project" / "own.h").write_text("#include <vector>\n__device__ int f() { return 1; }\n")
    source = tmp_path / "project" / "src" / "k.cu"
    source.write_text(
        "#include <cublas_v2.h>\n#include <own.h>\n#include <reduce.cuh>\n#include <cute/tensor.hpp>\n" + KERNEL
    )
    side = device_side(source, [tmp_path / "toolkit", tmp_path / "project"])
    assert ["include of vector", "include of cublas_v2.h"] == [cut.what for cut in side.cuts]
    assert "__device__ int f()" in side.text
    assert "#include <reduce.cuh>\n#include <cute/tensor.hpp>" in side.text


@pytest.mark.parametrize(
    ("include", "is_cut"),
    [
        ("<cublas_v2.h>", True), ("<iostream>", True), ("<sys/time.h>", True), ("<torch/extension.h>", True),
        ('"missing.h"', False), ('"missing.cuh"', False), ("<missing.cuh>", False), ("<of_nobody/missing.h>", False),
    ],
)  # fmt: skip
def test_an_include_of_no_file_is_cut_only_where_hosts_are_known_to_have_one(tmp_path, include, is_cut):
    left = lines_of(tmp_path, f"#include {include}\n{KERNEL}{MAIN}")
    assert left == ([] if is_cut else [f"#include {include}"]) + ["__global__ void k() {}"]


@pytest.mark.parametrize(
    ("parameter", "is_kept"), [("const __grid_constant__ CUtensorMap map", True), ("int n", False)]
)
def test_the_drivers_header_stays_where_a_kernel_takes_a_tensor_map(tmp_path, parameter, is_kept):
    host = "void host(CUtensorMap* map) {}\n"
    text = f"#include <cuda.h>\n__global__ void k({parameter}) {{}}\n{host}{MAIN}"
    assert is_kept is ("#include <cuda.h>" in lines_of(tmp_path, text, ("k",)))


def test_trees_of_any_depth_are_walked_in_the_order_of_the_source():
    """A recursive reader of 5,000 levels ends in a RecursionError."""
    nested = parse(Path("deep.cu"), b"int a = " + b"(" * 5000 + b"1" + b")" * 5000 + b" + 2;").root
    assert [b"1", b"2"] == [number.text for number in nodes_of(nested, "number_literal")]
    spaces = parse(Path("spaces.cu"), b"namespace a {" * 2000 + b"int b; int c;" + b"}" * 2000)
    assert ["variable b", "variable c"] == [item.what for item in items_of(spaces, is_program=True)]
