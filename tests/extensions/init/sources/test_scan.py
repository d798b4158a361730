"""Scan of a project: kernels, launches and operators, and the lines of parts that cannot be read."""

from pathlib import Path

import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.init.sources.skeleton import scan

PROJECT = Path(__file__).parent / "project"


def scanned(tmp_path, text, name="k.cu"):
    path = tmp_path / name
    path.write_text(text)
    return scan(path)


def only(tmp_path, text):
    (kernel,) = scanned(tmp_path, text).kernels
    return kernel


@pytest.fixture(scope="module")
def project():
    sources = scan(PROJECT)
    return {kernel.name: kernel for kernel in sources.kernels}, sources


def test_scan_returns_every_kernel_of_a_project(project):
    kernels, _ = project
    assert {"softmax_kernel1", "softmax_kernel2", "add_kernel"} == set(kernels)
    second = kernels["softmax_kernel2"]
    assert ("fast::softmax_kernel2", ("kWarps * 32",), True) == (
        second.qualified_name, second.launch_bounds, second.dynamic_shared,
    )  # fmt: skip
    assert [("T", "typename"), ("kWarps", "int")] == [
        (parameter.name, parameter.kind) for parameter in second.template_parameters
    ]


def test_parameters_have_types_and_guessed_roles_and_shapes(project):
    first = project[0]["softmax_kernel1"]
    seen = [
        (
            parameter.name,
            parameter.type,
            parameter.dtype,
            parameter.role.value,
            parameter.shape and parameter.shape.value,
        )
        for parameter in first.parameters
    ]
    assert [
        ("out", "float*", "float32", "output", "N C"), ("inp", "const float*", "float32", "input", "N C"),
        ("N", "int", "int32", "size", None), ("C", "int", "int32", "size", None),
    ] == seen  # fmt: skip
    assert all(parameter.role.reason for parameter in first.parameters)


def test_launches_are_expressions_over_the_kernels_parameters(project):
    first, second = (project[0][f"softmax_kernel{number}"].launch for number in (1, 2))
    assert (("-(-N // block_size)",), ("block_size",)) == (first.grid, first.block)
    assert [("block_size", 128, "passed in line 94")] == [(n, g.value, g.reason) for n, g in first.names]
    assert (("N",), ("256",), "(8 * 4)", ("float", "8")) == (
        second.grid, second.block, second.shared, second.template_arguments,
    )  # fmt: skip


HOST = "__global__ void k(float* y, int n) {{ y[0] = 0; }}\nvoid run(float* y, int n, Tensor t) {{ {} }}\n"


