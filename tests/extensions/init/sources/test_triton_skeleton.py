"""Skeletons of Triton kernels: launches, shapes, strides, constants and tuning spaces as the project has them."""

import re
import shutil
from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.compilation.languages import language
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.init.sources.skeleton import scan, skeleton
from prism_bench.run.verification import passed, verify

PROJECT = Path(__file__).parent / "triton_project"
TUTORIALS = Path(__file__).parents[3] / "strangers" / "16_tutorials"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
ADD = """
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) + 1, at < n)

def launch(x):
    y = torch.empty_like(x)
"""
# Bodies of references for the project's kernels.
REFERENCES = {
    "add_kernel": ("x_ptr, y_ptr", "x_ptr + y_ptr"),
    "silu_mul_kernel": ("a_ptr, b_ptr", "a_ptr / (1 + np.exp(-a_ptr)) * b_ptr"),
    "sum_kernel": ("x_ptr", "x_ptr.sum(keepdims=True)"),
    "embedding_kernel": ("idx_ptr, weight_ptr", "weight_ptr[idx_ptr]"),
    "sgd_kernel": ("p_ptr, g_ptr, lr, weight_decay", "p_ptr - lr * (g_ptr + weight_decay * p_ptr)"),
    "matmul_kernel": ("a_ptr, b_ptr", "a_ptr @ b_ptr"),
    "transpose_kernel": ("x_ptr", "x_ptr.T"),
    "row_max": ("x", "x.max(axis=1)"),
    "head_scale": ("q_ptr, s_ptr", "q_ptr * s_ptr[None, :, None, None]"),
}


@pytest.fixture(scope="module")
def kernels():
    return {kernel.name: kernel for folder in (TUTORIALS, PROJECT / "src") for kernel in scan(folder).kernels}


def _catalogue(tmp_path, kernels, references=None):
    """Return the catalogue of skeletons, with references in place of what a person writes."""
    family = tmp_path / "bench" / "ops"
    family.mkdir(parents=True)
    for kernel in kernels:
        made = skeleton(kernel, f"../../src/ops/{kernel.path.name}")
        text = made.text
        if references and kernel.name in references:
            names, body = references[kernel.name]
            function = f"import numpy as np\n\n\ndef reference({names}):\n    return {body}\n\n\nspec = "
            text = re.sub(r"def reference\(.*?\n\n\nspec = ", lambda _, by=function: by, text, flags=re.DOTALL)
        (family / made.file_name).write_text(text)
    return discover(tmp_path / "bench")


def _shapes(kernel):
    return {parameter.name: parameter.shape.value for parameter in kernel.parameters if parameter.shape}


def _only(tmp_path, text):
    source = tmp_path / "k.py"
    source.write_text(HEAD + text)
    (kernel,) = scan(source).kernels
    return kernel


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("add_kernel", {"x_ptr": "n_elements", "y_ptr": "n_elements", "output_ptr": "n_elements"}),
        ("softmax_kernel", {"output_ptr": "n_rows n_cols", "input_ptr": "n_rows n_cols"}),
        ("_layer_norm_fwd_fused", {"X": "M N", "Y": "M N", "W": "N", "B": "N", "Mean": "M", "Rstd": "M"}),
        ("embedding_kernel", {"idx_ptr": "n", "weight_ptr": "entries n_cols", "out_ptr": "n n_cols"}),
        ("matmul_kernel", {"a_ptr": "M K", "b_ptr": "K N", "c_ptr": "M N"}),
        ("matmul_desc", {"a_ptr": "M K", "b_ptr": "K N", "c_ptr": "M N"}),
        ("transpose_kernel", {"x_ptr": "M N", "y_ptr": "N M"}),
        ("head_scale", {"q_ptr": "B H S D", "s_ptr": "H", "o_ptr": "B H S D"}),
        ("sum_kernel", {"x_ptr": "n", "out_ptr": "1"}),
        ("gelu_bias_kernel", {"x_ptr": "n", "bias_ptr": "cols", "y_ptr": "n"}),
    ],
)
def test_offsets_and_bounds_give_shapes(kernels, name, shapes):
    assert shapes == _shapes(kernels[name])


