"""Triton kernels of a project under wrappers, with libdevice and helpers of other modules, and their faults."""

import shutil
from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.compilation.languages import build, build_request, language, source_hash
from prism_bench.errors import BackendUnavailable, SpecError, VerificationFailed
from prism_bench.run.verification import passed, verify
from prism_bench.spec.case import Device

PROJECT = Path(__file__).parent / "wrapped"
KERNELS = ("both", "clamped", "decided", "described", "summed", "tuned")

_HEAD = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n"
_SPEC = """from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    source="../../src/kernel.py",
    language="triton",
    entry="kernel",
    arguments=(In("x", "n 4"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(-(-n // 64), constants={"BLOCK": 64}),
    reference=lambda x: x[:, 0],
    workloads={"S0": Workload(n=100)},
)
"""


@pytest.fixture(autouse=True)
def triton(monkeypatch, tmp_path):
    """Skips, saying what to install, where there is no Triton; nothing is taken from the user's cache."""
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def _interpreted(folder, name):
    (case,) = discover(folder).cases([name], ("S0",))
    return passed(verify(open_backend("emulator"), case))


def _written(folder, body, constants='{"BLOCK": 64}'):
    """Return the catalogue of a project with one kernel of this body."""
    for path, text in (("src/kernel.py", _HEAD + body), ("bench/ops/kernel.py", _SPEC), ("pyproject.toml", "")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.replace('{"BLOCK": 64}', constants))
    return folder / "bench"


def _kernel(*lines, head="@triton.jit"):
    at = "at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
    return "\n    ".join([f"{head}\ndef kernel(x, y, n, BLOCK: tl.constexpr):", at, *lines])


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrapped_kernel_is_right_in_the_interpreter(name):
    assert _interpreted(PROJECT / "bench", name)


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrapped_kernel_compiles_without_a_gpu(name):
    (case,) = discover(PROJECT / "bench").cases([name], ("S0",))
    (kernel,) = build(build_request(case, Device(compute_capability=90))).kernels.values()
    assert name == kernel.symbol


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_a_wrapped_kernel_is_right_on_a_gpu(name):
    (case,) = discover(PROJECT / "bench").cases([name], ("S0",))
    assert passed(verify(open_backend("cuda"), case))


def test_a_helper_of_another_module_is_part_of_the_kernels_hash(tmp_path):
    folder = Path(shutil.copytree(PROJECT, tmp_path / "project"))
    kernel, helper = folder / "src/rowwise/ops/rows.py", folder / "src/rowwise/scaling.py"
    before = source_hash(kernel)
    helper.write_text(helper.read_text().replace("0.5", "0.25"))
    assert before != source_hash(kernel)


def test_a_project_may_import_its_modules_by_name(tmp_path):
    catalogue = _written(tmp_path, "from shared.device import same\n\n" + _kernel(
        "tl.store(y + at, same(tl.load(x + 4 * at, at < n)), at < n)"))  # fmt: skip
    helper = tmp_path / "src/shared/device.py"
    helper.parent.mkdir()
    helper.write_text("import triton\n\n\n@triton.jit\ndef same(x):\n    return x\n")
    assert _interpreted(catalogue, "kernel")
    before = source_hash(tmp_path / "src/kernel.py")
    helper.write_text(helper.read_text().replace("return x", "return 2 * x"))
    assert before != source_hash(tmp_path / "src/kernel.py")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["tl.store(y + at, tl.load(x + 4 * at), at < n)"],
         r"kernel.py:8: .*out of bounds: load of x\[400\]; x ends at x\[399\] .program 1, 0, 0; 28 of 64"),
        (["tl.store(y + at, tl.load(x + 4 * at, at < n))"],
         r"kernel.py:8: .*out of bounds: store of y\[100\]; y ends at y\[99\] "),
        (["tl.store(y + at - 1, tl.load(x + 4 * at, at < n), at < n)"],
         r"kernel.py:8: .*out of bounds: store of y\[-1\]; y begins at y\[0\]"),
        (["tl.store(y + at, tl.load(x + (4 * at).to(tl.int64) * 1000003, at < n), at < n)"],
         r"kernel.py:8: .*out of bounds: load of x\[4000012\]; x ends at x\[399\]"),
        (["tl.atomic_add(y + at, 1.0)"], r"kernel.py:8: .*out of bounds: atomic operation of y\[100\]"),
        (["d = tl.make_tensor_descriptor(x, [n + 64, 4], [4, 1], [BLOCK, 4])",
          "tl.store(y + at, tl.sum(d.load([tl.program_id(0) * BLOCK, 0]), 1), at < n)"],
         r"kernel.py:9: .*out of bounds: load of x\[400\]"),
        (["odd = (x.to(tl.pointer_type(tl.int8)) + 2).to(tl.pointer_type(tl.float32))",
          "tl.store(y + at, tl.load(odd + at, at < n), at < n)"], r"kernel.py:9: .*misaligned: load at byte 2 of x"),
        (["tl.store(y + at, tl.nothing(x + at), at < n)"], r"kernel.py:8: .*AttributeError: .*no attribute 'nothing'"),
    ],
)  # fmt: skip
def test_a_fault_has_its_line_argument_and_element(tmp_path, lines, text):
    with pytest.raises(VerificationFailed, match=text):
        _interpreted(_written(tmp_path, _kernel(*lines)), "kernel")


