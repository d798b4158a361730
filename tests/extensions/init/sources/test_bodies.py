"""Bodies of CUDA kernels: shapes, roles, tolerances and proposed references of their buffers."""

import pytest

from prism_bench.catalogue import discover
from prism_bench.extensions.init.sources.skeleton import scan, skeleton


def kernel_of(tmp_path, text, name="k"):
    path = tmp_path / "k.cu"
    path.write_text(text)
    return next(kernel for kernel in scan(path).kernels if kernel.name == name)


def shapes_of(kernel):
    return {p.name: p.shape.value for p in kernel.parameters if p.shape}


def roles_of(kernel):
    return {p.name: p.role.value for p in kernel.parameters if p.is_pointer}


TILED = """
#define DIV(a, b) (((a) + (b) - 1) / (b))
template <const int BM, const int BN, const int BK>
__global__ void k(int M, int N, int K, const float* A, const float* B, float* C) {
    __shared__ float sa[BM * BK], sb[BK * BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    const uint r = threadIdx.x / BN, c = threadIdx.x % BN;
    float sum = 0.0f;
    for (uint k0 = 0; k0 < K; k0 += BK) {
        sa[threadIdx.x] = A[(threadIdx.x / BK) * K + threadIdx.x % BK];
        sb[threadIdx.x] = B[r * N + c];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (uint i = 0; i < BK; ++i) sum += sa[r * BK + i] * sb[i * BN + c];
        __syncthreads();
    }
    C[r * N + c] = sum;
}
void run(int M, int N, int K, float* A, float* B, float* C) {
    const uint BK = 16;
    k<16, 16, BK><<<dim3(DIV(N, 16), DIV(M, 16)), 256>>>(M, N, K, A, B, C);
}
"""


def test_a_tiled_product_has_the_shapes_and_the_tolerance_of_one(tmp_path):
    kernel = kernel_of(tmp_path, TILED)
    assert {"A": "M K", "B": "K N", "C": "M N"} == shapes_of(kernel)
    assert ("product", "K") == (kernel.arithmetic.value, kernel.depth)
    made = skeleton(kernel, "k.cu")
    product = (
        "tolerance=product(magnitude=lambda A, B, xp: xp.abs(A) @ xp.abs(B), depth=lambda K: K),  # guess: confirm"
    )
    assert (True, True) == (made.loads, product in made.text)
    assert 'S0": Workload(M=64, N=128, K=32)' in made.text  # tiles divide it, and no two axes are equal


HEAD = "__global__ void k({}) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n{}\n}}\n"
RUN = "void run({}) {{ k<<<{}>>>({}); }}\n"


def text_of(parameters, body, launch, passed, before=""):
    return before + HEAD.format(parameters, body) + RUN.format(parameters, launch, passed)


