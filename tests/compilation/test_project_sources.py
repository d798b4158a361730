"""A source with host code compiles by NVRTC without it, and by nvcc with it; a spec's paths and build are followed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench import Variant
from prism_bench.catalogue import discover
from prism_bench.catalogue.project_source import placed
from prism_bench.compilation import compile_source, compilers, nvrtc_version
from prism_bench.compilation.program import marked, toolchain_of
from prism_bench.errors import BackendUnavailable, CompilationFailed

PROJECT = Path(__file__).parents[1] / "extensions" / "init" / "sources" / "project" / "src"
STUB = """
typedef struct cublasContext* cublasHandle_t;
int cublasCreate(cublasHandle_t*);
int cublasDestroy(cublasHandle_t);
"""
SOURCE = 'source="../../src/softmax.cu"'
ENTRIES = ("softmax_kernel1", "fast::softmax_kernel2<float, 8>")
SYMBOLS = ("_Z15softmax_kernel1PfPKfii", "_ZN4fast15softmax_kernel2IfLi8EEEvPT_PKS1_ii")
SPEC = """
from prism_bench import In, KernelSpec, Launch, Out, Size, Variant, Workload
spec = KernelSpec(
    entry="softmax_kernel1", arguments=(Out("out", "N C"), In("inp", "N C"), Size("N"), Size("C")),
    launch=lambda N: Launch(grid=-(-N // 128), block=128), reference=lambda inp: inp,
    workloads={{"S0": Workload(N=4, C=5)}}, {more}
)
"""


def installed(version):
    try:
        return bool(version())
    except BackendUnavailable:
        return False


needs_nvrtc = pytest.mark.skipif(not installed(nvrtc_version), reason="NVRTC is not installed")
needs_nvcc = pytest.mark.skipif(not installed(compilers.nvcc_version), reason="nvcc is not installed")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bench" / "rows").mkdir(parents=True)
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "cublas_v2.h").write_text(STUB)
    return Path(shutil.copytree(PROJECT, tmp_path / "src")).parent


def spec_of(folder, more):
    """Return the problems of a catalogue with one spec, and that spec."""
    (folder / "bench" / "rows" / "softmax.py").write_text(SPEC.format(more=more))
    found = discover(folder / "bench")
    return [one.message for one in found.problems], found.kernels.get("softmax")


@needs_nvrtc
def test_nvrtc_compiles_the_device_side_by_name_and_by_symbol(folder):
    by_name = compile_source(folder / "src" / "softmax.cu", ENTRIES, "90")
    assert SYMBOLS == tuple(by_name.lowered.values())
    by_symbol = compile_source(folder / "src" / "softmax.cu", SYMBOLS, "90")
    assert by_name.resources == by_symbol.resources


@needs_nvrtc
def test_an_error_in_device_code_has_the_line_of_the_users_file(folder):
    path = folder / "src" / "softmax.cu"
    path.write_text(path.read_text().replace("maxval = warp_max(maxval);", "maxval = warp_max(gone);"))
    with pytest.raises(CompilationFailed, match=r"softmax\.cu\(55\): error: identifier \"gone\" is undefined"):
        compile_source(path, ENTRIES, "90")


@needs_nvrtc
def test_a_change_of_the_projects_header_compiles_again_and_a_copy_elsewhere_does_not(folder):
    first = compile_source(folder / "src" / "softmax.cu", ENTRIES, "90")
    moved = shutil.copytree(folder / "src", folder / "moved")
    assert compile_source(moved / "softmax.cu", ENTRIES, "90").cached
    header = folder / "src" / "common.h"
    header.write_text(header.read_text().replace("__device__ __forceinline__", "__device__ __noinline__"))
    assert first.path != compile_source(folder / "src" / "softmax.cu", ENTRIES, "90").path


@needs_nvcc
def test_nvcc_compiles_the_same_file_host_code_and_all(folder):
    options = marked("nvcc", (f"-I{folder / 'stubs'}",))
    found = compile_source(folder / "src" / "softmax.cu", ENTRIES, "90", options)
    assert SYMBOLS == tuple(found.lowered.values())
    assert all(found.resources[symbol].registers for symbol in SYMBOLS)
    with pytest.raises(CompilationFailed, match="no kernel 'gone'; it has void fast::softmax_kernel2<float, 8>"):
        compile_source(folder / "src" / "softmax.cu", ("gone",), "90", options)


def test_without_nvcc_the_sentence_names_the_other_way(folder, monkeypatch):
    monkeypatch.setattr(compilers.shutil, "which", lambda name, path=None: None)
    compilers.nvcc.cache_clear()
    compilers.nvcc_version.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match="nvcc is neither in PATH .* NVRTC compiles it$"):
            compile_source(folder / "src" / "softmax.cu", ENTRIES, "90", marked("nvcc", ()))
    finally:
        compilers.nvcc.cache_clear()
        compilers.nvcc_version.cache_clear()


def test_a_spec_names_its_source_and_folders_relative_to_itself(folder):
    problems, spec = spec_of(
        folder, 'source="../../src/softmax.cu", compiler="nvcc", options=("-I../../stubs", "-DA=1")'
    )
    assert ([], folder / "src" / "softmax.cu") == (problems, spec.source)
    chosen = toolchain_of(spec.options)
    assert ("nvcc", (f"-I{folder / 'stubs'}", "-DA=1")) == (chosen.compiler, chosen.options)


def test_variants_may_name_another_compiler_and_source(folder):
    (folder / "src" / "other.cu").write_text("")
    variants = '{"n": Variant("by nvcc", compiler="nvcc"), "o": Variant("other", source="../../src/other.cu")}'
    problems, spec = spec_of(folder, f'source="../../src/softmax.cu", variants={variants}')
    assert [] == problems
    assert ("nvcc", "softmax.cu") == (
        toolchain_of(spec.with_variant("n").options).compiler,
        spec.with_variant("n").source.name,
    )
    assert folder / "src" / "other.cu" == spec.with_variant("o").source


def test_a_spec_may_be_placed_again(folder):
    variants = """{"n": Variant("by NVRTC", compiler="nvrtc"), "o": Variant("other", options=("-DB",)),
                   "s": Variant("other source", source="../../src/layers/../softmax.cu")}"""
    problems, spec = spec_of(folder, f'{SOURCE}, compiler="nvcc", options=("-DA",), variants={variants}')
    by_nvrtc, other = (spec.with_variant(name).options for name in "no")
    assert ([], ("-DA",), ("--compiler=nvcc", "-DB")) == (problems, by_nvrtc, other)
    assert spec == placed(spec, spec.file)
    added = {
        **spec.variants,
        "l": Variant("late", compiler="nvrtc", options=("-DC",)),
        "i": Variant("inherits", compiler="nvrtc"),
    }
    again = placed(replace(spec, variants=added), spec.file)
    assert [("-DC",), ("-DA",)] == [again.with_variant(name).options for name in "li"]


@pytest.mark.parametrize("as_list", [True, False])
def test_flags_that_matter_come_from_the_build(folder, as_list):
    words = ["nvcc", "-ccbin", "g++", "-I../stubs", "-isystem", "/opt/x", "-DA=1", "-D", "B", "-std=c++20", "-O3", "-c",
             "--expt-relaxed-constexpr", "-gencode", "arch=compute_80,code=sm_80", "-Xcompiler", "-fPIC",
             "softmax.cu"]  # fmt: skip
    line = {"arguments": words} if as_list else {"command": " ".join(words)}
    entry = {"directory": str(folder / "src"), "file": "softmax.cu", **line}
    (folder / "compile_commands.json").write_text(json.dumps([{"file": "/x.cu", "command": ""}, entry]))
    more = 'source="../../src/softmax.cu", compile_commands="../../compile_commands.json"'
    common = (f"-I{folder / 'stubs'}", "-I/opt/x", "-DA=1", "-DB", "-std=c++20")
    assert common == spec_of(folder, more)[1].options
    assert ("--compiler=nvcc", *common, "--expt-relaxed-constexpr") == spec_of(folder, f'{more}, compiler="nvcc"')[
        1
    ].options


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('source="../../src/gone.cu"', "source '../../src/gone.cu' is no file; it is looked for at "),
        ('source="../../src/softmax.cu", compiler="clang"', "compiler 'clang' is none of nvrtc, nvcc"),
        ('source="../../src/softmax.cu", compile_commands="../../none.json"', "none.json cannot be read (No such file"),
        ('source="../../src/softmax.cu", compile_commands="../../empty.json"', "has no entry for "),
        ('source="../../src/k.so", compiler="nvcc"', "source k.so is compiled already: it takes neither compiler nor"),
        ("", "has no source softmax.cu next to it"),
        (
            f'{SOURCE}, options=("--compiler=nvcc",)',
            'options: --compiler= is not one of them; write compiler="nvcc" in',
        ),
        (f'{SOURCE}, options=("-DA", "--compiler=clang")', "options: --compiler= is not one of them"),
        (f'{SOURCE}, compiler="nvcc", options=("--compiler=nvrtc",)', "options: --compiler= is not one of them"),
        (
            f'{SOURCE}, variants={{"n": Variant("x", options=("--compiler=nvcc",))}}',
            'write compiler="nvcc" in the spec',
        ),
        (f'{SOURCE}, options=("-arch=sm_80",)', "options: leave out -arch=sm_80: --arch, or the device, names the"),
    ],
)
def test_what_a_spec_names_and_is_not_there_is_one_sentence(folder, more, complaint):
    (folder / "empty.json").write_text("[]")
    (folder / "src" / "k.so").write_bytes(b"")
    (problem,) = spec_of(folder, more)[0]
    assert complaint in problem
    assert "\n" not in problem