def test_strides_follow_from_the_shapes(kernels):
    strides = {
        "stride_am": "K",
        "stride_ak": "1",
        "stride_bk": "N",
        "stride_bn": "1",
        "stride_cm": "N",
        "stride_cn": "1",
    }
    assert strides == dict(kernels["matmul_kernel"].derived)
    assert {"stride_xm": "N", "stride_xn": "1", "stride_ym": "M", "stride_yn": "1"} == dict(
        kernels["transpose_kernel"].derived
    )


def test_a_helper_of_another_file_gets_no_spec(kernels):
    assert {"silu": "silu_mul_kernel", "gelu_tanh": "gelu_bias_kernel", "leaky_relu": "matmul_kernel"} == {
        name: kernel.helper_of for name, kernel in kernels.items() if kernel.helper_of
    }


def test_configurations_of_autotune_are_the_constants_and_the_tuning_space(kernels, tmp_path):
    shutil.copytree(PROJECT / "src", tmp_path / "src")
    catalogue = _catalogue(tmp_path, [kernels["matmul_kernel"]])
    assert () == catalogue.problems
    spec = catalogue.kernel("matmul_kernel")
    assert {"BLOCK_SIZE_M": (64, 128), "num_warps": (4, 8), "num_stages": (3, 4)} == dict(spec.tune.values)
    (rule,) = spec.tune.rules
    assert (True, False) == (rule.holds(128, 8, 4), rule.holds(128, 4, 4))
    assert {"BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 8} == spec.parameters


def test_heuristics_and_blocks_follow_from_the_axes(kernels):
    constants = dict(kernels["row_max"].launch.constants)
    values = {name: eval(text, {"N": 100, "max": max}) for name, text in constants.items()}
    assert {"BLOCK_N": 128, "EVEN_N": False} == values


@pytest.mark.parametrize(
    ("name", "kind"),
    [("add_kernel", "elementwise"), ("silu_mul_kernel", "functions"), ("softmax_kernel", "normalising"),
     ("sum_kernel", "reduction"), ("matmul_kernel", "product"), ("matmul_desc", "product")],
)  # fmt: skip
def test_the_tolerance_allows_for_what_the_kernel_does(kernels, name, kind):
    assert kind == kernels[name].arithmetic.value


def test_a_body_of_one_expression_for_each_element_proposes_a_reference(kernels):
    proposed = {name: kernel.proposed for name, kernel in kernels.items() if kernel.proposed}
    assert {"add_kernel", "silu_mul_kernel", "sgd_kernel", "_dropout"} == proposed.keys()
    assert (("output_ptr", "(x_ptr + y_ptr)"),) == proposed["add_kernel"]


def test_indices_are_below_the_extent_that_they_select_from(kernels):
    assert ("int64", "entries") == next(
        (parameter.dtype, parameter.below)
        for parameter in kernels["embedding_kernel"].parameters
        if parameter.name == "idx_ptr"
    )


def test_a_buffer_that_the_host_zeroes_is_an_output_after_a_zero_step(kernels, tmp_path):
    assert ("out_ptr",) == kernels["sum_kernel"].launch.zeroed
    text = skeleton(kernels["sum_kernel"], "k.py").text
    assert '(Zero("out_ptr"), Launch(' in text
    assert 'Out("out_ptr", "1")' in text


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_skeleton_verifies_with_a_reference_alone(kernels, tmp_path, name, monkeypatch):
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    shutil.copytree(PROJECT / "src", tmp_path / "src")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    catalogue = _catalogue(tmp_path, [kernels[name]], REFERENCES)
    assert () == catalogue.problems
    (case,) = catalogue.cases([name], ("S0",))
    assert passed(verify(open_backend("emulator"), case))


@pytest.mark.parametrize(
    ("call", "grid"),
    [
        ("grid = lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)\n    kernel[grid](x, y, x.numel(), BLOCK=64)",
         ("-(-n // BLOCK)",)),
        ("n = x.shape[0]\n    grid = (triton.cdiv(n, 64), 1)\n    kernel[grid](x, y, n, 64)", ("-(-n // BLOCK)", "1")),
        ("M, N = x.shape\n    kernel[(triton.cdiv(M * N, 64),)](x, y, M * N, BLOCK=64)", ("-(-n // BLOCK)",)),
        ("def grid(meta):\n        return (triton.cdiv(y.numel(), meta['BLOCK']),)\n"
         "    kernel[grid](x, y, y.numel(), BLOCK=64)", ("-(-n // BLOCK)",)),
        ("run = kernel[(min(x.size(0), 8),)]\n    run(x, y, x.size(0), BLOCK=64)", ("min(n, 8)",)),
        ("with torch.cuda.device(0):\n        kernel[triton.cdiv(len(x), 64),](n=len(x), x=x, y=y, BLOCK=64)",
         ("-(-n // BLOCK)",)),
    ],
)  # fmt: skip
def test_grids_through_variables_functions_and_shapes(tmp_path, call, grid):
    kernel = _only(tmp_path, ADD + f"    {call}\n    return y\n")
    assert ((), grid) == (kernel.launch.unread, kernel.launch.grid)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("kernel[grid_of(x)](x, y, x.numel(), BLOCK=64)", "k.py:13: grid: 'grid_of(x)' is no name, number or division"),
        ("kernel[lambda meta: (meta['a b'],)](x, y, x.numel(), BLOCK=64)", "k.py:13: grid: 'meta['a b']' is no name"),
        ("kernel[lambda meta: (meta['if'],)](x, y, x.numel(), BLOCK=64)", "k.py:13: grid: 'meta['if']' is no name"),
        ("kernel[(1,)](*(x, y, 3), BLOCK=64)", "k.py:13: passes *arguments, whose number the file does not state"),
        ("kernel[(1,)](x, y, **options)", "k.py:13: passes **arguments, whose names the file does not state"),
    ],
)
def test_a_launch_that_cannot_be_read_names_its_line(tmp_path, call, reason):
    made = skeleton(_only(tmp_path, ADD + f"    {call}\n"), "k.py")
    assert not made.loads
    assert any(reason in point for point in made.open_points)


