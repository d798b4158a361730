"""Launches of CUDA kernels in the forms of real host code, read as expressions over the kernels' parameters."""

import pytest

from prism_bench.extensions.init.sources.expressions import number_of
from prism_bench.extensions.init.sources.skeleton import scan, skeleton

KERNEL = """
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""
TEMPLATE = """
template <typename T, int kBlock>
__global__ void k(const T* x, T* y, int n) {
    int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""


def scanned(tmp_path, text):
    path = tmp_path / "k.cu"
    path.write_text(text)
    return scan(path)


def launch_of(tmp_path, host, kernel=KERNEL):
    (scanned_kernel,) = scanned(tmp_path, kernel + host).kernels
    assert scanned_kernel.launch is not None
    return scanned_kernel.launch


ARGUMENTS = "const float* x, float* y, int n, cudaStream_t s"


@pytest.mark.parametrize(
    ("host", "grid", "block"),
    [
        ("dim3 g((n + 127) / 128), b(128); k<<<g, b, 0, s>>>(x, y, n);", ("-(-n // 128)",), ("128",)),
        ("dim3 b = {32, 4}; dim3 g = {(n + b.x - 1) / b.x, 2}; k<<<g, b>>>(x, y, n);", ("-(-n // 32)", "2"),
         ("32", "4")),
        ("dim3 g; g.x = n / 64; k<<<g, 64>>>(x, y, n);", ("(n // 64)",), ("64",)),
        ("auto f = &k; f<<<n, 1>>>(x, y, n);", ("n",), ("1",)),
        ("void (*f)(const float*, float*, int) = k; f<<<n, 1>>>(x, y, n);", ("n",), ("1",)),
        ("void* args[] = {&x, &y, &n}; cudaLaunchKernel((void*)k, dim3(n), dim3(32), args, 0, s);", ("n",), ("32",)),
        ("cudaLaunchConfig_t c = {}; c.gridDim = n; c.blockDim = dim3(32, 2); cudaLaunchKernelEx(&c, k, x, y, n);",
         ("n",), ("32", "2")),
        ("cudaLaunchConfig_t c{n, 96, 0, s}; cudaLaunchKernelEx(&c, k, x, y, n);", ("n",), ("96",)),
        ("RUN(k, n, x, y, n);", ("-(-n // THREADS)".replace("THREADS", "256"),), ("256",)),
        ("auto cdiv = [](int a, int b) { return (a + b - 1) / b; }; k<<<cdiv(n, 32), 32>>>(x, y, n);",
         ("-(-n // 32)",), ("32",)),
        ("k<<<blocks_of(n), THREADS>>>(x, y, n);", ("-(-n // 256)",), ("256",)),
        ("k<<<ROUND(n, 64), 64>>>(x, y, n);", ("-(-n // 64)",), ("64",)),
        ("int b = n / 64; b = n % 64 == 0 ? b : b + 1; k<<<b, 64>>>(x, y, n);",
         ("((n // 64) if ((n % 64) == 0) else ((n // 64) + 1))",), ("64",)),
        ("cudaDeviceProp p; k<<<p.multiProcessorCount * 2, 64>>>(x, y, n);", ("(device.sm_count * 2)",), ("64",)),
        ("switch (n) { case 64: k<<<1, n>>>(x, y, n); break; default: break; }", ("1",), ("n",)),
    ],
)  # fmt: skip
def test_launch_forms_are_read(tmp_path, host, grid, block):
    macros = (
        "#define THREADS 256\n#define RUN(f, n, ...) f<<<((n) + THREADS - 1) / THREADS, THREADS>>>(__VA_ARGS__)\n"
        "#define ROUND(a, b) (((a) + (b) - 1) / (b))\n"
        "inline int blocks_of(const int n) { return (n + THREADS - 1) / THREADS; }\n"
    )
    launch = launch_of(tmp_path, f"{macros}void run({ARGUMENTS}) {{ {host} }}\n")
    assert (grid, block, ()) == (launch.grid, launch.block, launch.unread)


def test_template_arguments_are_resolved_to_numbers_types_and_enumerators(tmp_path):
    host = "void run({}) {{ const uint BM = 64; k<{}><<<n, BM>>>(x, y, n); }}\n"
    for written, arguments in (
        ("float, BM * 2", ("float", "128")),
        ("real, kWarps * 32", ("double", "256")),
        ("float, (THREADS)", ("float", "512")),
    ):
        text = "#define THREADS 512\nusing real = double;\nconstexpr int kWarps = 8;\n"
        assert arguments == launch_of(
            tmp_path, text + host.format(ARGUMENTS, written), TEMPLATE
        ).template_arguments, written  # fmt: skip
    enumerated = "enum class Act { kRelu, kGelu };\ntemplate <Act A> __global__ void k(float* y) { y[0] = 1; }\n"
    launch = launch_of(tmp_path, "void run(float* y) { k<Act::kGelu><<<1, 1>>>(y); }\n", enumerated)
    assert ("Act::kGelu",) == launch.template_arguments


def test_template_arguments_come_from_callers_and_explicit_instantiations_of_the_host_function(tmp_path):
    host = "template <typename T, int B> void run(const T* x, T* y, int n) { k<T, B><<<n / B, B>>>(x, y, n); }\n"
    calls = {
        "void all(const float* x, float* y, int n) { run<float, 128>(x, y, n); }\n": ("float", "128"),
        "template void run<double, 64>(const double*, double*, int);\n": ("double", "64"),
    }
    for call, arguments in calls.items():
        launch = launch_of(tmp_path, host + call, TEMPLATE)
        assert (arguments, (arguments[1],)) == (launch.template_arguments, launch.block)


def test_cooperative_launches_say_so(tmp_path):
    host = (
        "void run(float* x, float* y, int n) { void* a[] = {&x, &y, &n}; cudaLaunchCooperativeKernel(k, 2, 32, a); }\n"
    )
    (kernel,) = scanned(tmp_path, KERNEL + host).kernels
    assert kernel.launch is not None and kernel.launch.is_cooperative
    assert "cooperative=True" in skeleton(kernel, "k.cu").text


def test_kernels_chosen_in_branches_are_all_launched(tmp_path):
    host = (
        "__global__ void other(const float* x, float* y, int n) { y[0] = x[0]; }\n"
        f"void run({ARGUMENTS}, bool b) {{ void (*f)(const float*, float*, int); if (b) f = k; else f = &other; "
        "f<<<n, 32>>>(x, y, n); }\n"
    )
    assert [("k", ("n",)), ("other", ("n",))] == [
        (kernel.name, kernel.launch and kernel.launch.grid) for kernel in scanned(tmp_path, KERNEL + host).kernels
    ]


def test_numbers_and_repeated_arguments_of_a_launch_follow_into_the_spec(tmp_path):
    text = (
        "__global__ void k(float* y, int rows, int cols, float a) {\n"
        "    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (r < rows && c < cols) y[r * cols + c] = a;\n}\n"
        "void run(float* y, int n) { k<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(y, n, n, 0.5f); }\n"
    )
    (kernel,) = scanned(tmp_path, text).kernels
    assert (("cols", "rows"),) == kernel.launch.derived
    made = skeleton(kernel, "k.cu")
    assert '"cols": lambda rows: rows,' in made.text
    assert '"a": 0.5,' in made.text


def test_fixed_launches_fix_the_sizes_that_they_pass(tmp_path):
    (kernel,) = scanned(tmp_path, KERNEL + "void run(float* x, float* y) { k<<<4, 256>>>(x, y, 1024); }\n").kernels
    assert 2 == skeleton(kernel, "k.cu").text.count("Workload(n=1024)")


def test_a_kernel_that_only_a_kernel_launches_is_its_helper(tmp_path):
    text = (
        "__global__ void child(float* y) { y[threadIdx.x] = 1; }\n"
        "__global__ void parent(float* y) { child<<<1, 32>>>(y); y[0] = 2; }\n"
        "void run(float* y) { parent<<<1, 1>>>(y); }\n"
    )
    assert {"child": "parent", "parent": ""} == {
        kernel.name: kernel.helper_of for kernel in scanned(tmp_path, text).kernels
    }


def test_the_launch_of_a_name_goes_to_the_nearest_kernel(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.cuh").write_text(KERNEL)
        (tmp_path / folder / "run.cu").write_text("void run(float* x, float* y, int n) { k<<<n, 32>>>(x, y, n); }\n")
    assert [1, 1] == [len(kernel.launches) for kernel in scan(tmp_path).kernels]


@pytest.mark.parametrize(
    ("text", "value"),
    [("-(-10 // 4)", 3), ("min(3, 4) * 2", 6), ("(7 if 1 < 2 else 8)", 7), ("1 << 4", 16), ("n // 2", None),
     ("__import__('os')", None), ("1 // 0", None), ("1 << 999", None)],
)  # fmt: skip
def test_arithmetic_on_numbers_is_evaluated_and_nothing_else(text, value):
    assert value == number_of(text)