@pytest.mark.parametrize(
    ("parameters", "body", "launch", "passed", "shapes"),
    [
        ("const float* x, float* y, int B, int T, int C", "if (i < B * T * C) y[i] = x[i];",
         "(B * T * C + 255) / 256, 256",
         "x, y, B, T, C", {"x": "B T C", "y": "B T C"}),
        ("const float* x, float* y, int cols", "for (int j = threadIdx.x; j < cols; j += blockDim.x) "
         "y[blockIdx.x * cols + j] = x[blockIdx.x * cols + j];", "rows, 128", "x, y, cols",
         {"x": "rows cols", "y": "rows cols"}),
        ("const float* x, float* y, int p", "float s = 0; for (int j = 0; j < p; j++) s += x[j * 256 + threadIdx.x]; "
         "y[threadIdx.x] = s;", "1, 256", "x, y, p", {"x": "p 256", "y": "256"}),
        ("const float4* x, float4* y, int n4", "if (i < n4) y[i] = x[i];", "(n4 + 63) / 64, 64", "x, y, n4",
         {"x": "n4 4", "y": "n4 4"}),
        ("const unsigned char* rgb, unsigned char* gray, int h, int w", "int r = blockIdx.y; if (r < h && i < w) "
         "gray[r * w + i] = rgb[(r * w + i) * 3 + 1];", "dim3((w + 31) / 32, h), 32", "rgb, gray, h, w",
         {"rgb": "h w 3", "gray": "h w"}),
        ("const float* x, float* y, int M, int N", "int r = blockIdx.y; y[AT(r, i, N)] = x[AT(r, i, N)];",
         "dim3(N / 64, M), 64", "x, y, M, N", {"x": "M N", "y": "M N"}),
        ("const float* x, float* total, int n", "float s = 0; for (; i < n; i += blockDim.x * gridDim.x) s += x[i]; "
         "atomicAdd(total, s);", "32, 256", "x, total, n", {"x": "n", "total": "1"}),
        ("const float* x, float* y, int n", "reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];",
         "n / 4 / 256, 256", "x, y, n", {"x": "n", "y": "n"}),
    ],
)  # fmt: skip
def test_shapes_follow_from_indices_and_the_launch(tmp_path, parameters, body, launch, passed, shapes):
    text = text_of(parameters, body, launch, passed, "#define AT(y, x, w) ((y) * (w) + (x))\n")
    text = text.replace("void run(", "void run(int rows, ")
    assert shapes == shapes_of(kernel_of(tmp_path, text))


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("if (i < n) y[i] = x[i];", "output"),
        ("if (i < n) FLOAT4(y[4 * i]) = FLOAT4(x[4 * i]);", "output"),
        ("reinterpret_cast<float4*>(&y[i * 4])[0] = reinterpret_cast<const float4*>(&x[i * 4])[0];", "output"),
        ("store_to(y + i, x[i]);", "output"),
        ("add_to(y + i, x[i]);", "in_out"),
        ("__stcs(y + i, x[i]);", "output"),
        ("switch (n) { case 0: y[i] = 0; break; default: y[i] *= 2; }", "in_out"),
        ("y[index[i]] = x[i];", "in_out"),
        ("float v = y[i] + x[i];", "input"),
        ("", "input"),
    ],
)
def test_roles_follow_accesses_through_casts_macros_and_functions(tmp_path, body, role):
    before = (
        "#define FLOAT4(v) (reinterpret_cast<float4*>(&(v))[0])\n"
        "__device__ void store_to(float* p, float v) { *p = v; }\n"
        "__device__ void add_to(float* p, float v) { *p += v; }\n"
    )
    kernel = kernel_of(tmp_path, before + HEAD.format("const float* x, float* y, const int* index, int n", body))
    assert role == roles_of(kernel)["y"]


@pytest.mark.parametrize(
    ("body", "tolerance"),
    [
        ("y[i] = x[i];", ""),
        ("y[i] = x[i] + 1.0f;", ""),
        ("y[i] = x[i] + x[4 * i + 1];", ""),
        ("y[i] *= 2.0f * x[i];", ""),
        ("y[i] += 2.0f * x[i];", "elementwise(ulps=64, floor=1e-05)"),
        ("y[i] = x[i] - y[i] + 1.0f;", "elementwise(ulps=64, floor=1e-05)"),
        ("y[i] = x[i] * 2.0f + x[i] * 3.0f;", "elementwise(ulps=64, floor=1e-05)"),
        ("y[i] = tanhf(x[i]);", "elementwise(ulps=64, floor=1e-05)"),
        ("float m = -1e30f; for (int j = 0; j < n; j++) m = fmaxf(m, x[j]); y[i] = m;", ""),
        ("float s = 0; for (int j = 0; j < n; j++) s += x[j]; y[i] = x[i] / s;", "normalising()"),
        ("for (int j = i; j < n; j += blockDim.x * gridDim.x) y[j] += x[j];", ""),
        ("y[i] = __shfl_xor_sync(~0u, x[i], 1) + x[i];", "normalising()"),
    ],
)
def test_tolerances_follow_from_how_a_body_sums(tmp_path, body, tolerance):
    parameters = "const float* x, float* y, int n"
    made = skeleton(kernel_of(tmp_path, text_of(parameters, f"if (i >= n) return; {body}", "(n + 63) / 64, 64",
                                                "x, y, n")), "k.cu")  # fmt: skip
    lines = [line.strip() for line in made.text.splitlines() if line.strip().startswith("tolerance=")]
    assert [f"tolerance={tolerance},"] * bool(tolerance) == [
        line.partition("  # guess: confirm (")[0] for line in lines
    ]
    assert all("# guess: confirm (" in line for line in lines)