@pytest.mark.parametrize(
    ("block", "size"),
    [
        ("int(math.sqrt(n))", 54),
        ("math.isqrt(n)", 54),
        ("math.isqrt(triton.cdiv(n, 30))", 10),
        ("triton.cdiv(n, 1000) ** 2", 9),
        ("math.ceil(n ** 0.5)", 55),
        ("triton.next_power_of_2(math.ceil(math.sqrt(n)))", 64),
        ("math.ceil(n / 7)", 429),
        ("math.floor(n / 7)", 428),
        ("divmod(n, 7)[0]", None),
        ("2 ** math.ceil(math.log2(n))", None),
        ("pick(n)", None),
        ("block", None),
    ],
)
def test_a_block_is_computed_as_the_host_does_or_makes_a_draft(tmp_path, block, size):
    call = f"    n = x.numel()\n    kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK={block})\n"
    kernel = _only(tmp_path, ADD.replace("launch(x)", "launch(x, block)") + call)
    made = skeleton(kernel, "k.py")
    if size is None:
        assert "k.py:14: BLOCK decides the launch or a shape, and no value of it can be read" in made.text
        assert not made.loads
    else:
        (text,) = [text for name, text in kernel.launch.constants if name == "BLOCK"]
        assert (True, size) == (made.loads, eval(text, {"n": 3000}))


def test_quotient_and_remainder_of_divmod_are_read(tmp_path):
    call = "    n = x.numel()\n    full, rest = divmod(n, 64)\n    kernel[(full + (rest != 0),)](x, y, n, BLOCK=64)\n"
    kernel = _only(tmp_path, ADD + call)
    assert [1, 2, 3] == [eval(kernel.launch.grid[0], {"n": n, "BLOCK": 64}) for n in (64, 65, 130)]
    assert skeleton(kernel, "k.py").loads


