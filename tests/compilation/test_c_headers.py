"""Headers of C compile for devices by NVRTC, with CUDA's folders of headers and without any, and on the emulator."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.compilation import compile_source, compilers, nvrtc_version, program
from prism_bench.compilation.compilers import include_folders, nvcc_version
from prism_bench.compilation.host_source.device_side import C_HEADERS
from prism_bench.compilation.program import cut_source, marked
from prism_bench.emulator import compile_source as compile_for_emulator
from prism_bench.emulator.build import find_compiler
from prism_bench.errors import BackendUnavailable, CompilationFailed

# What a kernel with n = 1 takes from each header, and its value.
USES = {
    "assert": ("(assert(n > 0), 1)", 1),
    "float": ("FLT_MAX / 4 * FLT_EPSILON + (FLT_MIN < 1e-37f) + (DBL_MAX > 1e308) + DBL_DIG", 2.0**103),
    "inttypes": ('(n > 1 ? printf("%" PRId64 "%" PRIu32, int64_t(n), uint32_t(n)) : 7)', 7),
    "limits": ("(INT_MAX == ~(1 << 31)) + (UINT_MAX == 0u - 1) + CHAR_BIT + (LLONG_MIN < 0) + (CHAR_MIN <= 0)", 12),
    "math": ("sqrtf(4 * n) + (INFINITY > n) + M_PI + (isnan(NAN) ? 1 : 0)", 4 + np.pi),
    "stdbool": ("(bool(n) == true)", 1),
    "stddef": ("offsetof(Pair, second) + sizeof(size_t) + (ptrdiff_t(n) < 0) + (NULL == nullptr)", 13),
    "stdint": ("sizeof(uint8_t) + sizeof(int64_t) + (UINT32_MAX == 0u - 1) + (uintptr_t(n) == INT64_C(1))", 11),
    "stdio": ('(n > 1 ? printf("%d", n) : 3)', 3),
    "stdlib": ("abs(-n)", 1),
    "string": ("(memset(y, 0, 4) != nullptr)", 1),
}
# What the headers of C++ have in std, too.
IN_STD = {
    "math": "std::sqrt(4.0f) + std::pow(x, 2.0f) + std::abs(-x) + std::fmax(x, x) + std::isnan(x)",
    "inttypes": "sizeof(std::int64_t)",
    "stddef": "sizeof(std::size_t)",
    "stdint": "sizeof(std::uint16_t) + sizeof(std::intptr_t)",
    "stdio": 'std::printf("%d", n)',
    "stdlib": "std::abs(-n)",
    "string": "(std::memcpy(y, y + 1, 4) != nullptr)",
}
# What nvcc has without any include, each with its value.
IMPLIED = {
    "uint(n) + ushort(n) + ulong(n)": 3, "M_PI": np.pi, "(INT_MAX == ~(1 << 31))": 1, "(UINT_MAX == 0u - 1)": 1,
    "sizeof(size_t) + sizeof(int64_t) + CHAR_BIT": 24, "(INFINITY > n)": 1, "(assert(n > 0), 1)": 1,
    "std::sqrt(4 * x) + std::abs(-n)": 3,
}  # fmt: skip
MORE_IMPLIED = {"sizeof(uint32_t) + sizeof(uint8_t)": 5, "(UINT32_MAX == 0u - 1)": 1}  # of nvcc with some hosts only
KERNEL = (
    'struct Pair {{ float first, second; }};\nextern "C" __global__ void k(float* y, int n, float x) {{\n{body}}}\n'
)
MAIN = "#include <vector>\nint main() { k<<<1, 1>>>(nullptr, 1, 1); }\n"
WITH_ALL = [f"{name}.h" for name in USES] + [f"c{name}" for name in USES]
ALL_USES = [value for value, _ in USES.values()]
TOOLKIT = tuple(str(path) for path in (Path("/usr/local/cuda/include"), Path("/usr/local/cuda/include/cccl")))


@pytest.fixture
def nvrtc(tmp_path, monkeypatch):
    """Return a function that compiles with the given folders of headers beyond the package's own."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    try:
        nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))

    def compiled(source, folders=()):
        monkeypatch.setattr(program, "include_folders", lambda: folders)
        return compile_source(source, ("k",), "90")

    return compiled


def source_with(tmp_path, headers, values, more=""):
    source = tmp_path / "k.cu"
    includes = "".join(f"#include <{header}>\n" for header in headers)
    lines = [f"y[{index}] = float({value});\n" for index, value in enumerate(values)]
    source.write_text(includes + KERNEL.format(body="".join(lines)) + more)
    return source


def test_every_header_of_the_package_is_tried():
    assert sorted(WITH_ALL) == sorted(path.name for path in C_HEADERS.iterdir())


@pytest.mark.parametrize("header", WITH_ALL)
def test_a_header_compiles_without_any_folder_of_headers(tmp_path, nvrtc, header):
    name = header.removesuffix(".h") if header.endswith(".h") else header[1:]
    values = [USES[name][0]] + ([IN_STD[name]] if name in IN_STD and not header.endswith(".h") else [])
    for more in ("", MAIN):
        found = nvrtc(source_with(tmp_path, [header], values, more))
        assert (False, "") == (found.cached, "".join(line for line in found.log.split("\n") if "warning" in line))