@pytest.mark.parametrize(
    ("written", "grid", "block"),
    [
        ("k<<<n, 64>>>(y, n);", ("n",), ("64",)),
        ("k<<<(n + 255) / 256, 256>>>(y, n);", ("-(-n // 256)",), ("256",)),
        ("const int b = 32 * 4; k<<<(n + b - 1) / b, b>>>(y, n);", ("-(-n // (32 * 4))",), ("(32 * 4)",)),
        ("k<<<ceil_div(n, 32), dim3(8, 4)>>>(y, n);", ("-(-n // 32)",), ("8", "4")),
        ("k<<<at::ceil_div<int>(n, 32), 1>>>(y, n);", ("-(-n // 32)",), ("1",)),
        ("dim3 g(n, 2), b{16, 16, 1}; k<<<g, b>>>(y, n);", ("n", "2"), ("16", "16")),
        ("dim3 g = dim3(n); k<<<g, 0x20u>>>(y, n);", ("n",), ("32",)),
        ("k<<<std::min(n, 65535), 1>>>(y, n);", ("min(n, 65535)",), ("1",)),
        ("k<<<(int)ceil((float)n / 64), 64>>>(y, n);", ("-(-n // 64)",), ("64",)),
        ("k<<<n > 0 ? n : 1, 1 << 5>>>(y, n);", ("(n if (n > 0) else 1)",), ("(1 << 5)",)),
        ("const int m = t.size(0); k<<<m, 1>>>(y, m);", ("n",), ("1",)),
        ("const int rows = t.size(0); k<<<rows, 1>>>(y, 3);", ("rows",), ("1",)),
        ("k<<<t.size(0), 1>>>(y, 3);", ("t_size_0",), ("1",)),
        ("k<<<t.shape[1], 1>>>(y, t.size(1));", ("n",), ("1",)),
        ("k<<<(t.numel() + 255) / 256, 256>>>(y, t.numel());", ("-(-n // 256)",), ("256",)),
    ],
)
def test_simple_host_expressions_are_read(tmp_path, written, grid, block):
    launch = only(tmp_path, HOST.format(written)).launch
    assert (grid, block, ()) == (launch.grid, launch.block, launch.unread)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("k<<<blocks(n), 1>>>(y, n);", "grid: 'blocks(n)' is a call that is not known"),
        ("k<<<1, a[3]>>>(y, n);", "block: 'a[3]' is no name, number, arithmetic or ceil division"),
        ("k<<<1, 1, sizeof(Tile)>>>(y, n);", "shared memory: 'sizeof(Tile)' is not known without a compiler"),
        ("int a = b, b = a; k<<<a, 1>>>(y, n);", None),
    ],
)
def test_complex_host_expressions_are_listed_with_their_line(tmp_path, written, reason):
    unread = scanned(tmp_path, HOST.format(written)).unread
    assert [reason] * bool(reason) == [part.reason for part in unread]
    assert all(part.line == 2 for part in unread)


def test_launches_that_name_no_kernel_are_listed(tmp_path):
    text = (
        "__global__ void k(float* y) {}\n"
        "void a(void** args) { cudaLaunchKernel((void*)k, 1, 1, args, 0, 0); }\n"
        "void b() { cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, 0, args, 0); }\nvoid c() { gone<<<1, 1>>>(); }\n"
    )
    reasons = {part.line: part.reason for part in scanned(tmp_path, text).unread}
    assert {
        2: "cudaLaunchKernel with arguments that are not followed; taken: cudaLaunchKernel(kernel, grid, block, args, "
        "...)",
        3: "cuLaunchKernel launches a module's function by a handle; name the kernel and its launch in a spec",
        4: "launches gone, which no file here defines",
    } == reasons  # fmt: skip


def test_specifiers_in_macros_and_unknown_attributes_hide_no_kernel(tmp_path):
    (tmp_path / "macros.h").write_text(
        "#define HD __host__ __device__\n#define KERNEL __global__ HD2\n#define HD2 static\n"
    )
    text = (
        'extern "C" __global__ __cluster_dims__(2, 1, 1) void a(const float4* __restrict__ x) {}\nKERNEL void b() {}\n'
    )
    assert ["a", "b"] == [kernel.name for kernel in scanned(tmp_path, text).kernels]


def test_kernels_that_a_macro_makes_are_read_where_it_is_called(tmp_path):
    text = (
        "#define MAKE(name, op) \\\n    __global__ void name##_kernel(float* x, int n) { x[threadIdx.x] op 1; }\n"
        "MAKE(a, =)\nMAKE(b,\n     +=)\nvoid run(float* x) { a_kernel<<<1, 32>>>(x, 32); }\n"
    )
    kernels = scanned(tmp_path, text).kernels
    assert [("a_kernel", 3, "output"), ("b_kernel", 4, "in_out")] == [
        (kernel.name, kernel.line, kernel.parameters[0].role.value) for kernel in kernels
    ]
    assert [6, None] == [kernel.launch and kernel.launch.line for kernel in kernels]