@pytest.mark.parametrize(
    ("dtype", "body", "tolerance"),
    [
        ("half", "float s = 0; for (int j = 0; j < n; j++) s += (float)x[j]; y[0] = s;", "normwise(0.001)"),
        ("__half", "half s = 0; for (int j = 0; j < n; j++) s = __hfma(x[j], x[j], s); y[0] = s;", "normwise(0.02)"),
        ("double", "double s = 0; for (int j = 0; j < n; j++) s += x[j]; y[0] = s;", "normwise(1e-12)"),
        ("int", "int s = 0; for (int j = 0; j < n; j++) s += x[j]; y[0] = s;", ""),
    ],
)  # fmt: skip
def test_tolerances_of_sums_follow_the_type_of_the_output(tmp_path, dtype, body, tolerance):
    parameters = f"const {dtype}* x, {dtype}* y, int n"
    text = skeleton(kernel_of(tmp_path, text_of(parameters, body, "1, 32", "x, y, n")), "k.cu").text
    assert bool(tolerance) == ("tolerance=" in text)
    assert f"tolerance={tolerance}" in text or not tolerance


@pytest.mark.parametrize(
    ("body", "is_rounded"),
    [
        ("q[i] = (signed char)rintf(x[i] * s);", True),
        ("q[i] = __float2int_rn(x[i] * s);", True),
        ("float v = x[i] * s; int k = (int)v; q[i] = max(-127, min(127, k));", True),
        ("q[i] = static_cast<signed char>(x[i] / s);", True),
        ("q[i] = quantized(x[i], s);", True),
        ("q[i] = (signed char)x[i];", False),  # no arithmetic: both truncate the same number
        ("q[i] = x[i] > s;", False),
        ("q[i] = (signed char)(k[i] + 1);", False),
        ("q[(int)(x[i] * s)] = k[i];", False),
    ],
)
def test_integers_of_rounded_floats_may_be_off_by_one_near_a_cut(tmp_path, body, is_rounded):
    before = "__device__ signed char quantized(float v, float s) { return (signed char)roundf(v / s); }\n"
    parameters = "const float* x, const signed char* k, signed char* q, float s, int n"
    text = text_of(parameters, f"if (i < n) {{ {body} }}", "(n + 63) / 64, 64", "x, k, q, s, n", before)
    made = skeleton(kernel_of(tmp_path, text), "k.cu").text
    assert is_rounded == ("tolerance=absolute(1, share=1 / 16),  # guess: confirm (floats rounded" in made)


@pytest.mark.parametrize(
    ("body", "expression"),
    [
        ("if (i < n) y[i] = a * x[i] + y[i];", "(a * x) + y"),
        ("if (i >= n) return; float v = x[i]; if (v < 0) v *= a; y[i] = v;", "xp.where(x < 0, x * a, x)"),
        ("for (; i < n; i += blockDim.x * gridDim.x) y[i] = 1.f / (1.f + expf(-x[i]));", "1.0 / (1.0 + xp.exp(-x))"),
        ("if (i < n) y[i] = silu(x[i]);", "x / (1.0 + xp.exp(-x))"),
        ("if (i < n) y[i] = x[i] > a ? x[i] : -1.0f;", "xp.where(x > a, x, -1.0)"),
        ("i *= 4; if (i < n) y[i] = x[i];", ""),
        ("if (i > 0 && i < n - 1) y[i] = x[i];", ""),
        ("if (i < n) y[i] = x[i + 1];", ""),
        ("if (i < n) y[i] = x[i] + i;", ""),
        ("if (i < n) { y[i] = x[i]; y[i] = 0; }", ""),
        ("float s = 0; for (int j = 0; j < n; j++) s += x[j]; if (i < n) y[i] = s;", ""),
        ("if (i < n) atomicAdd(y + i, x[i]);", ""),
    ],
)
def test_a_reference_is_proposed_for_one_expression_an_element_alone(tmp_path, body, expression):
    before = "__device__ float silu(float z) { float e = __expf(-z); return z / (1.0f + e); }\n"
    text = text_of("const float* x, float* y, float a, int n", body, "(n + 63) / 64, 64", "x, y, a, n", before)
    kernel = kernel_of(tmp_path, text)
    assert [expression] * bool(expression) == [proposed for _, proposed in kernel.proposed]