@pytest.mark.parametrize(
    "lines",
    [
        ["tl.store(y + at, tl.load(x + 4 * at, at < n), at < n)"],
        ["tl.store(y + at, tl.load(x + 4 * tl.where(at < n, at, 0)), at < n)"],
        ["far = 4 * at.to(tl.int64) * tl.where(at < n, 1, 1000000007)",
         "tl.store(y + at, tl.load(x + far, at < n), at < n)"],
        ["tl.store(y + at, tl.load(x + 4 * at, at < n), at < n)", "tl.atomic_add(y + at, 0.0, at < n)"],
        ["d = tl.make_tensor_descriptor(x, [n, 4], [4, 1], [BLOCK, 4])",
         "values = d.load([tl.program_id(0) * BLOCK, 0])",
         "first = tl.sum(tl.where(tl.arange(0, 4)[None, :] == 0, values, 0.0), 1)",
         "tl.store(y + at, first, at < n)"],
    ],
)  # fmt: skip
def test_lanes_that_are_masked_off_may_point_anywhere(tmp_path, lines):
    assert _interpreted(_written(tmp_path, _kernel(*lines)), "kernel")


_TUNED = "@triton.autotune([triton.Config({'BLOCK': 32}, num_stages=2)], key=[])\n@triton.jit"
_HOOKED = (
    "def clear(args):\n    {}\n\n\n"
    "@triton.autotune([triton.Config({{'BLOCK': 64}}, pre_hook=clear)], key=[])\n@triton.jit"
)
_COPY = "tl.store(y + at, tl.load(x + 4 * at, at < n), at < n)"