@pytest.mark.parametrize(
    ("body", "role", "shape"),
    [
        ("int i = threadIdx.x; if (i < n) y[i] = 1;", "output", "n"),
        ("int i = threadIdx.x; if (i >= n) return; y[i] += 1;", "in_out", "n"),
        ("float* row = y + blockIdx.x * m; for (int j = 0; j < m; j++) row[j] = 0;", "output", "n m"),
        ("int i = 0, j = 0; if (i < m && j < n) y[i * n + j] = y[i * n + j] * 2;", "in_out", "m n"),
        ("atomicAdd(&y[0], 1.0f);", "in_out", "1"),
        ("fill(y, n);", "in_out", "n m"),
    ],
)
def test_roles_and_shapes_follow_from_the_body(tmp_path, body, role, shape):
    kernel = only(tmp_path, f"__global__ void k(float* y, int n, int m) {{ {body} }}")
    assert (role, shape) == (kernel.parameters[0].role.value, kernel.parameters[0].shape.value)


def test_triton_functions_are_read_and_never_executed(project):
    kernel = project[0]["add_kernel"]
    assert ("triton", ("triton.autotune", "triton.jit")) == (kernel.language, kernel.decorators)
    assert ["input", "input", "output", "size", "constexpr"] == [
        parameter.role.value for parameter in kernel.parameters
    ]
    assert [("-(-n // block)",), ("-(-n // block)",)] == [launch.grid for launch in kernel.launches]
    assert [("block", 1024)] == [(name, guess.value) for name, guess in kernel.launch.names]


def test_custom_operators_have_names_and_schemas(project):
    operators = {operator.name: operator for operator in project[1].operators}
    assert {"mylib::add", "mylib::scaled_add", "mylib::norm", "other::twice"} == set(operators)
    assert "norm(Tensor x, float eps) -> Tensor" == operators["mylib::norm"].schema
    assert (("x", "torch.Tensor"), ("y", "torch.Tensor"), ("eps", "float")) == operators["mylib::add"].arguments
    assert ["the operator's schema is no literal"] == [u.reason for u in project[1].unread if u.path.suffix == ".cpp"]


def test_files_that_are_no_text_or_no_python_are_listed(tmp_path):
    (tmp_path / "bad.py").write_text("def (")
    (tmp_path / "bad.cu").write_bytes(b"\xff\xfe__global__")
    assert {"bad.py", "bad.cu"} == {part.path.name for part in scan(tmp_path).unread}
    with pytest.raises(UsageError, match="does not exist; name a folder of sources, or a file"):
        scan(tmp_path / "gone")


DEEP = {
    "parentheses": "y[0] = " + "(" * 5000 + "x[0]" + ")" * 5000 + ";",
    "calls": "y[0] = " + "f(" * 2000 + "x[0]" + ")" * 2000 + ";",
    "sums": "y[0] = " + "+".join(["x[0]"] * 1500) + ";",
    "blocks": "{" * 2000 + "y[0] = x[0];" + "}" * 2000,
}


@pytest.mark.parametrize("form", DEEP)
def test_expressions_that_are_nested_deeply_are_read(tmp_path, form):
    (tmp_path / "deep.cu").write_text(f"__global__ void k(const float* x, float* y) {{ {DEEP[form]} }}\n")
    sources = scan(tmp_path)
    assert (["k"], ()) == ([kernel.name for kernel in sources.kernels], sources.unread)


def test_a_file_that_cannot_be_read_stops_no_other(tmp_path):
    texts = {
        "spaces.cu": "namespace a {" * 3000 + "__global__ void k(int* y) { y[0] = 1; }" + "}" * 3000,
        "signs.py": "z = " + "-" * 20_000 + "1\n",
        "sums.py": "import triton\n\nz = " + "+".join(["1"] * 400) + "\n",
        "other.cu": "__global__ void other(int* y) { y[0] = 1; }\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    sources = scan(tmp_path)
    assert ["other"] == [kernel.name for kernel in sources.kernels]
    assert {
        ("signs.py", 1, "expressions are nested too deeply to be read"),
        ("spaces.cu", 1, "brackets are nested too deeply to be read"),
        ("sums.py", 3, "expressions are nested too deeply to be read"),
    } == {(part.path.name, part.line, part.reason) for part in sources.unread}