def test_broadcasts_and_transposes_are_proposed_by_the_shapes(tmp_path):
    text = (
        "__global__ void k(const float* x, const float* b, const float* s, float* y, int M, int N) {\n"
        "    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;\n"
        "    if (r < M && c < N) y[r * N + c] = x[r * N + c] * s[r] + b[c];\n}\n"
        "__global__ void t(const float* x, float* y, int M, int N) {\n"
        "    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;\n"
        "    if (r < M && c < N) y[c * M + r] = x[r * N + c];\n}\n"
        "void run(float* x, float* b, float* s, float* y, int M, int N) {\n"
        "    k<<<dim3((N + 63) / 64, M), 64>>>(x, b, s, y, M, N); t<<<dim3((N + 63) / 64, M), 64>>>(x, y, M, N);\n}\n"
    )
    assert (("y", "(x * s[:, None]) + b"),) == kernel_of(tmp_path, text).proposed
    assert (("y", "x.T"),) == kernel_of(tmp_path, text, "t").proposed


def test_a_proposed_reference_verifies_nothing_until_a_person_confirms_it(tmp_path):
    text = text_of("const float* x, float* y, int n", "if (i < n) y[i] = x[i];", "(n + 63) / 64, 64", "x, y, n")
    made = skeleton(kernel_of(tmp_path, text), "k.cu")
    raising, returning = (made.text.index(part) for part in ("    raise NotImplementedError(", "    return x  # guess"))
    assert raising < returning
    assert "confirm the reference" in made.open_points


def test_elements_that_are_indices_stay_below_what_they_index(tmp_path):
    text = text_of(
        "const int* ids, const float* table, float* y, int n, int d",
        "for (int j = threadIdx.x; j < d; j += blockDim.x) "
        "y[blockIdx.x * d + j] = table[ids[blockIdx.x] * d + j];", "n, 64", "ids, table, y, n, d",
    )  # fmt: skip
    kernel = kernel_of(tmp_path, text)
    assert {"ids": "n", "table": "ids_values d", "y": "n d"} == shapes_of(kernel)
    assert 'In("ids", "n", dtype="int32", fill=integers(0, "ids_values"))' in skeleton(kernel, "k.cu").text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("float s = 0; for (int j = ids[i]; j < ids[i + 1]; j++) s += x[j]; y[i] = s;",
         "k.cu:3: elements of ids bound a loop: give its values by a fill"),
        ("y[ids[i]] = x[i];", "k.cu:3: ids decides where y is written: give it different values by a fill"),
    ],
)  # fmt: skip
def test_buffers_whose_values_matter_make_a_draft(tmp_path, body, reason):
    text = text_of("const int* ids, const float* x, float* y, int n", body, "(n + 63) / 64, 64", "ids, x, y, n")
    made = skeleton(kernel_of(tmp_path, text), "k.cu")
    assert (False, True) == (made.loads, made.open_points[0].endswith(reason))


def test_types_behind_other_names_are_read(tmp_path):
    (tmp_path / "types.h").write_text(
        "#ifdef USE_HALF\ntypedef half real;\n#else\ntypedef float real;\n#endif\nusing index_t = unsigned long long;\n"
    )
    text = (
        '#include "types.h"\n'
        "__global__ void k(real const* x, real* y, __nv_bfloat16* b, index_t n, Other p) { y[0] = x[0]; b[0] = 0; }\n"
    )
    path = tmp_path / "k.cu"
    path.write_text(text)
    (kernel,) = scan(tmp_path).kernels
    assert ["float32", "float32", "bfloat16", "uint64", None] == [p.dtype for p in kernel.parameters]
    assert {"x": "input", "y": "output", "b": "output"} == roles_of(kernel)
    assert any("k.cu:2: p has type Other: a spec passes" in point for point in skeleton(kernel, "k.cu").open_points)


SHAPE = "struct Shape { int rows, cols; float scale; bool flip; int count() const { return rows * cols; } };\n"