def test_a_grid_by_what_is_no_size_makes_a_draft(tmp_path):
    call = "    kernel[(triton.cdiv(x.numel(), chunk),)](x, y, x.numel(), BLOCK=64)\n"
    made = skeleton(_only(tmp_path, ADD.replace("launch(x)", "launch(x, chunk)") + call), "k.py")
    assert not made.loads
    assert "k.py:13: the grid has chunk, which is no size of a buffer and no parameter of the kernel" in made.text


ROWS = """
@triton.jit
def kernel(x, y, {names}, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    {body}

def launch(x, groups):
    y = torch.empty_like(x)
    M, N = x.shape
    size = triton.cdiv(N, 4)
    kernel[(M,)](x, y, {passed}, BLOCK=triton.next_power_of_2(N))
"""
_MASK = "mask=cols < n)\n    "


@pytest.mark.parametrize(
    ("names", "passed", "body", "shapes"),
    [
        ("n", "N", f"a = tl.load(x + row * 2 * n + n + cols, {_MASK}tl.store(y + row * n + cols, a, {_MASK}",
         {"x": "M 2 n", "y": "M n"}),
        ("stride, n", "x.stride(0), N",
         f"x += row * tl.cast(stride, tl.int64)\n    tl.store(y + row * n + cols, tl.load(x + cols, {_MASK}, {_MASK}",
         {"x": "M n", "y": "M n"}),
        ("m, n", "groups, N", f"a = tl.load(x + row * m * n + cols, {_MASK}tl.store(y + row * n + cols, a, {_MASK}",
         {"x": "M m n", "y": "M n"}),
        ("n, t", "N, 3", "d = tl.make_tensor_descriptor(x + row * t * n, shape=[t, n], strides=[n, 1],"
         f" block_shape=[1, BLOCK])\n    tl.store(y + row * n + cols, d.load([0, 0]), {_MASK}",
         {"x": "M t n", "y": "M n"}),
    ],
)  # fmt: skip
def test_shapes_have_every_factor_of_an_offset(tmp_path, names, passed, body, shapes):
    assert shapes == _shapes(_only(tmp_path, ROWS.format(names=names, passed=passed, body=body)))


def test_a_size_that_the_host_computes_follows_from_the_others(tmp_path):
    body = "tl.store(y + row * size + cols, tl.load(x + row * n + cols, cols < n), cols < size)"
    kernel = _only(tmp_path, ROWS.format(names="n, size", passed="N, size", body=body))
    assert ("size", "-(-n // 4)") in kernel.derived
    assert {"x": "M n", "y": "M size"} == _shapes(kernel)


def test_configurations_of_another_file_are_read_through_its_import(tmp_path):
    tuned = ADD.replace("@triton.jit", "@triton.autotune(configs=blocks(), key=['n'])\n@triton.jit")
    call = "    kernel[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, y, x.numel())\n"
    (tmp_path / "k.py").write_text(HEAD + "from .settings import blocks\n" + tuned + call)
    settings = "def blocks():\n    sizes = [64, 128]\n    return [triton.Config({'BLOCK': size}) for size in sizes]\n"
    (tmp_path / "settings.py").write_text(HEAD + settings)
    (kernel,) = scan(tmp_path).kernels
    assert (("BLOCK", (64, 128)),) == kernel.tune
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "settings.py").write_text(HEAD + settings)  # either may be meant
    (kernel,) = scan(tmp_path).kernels
    assert not skeleton(kernel, "k.py").loads


def test_a_kernel_without_output_and_a_kernel_without_launch_are_drafts(tmp_path):
    body = "@triton.jit\ndef kernel(x, n):\n    at = tl.arange(0, 16)\n    tl.load(x + at, at < n)\n"
    made = skeleton(_only(tmp_path, body), "k.py")
    assert not made.loads
    assert ["no file here launches it", "no output"] == [
        text for text in ("no file here launches it", "no output") if any(text in point for point in made.open_points)
    ]