@pytest.mark.parametrize(
    ("head", "lines", "constants", "error", "text"),
    [
        (_TUNED, [_COPY], "{}", SpecError,
         r"kernel.py:5: kernel: the launch gives no constant BLOCK; the first configuration .*'BLOCK': 32"),
        (_HOOKED.format("args['y'].zero_()"), [_COPY], '{"BLOCK": 64}', SpecError,
         r"kernel.py:5: .*pre_hook of its configuration changes 'y'.*return \(Zero\('y'\), Launch\(...\)\)"),
        (_HOOKED.format("args['y'].no_such_method()"), [_COPY], '{"BLOCK": 64}', BackendUnavailable,
         r"kernel.py:5: .*not emulated: the pre_hook of its configuration \(AttributeError"),
        ("@triton.jit", ["v = tl.load(x + 4 * at, at < n)", "tl.store(y + at, libdevice.yn(n, v), at < n)"],
         '{"BLOCK": 64}', BackendUnavailable, r"kernel.py:9: .*not emulated: __nv_ynf of libdevice"),
        ("@triton.jit", ["tl.atomic_xchg(y + at, tl.load(x + 4 * at, at < n), at < n)"],
         '{"BLOCK": 64}', BackendUnavailable, r"kernel.py:8: .*not emulated: Unsupported data type"),
        ("@triton.jit", ["v = tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [at], tl.int32, True, 1)",
                         "tl.store(y + at, v, at < n)"],
         '{"BLOCK": 64}', BackendUnavailable, r"kernel.py:8: .*not emulated: inline_asm .*the GPU take it"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_names_its_line_and_what_would_be(tmp_path, head, lines, constants, error, text):
    with pytest.raises(error, match=text):
        _interpreted(_written(tmp_path, _kernel(*lines, head=head), constants), "kernel")


def test_a_hook_that_changes_nothing_more_is_no_obstacle(tmp_path):
    body = _kernel(_COPY, head=_HOOKED.format("args['x'].size()"))
    assert _interpreted(_written(tmp_path, body), "kernel")


def test_a_heuristic_of_an_arguments_value_is_asked_of_the_spec_where_it_is_compiled(tmp_path):
    head = "@triton.heuristics({'BLOCK': lambda args: 64 if args['n'] > 5 else 32})\n@triton.jit"
    catalogue = _written(tmp_path, _kernel(_COPY, head=head), "{}")
    assert _interpreted(catalogue, "kernel")
    (case,) = discover(catalogue).cases(["kernel"], ("S0",))
    with pytest.raises(SpecError, match=r"kernel.py:5: the launch gives no constant BLOCK, and its heuristic cannot"):
        build(build_request(case, Device(compute_capability=90)))


@pytest.mark.parametrize(
    ("call", "reference"),
    [
        ("libdevice.rsqrt(tl.abs(v) + 1)", "1 / np.sqrt(np.abs(v) + 1)"),
        ("libdevice.fast_expf(v)", "np.exp(v)"),
        ("libdevice.tanh(v) + libdevice.log1p(v * v)", "np.tanh(v) + np.log1p(v * v)"),
        ("libdevice.round(4 * v)", "np.copysign(np.floor(np.abs(4 * v) + 0.5), v)"),
        ("libdevice.float2int_rz(4 * v).to(tl.float32)", "np.trunc(4 * v)"),
        ("libdevice.fma(v, v, v)", "v * v + v"),
        ("libdevice.popc(at).to(tl.float32)", "np.array([i.bit_count() for i in range(len(v))])"),
        ("libdevice.clz(at).to(tl.float32)", "np.array([32 - i.bit_length() for i in range(len(v))])"),
        ("libdevice.float_as_int(v).to(tl.float32, bitcast=True)", "v"),
        ("libdevice.isnan(v).to(tl.float32)", "0 * v"),
        ("libdevice.erf(v)", "special.erf(v)"),
        ("libdevice.erfinv(0.5 * libdevice.sin(v))", "special.erfinv(0.5 * np.sin(v))"),
    ],
)
def test_functions_of_libdevice_have_their_values(tmp_path, call, reference):
    catalogue = _written(tmp_path, _kernel("v = tl.load(x + 4 * at, at < n)", f"tl.store(y + at, {call}, at < n)"))
    spec = catalogue / "ops/kernel.py"
    text = spec.read_text().replace("lambda x: x[:, 0]", "reference, tolerance=normalising()")
    function = f"import numpy as np\n\ndef reference(x, special):\n    v = x[:, 0]\n    return {reference}\n\n"
    spec.write_text("from prism_bench import normalising\n" + function + text)
    assert _interpreted(catalogue, "kernel")


def test_loops_and_branches_take_numbers_that_a_kernel_computes(tmp_path):
    lines = (
        "total = tl.zeros((BLOCK,), tl.float32)",
        "for k in range(0, tl.cdiv(n, 50)):",
        "    if k < n // 60:",
        "        total += tl.load(x + 4 * at, at < n)",
        "tl.store(y + at, total, at < n)",
    )
    assert _interpreted(_written(tmp_path, _kernel(*lines)), "kernel")