def test_a_plain_structure_is_passed_with_its_fields(tmp_path):
    text = SHAPE + text_of(
        "const float* x, float* y, const Shape s",
        "int r = blockIdx.y; if (r < s.rows && i < s.cols) y[r * s.cols + i] = s.scale * x[r * s.cols + i];",
        "dim3((s.cols + 63) / 64, s.rows), 64", "x, y, s",
    ).replace("const Shape s) { k", "Shape& s) { k")  # fmt: skip
    kernel = kernel_of(tmp_path, text)
    assert {"x": "rows cols", "y": "rows cols"} == shapes_of(kernel)
    (tmp_path / "specs" / "family").mkdir(parents=True)
    made = skeleton(kernel, "../../k.cu")
    (tmp_path / "specs" / "family" / "k.py").write_text(made.text)
    catalogue = discover(tmp_path / "specs")
    assert (True, ()) == (made.loads, catalogue.problems)
    assert f"# guess: confirm Shape of {tmp_path / 'k.cu'}:1" in made.text
    spec = catalogue.kernel("k")
    assert {"rows": 5, "cols": 70, "scale": 1.0, "flip": True} == spec.argument("s").seen(
        {**spec.parameters, "rows": 5, "cols": 70}
    )
    assert (2, 5) == spec.launch(rows=5, cols=70).grid


def test_the_fields_of_a_structure_get_the_names_of_its_initialiser(tmp_path):
    text = SHAPE + text_of(
        "const float* x, float* y, Shape s", "if (i < s.cols) y[i] = x[i];", "(n + 63) / 64, 64", "x, y, s"
    ).replace("Shape s) { k", "int m, int n) { Shape s{m, n, 2.0f, false}; k")
    launch = kernel_of(tmp_path, text).launch
    assert (("-(-cols // 64)",), ("64",)) == (launch.grid, launch.block)


def test_a_functor_is_the_template_argument_of_the_entry(tmp_path):
    text = (
        "struct Scale { float by; __device__ float operator()(float v) const { return by * v; } };\n"
        "template <typename Op> "
    ) + text_of("const float* x, float* y, int n, Op op", "if (i < n) y[i] = op(x[i]);", "(n + 63) / 64, 64",
                "x, y, n, Scale{2.0f}").replace(", Op op) { k", ") { k")  # fmt: skip
    made = skeleton(kernel_of(tmp_path, text), "k.cu")
    assert (True, True) == (made.loads, 'Struct("op", [("by", "float32")])' in made.text)
    assert 'entry="k<Scale>"' in made.text


def test_a_tensor_map_makes_a_draft_that_tells_how_it_is_passed(tmp_path):
    signature = "const __grid_constant__ CUtensorMap x, float* y, int n"
    text = text_of(signature, "if (i < n) y[i] = i;", "(n + 63) / 64, 64", "x, y, n")
    made = skeleton(kernel_of(tmp_path, text), "k.cu")
    assert not made.loads
    assert "x has type const __grid_constant__ CUtensorMap: name its array, and pass it by maps=" in made.open_points[0]


@pytest.mark.parametrize(
    ("structure", "reason"),
    [
        ("struct P { float* data; };", "P of {}:1 has the field float* data, which is no number"),
        ("struct P { int shape[4]; };", "P of {}:1 has the field int shape[4], which is no number"),
        ("struct P { float4 v; };", "P of {}:1 has the field float4 v, which is no number"),
        ("struct P : Q { int a; };", "P of {}:1 has a base class"),
        ("struct P { virtual int f(); int a; };", "P of {}:1 has a virtual function"),
        ("struct P { int n; };", "P of {}:1 has the field n, a name that is taken"),
        ("struct P;", "a spec passes buffers, numbers and plain structures"),
    ],
)
def test_a_structure_that_is_not_plain_makes_a_draft_that_names_it(tmp_path, structure, reason):
    text = f"{structure}\n" + text_of("float* y, int n, P p", "if (i < n) y[i] = i;", "(n + 63) / 64, 64", "y, n, p")
    made = skeleton(kernel_of(tmp_path, text), "k.cu")
    path = tmp_path / "k.cu"
    assert (False, f"{path}:2: p has type P: {reason.format(path)}") == (made.loads, made.open_points[0])