def test_a_type_as_a_constant_is_its_name(tmp_path):
    text = ADD.replace("BLOCK: tl.constexpr", "DT: tl.constexpr, BLOCK: tl.constexpr")
    kernel = _only(tmp_path, text + "    kernel[(1,)](x, y, x.numel(), DT=tl.float16, BLOCK=64)\n")
    assert "'tl.float16'" == dict(kernel.launch.constants)["DT"]


def test_kernels_in_other_languages_are_named_with_what_a_spec_takes():
    unread = {part.line: part.reason for part in scan(PROJECT / "others.py").unread}
    lines = (PROJECT / "others.py").read_text().splitlines()
    named = {lines[line - 1].strip(): reason for line, reason in unread.items()}
    assert 11 - 1 == len(named)
    for head, text in (
        (
            'k = cp.RawKernel(SRC, "saxpy")',
            "RawKernel saxpy has its source in a string; move the CUDA C++ to a .cu file",
        ),
        ('m = cp.RawModule(code=SRC, options=("-std=c++17",))', "RawModule has its source in a string (saxpy, other)"),
        ("def numba_kernel(x, y):", "kernel numba_kernel in Numba gets no skeleton; a spec takes it with source= this"),
        ("def inside(self, a):", "kernel inside in the CuTe DSL"),
    ):
        assert named[head].startswith(text)


@pytest.mark.parametrize(
    ("grid", "body", "expected"),
    [
        ("triton.cdiv(n, 64)", "tl.program_id(0) * B + tl.arange(0, B)", "-(-n // B)"),
        ("(n + 63) // 64", "tl.program_id(0) * B + tl.arange(0, B)", "((n + B - 1) // B)"),
        ("n // 64 + (n % 64 != 0)", "tl.program_id(0) * B + tl.arange(0, B)", "((n // B) + ((n % B) != 0))"),
        ("triton.cdiv(n, 64)", "tl.program_id(0) * 64 + tl.arange(0, B)", "-(-n // 64)"),  # whatever B is
        ("triton.cdiv(n, 32)", "tl.program_id(0) * B + tl.arange(0, B)", "-(-n // 32)"),
    ],
)
def test_a_grid_divides_by_the_parameter_that_the_body_multiplies_by(tmp_path, grid, body, expected):
    path = tmp_path / "k.py"
    path.write_text(
        f"{HEAD}@triton.jit\ndef k(x, y, n, B: tl.constexpr):\n    at = {body}\n"
        "    tl.store(y + at, tl.load(x + at, at < n), at < n)\n\n"
        f"def f(x):\n    y = torch.empty_like(x)\n    n = x.numel()\n    k[({grid},)](x, y, n, B=64)\n"
    )
    (kernel,) = scan(path).kernels
    assert (expected,) == kernel.launch.grid


@pytest.mark.parametrize(
    ("stored", "is_rounded"),
    [
        ("(v * s).to(tl.int8)", True),
        ("tl.floor(v / s).to(tl.int8)", True),
        ("tl.maximum(v * s, -127.0).to(tl.int8)", True),
        ("v.to(tl.int8)", False),
        ("(v > s).to(tl.int8)", False),
        ("tl.where(v > s, 1, 0)", False),
    ],
)
def test_integers_of_rounded_floats_may_be_off_by_one_near_a_cut(tmp_path, stored, is_rounded):
    path = tmp_path / "k.py"
    path.write_text(
        f"{HEAD}@triton.jit\ndef k(x, q, s, n, B: tl.constexpr):\n    at = tl.program_id(0) * B + tl.arange(0, B)\n"
        f"    v = tl.load(x + at, at < n)\n    tl.store(q + at, {stored}, at < n)\n\n"
        "def f(x, s):\n    q = torch.empty_like(x, dtype=torch.int8)\n    n = x.numel()\n"
        "    k[(triton.cdiv(n, 64),)](x, q, s, n, B=64)\n"
    )
    (kernel,) = scan(path).kernels
    assert is_rounded == ("tolerance=absolute(1, share=1 / 16)," in skeleton(kernel, "k.py").text)