@pytest.mark.parametrize("folders", [(), include_folders(), TOOLKIT])
@pytest.mark.parametrize(
    "further", [[], ["cuda/std/limits", "cuda/std/cstdint", "cuda/std/climits", "cuda/std/cfloat"]]
)
def test_all_headers_compile_together_before_and_after_those_of_cuda(tmp_path, nvrtc, folders, further):
    if further and not any((Path(folder) / further[0]).is_file() for folder in folders):
        pytest.skip("no headers of libcu++ here")
    for headers in (further + WITH_ALL, WITH_ALL + further):
        found = nvrtc(source_with(tmp_path, headers, [*ALL_USES, *IN_STD.values()], MAIN), folders)
        assert "warning" not in found.log


@pytest.mark.parametrize("more", ["", MAIN])
def test_an_error_after_the_headers_has_the_line_of_the_users_file(tmp_path, nvrtc, more):
    source = source_with(tmp_path, WITH_ALL, ["1", "gone"], more)
    line = source.read_text().split("\n").index("y[1] = float(gone);") + 1
    with pytest.raises(CompilationFailed, match=rf"k\.cu\({line}\): error: identifier \"gone\" is undefined"):
        nvrtc(source)


@pytest.mark.parametrize("more", ["", MAIN])
def test_the_emulator_takes_the_same_headers_from_the_hosts_compiler(tmp_path, more):
    try:
        find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    source = source_with(tmp_path, WITH_ALL, [*ALL_USES, "x"], more)
    cut = cut_source(source, ("k",))
    out = np.zeros(len(USES) + 1, np.float32)
    compile_for_emulator(cut.text if cut else source, (), ("k",), "race").launch(
        "k", 1, 1, [out, np.int32(1), np.float32(1)]
    )
    np.testing.assert_allclose(out[1:], [*(value for _, value in USES.values()), 1][1:], rtol=1e-6)


@pytest.mark.parametrize("more", ["", MAIN])
def test_names_that_nvcc_has_without_an_include_compile(tmp_path, nvrtc, more):
    for value in (*IMPLIED, *MORE_IMPLIED):
        assert "warning" not in nvrtc(source_with(tmp_path, [], [value], more)).log
    with pytest.raises(CompilationFailed, match=r"k\.cu\(4\): error: identifier \"gone\" is undefined"):
        nvrtc(source_with(tmp_path, [], ["uint(n)", "gone"], more))


def test_a_source_that_has_the_names_itself_is_compiled_as_it_is(tmp_path, nvrtc):
    own = "using uint = float; constexpr float FLT_MAX = 2, M_PI = 3;\n"
    source = source_with(tmp_path, [], ["uint(n) + FLT_MAX + M_PI"])
    source.write_text(own + source.read_text())
    nvrtc(source)


def test_nvcc_has_the_names_too(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    try:
        nvcc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    compile_source(source_with(tmp_path, [], IMPLIED, MAIN), ("k",), "90", marked("nvcc", ()))


@pytest.mark.parametrize("more", ["", MAIN])
def test_the_emulator_has_the_names_without_an_include(tmp_path, more):
    try:
        find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    values = {**IMPLIED, **MORE_IMPLIED}
    source = source_with(tmp_path, [], values, more)
    cut = cut_source(source, ("k",))
    out = np.zeros(len(values), np.float32)
    compile_for_emulator(cut.text if cut else source, (), ("k",), "race").launch(
        "k", 1, 1, [out, np.int32(1), np.float32(1)]
    )
    np.testing.assert_allclose(out, [*values.values()], rtol=1e-6)


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("cub/cub.cuh", "cub/cub.cuh is a header of CCCL: pip install "),
        ("thrust/device_vector.h", "[compile]"),
        ("curand_kernel.h", "curand_kernel.h is a header of cuRAND: pip install nvidia-curand"),
        ("cutlass/gemm.h", 'CUTLASS: clone it and name its folder in the spec, options=("-I.../cutlass/include",)'),
        ("gone.cuh", ""),
    ],
)
@pytest.mark.parametrize("nvcc", ["/opt/cuda/bin/nvcc", None])
def test_a_header_that_nvrtc_does_not_find_is_named_with_what_has_it(
    tmp_path, nvrtc, monkeypatch, header, advice, nvcc
):
    def found():
        if nvcc is None:
            raise BackendUnavailable("nvcc is not here")
        return nvcc

    monkeypatch.setattr(compilers, "nvcc", found)
    with pytest.raises(CompilationFailed) as refused:
        nvrtc(source_with(tmp_path, [header], ["1"]))
    last = str(refused.value).splitlines()[-1]
    assert advice in last
    of_toolkit = bool(advice) and "CUTLASS" not in advice and nvcc is not None
    assert of_toolkit == last.endswith('; or compiler="nvcc" in the spec: /opt/cuda/bin/nvcc')
