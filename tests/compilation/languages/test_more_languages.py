"""cuTile, Numba-CUDA, the CuTe DSL and Warp: cubins with launch cards, without a GPU; complaints with their place."""

import re
import shutil
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from prism_bench.backends import open_backend
from prism_bench.backends.emulator import refusal
from prism_bench.catalogue import discover
from prism_bench.compilation.cubin import check_card, elf_entries
from prism_bench.compilation.languages import build, build_request, building, language
from prism_bench.compilation.languages.child import real_module
from prism_bench.compilation.languages.language import Language
from prism_bench.compilation.languages.loaders import numba as numba_loader
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError, VerificationFailed
from prism_bench.io.installation import pip_install
from prism_bench.run.verification import passed, verify
from prism_bench.spec.case import Device
from prism_bench.spec.peer import Library

CATALOGUE = Path(__file__).parent / "more"
LANGUAGES = ("tile", "numba", "cute", "warp")
ARRAY = [8] * 7  # of Numba: two owners, elements, bytes of one, data, length, stride
SIZES = {
    "tile": [8, 4, 4, 8, 4, 4, 4, 4],
    "numba": [*ARRAY, *ARRAY, 4, 4],
    "cute": [8, 8, 4, 4],
    "warp": [24, 56, 56, 4, 4],  # the extents of a launch, two arrays with their shapes
}


@pytest.fixture(params=LANGUAGES)
def suffix(request, monkeypatch, tmp_path):
    """A language that is installed; nothing is taken from the user's cache."""
    try:
        language(request.param).require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    return request.param


def _built(suffix, folder=CATALOGUE, architecture=90):
    case = discover(folder).anywhere(f"scaled:{suffix}[n=4096]")
    request = build_request(case, Device(compute_capability=architecture))
    return build(request)


def _changed(folder, suffix, old, new):
    shutil.copytree(CATALOGUE, folder / "catalogue")
    path = folder / "catalogue" / "small" / f"scaled.{suffix}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return folder / "catalogue"


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_is_not_installed_names_its_extra(name, monkeypatch):
    monkeypatch.setattr(type(language(name).library), "is_installed", lambda _: False)
    with pytest.raises(BackendUnavailable, match=re.escape(pip_install(name, anywhere=True))):
        language(name).require_installed()


@pytest.mark.parametrize(
    ("suffix", "where", "error"),
    [("tile", "cuda.tile.compilation.export_kernel", FileNotFoundError("'tileiras' compiler not found")),
     ("numba", "numba.cuda.compile", ImportError("libNVVM is not available"))],
    indirect=["suffix"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_compiler_without_one_of_its_parts_is_no_kernels_fault(suffix, where, error, monkeypatch):
    def absent(*given, **named):
        raise error

    monkeypatch.setattr(where, absent)
    (case,) = discover(CATALOGUE).cases([f"scaled:{suffix}"], ("S0",))
    (instance,) = case.plan.instances(Device(compute_capability=90))
    with pytest.raises(BackendUnavailable, match=rf"a part of the compiler is missing \(pip.*{suffix}\]'\): .*{error}"):
        language(suffix).compile(real_module(case.spec.source_file), instance, "90")


def test_a_cute_dsl_without_a_compiler_is_not_there(monkeypatch):
    monkeypatch.setattr(Library, "is_installed", lambda self: True)
    monkeypatch.setattr(sys.modules[type(language("cute")).__module__], "_is_there", lambda wheel: False)
    with pytest.raises(BackendUnavailable, match=r"CuTe DSL: a part .*bench\[cute\].*cu12 nor .*cu13"):
        language("cute").require_installed()


def test_reading_the_catalogue_imports_no_compiler():
    found = discover(CATALOGUE)
    assert not found.problems
    assert {*LANGUAGES} <= {case.variant for case in found.cases(["scaled"], ("S0",))}


def test_a_cubin_has_a_card_that_agrees_with_it(suffix):
    (kernel,) = _built(suffix).kernels.values()
    assert SIZES[suffix] == [size for _, size in kernel.card.extents]
    assert kernel.symbol in elf_entries(kernel.path.read_bytes())


def test_another_loader_takes_no_code_that_this_one_made(suffix, monkeypatch):
    kinds = [_built(suffix), _built(suffix)]
    monkeypatch.setattr(building, "_loader_text", lambda name: "another way to compile")
    kinds.append(_built(suffix))
    assert [False, True, False] == [kernel.cached for built in kinds for kernel in built.kernels.values()]


@pytest.mark.parametrize("suffix", ["tile"], indirect=True)
def test_a_cluster_that_the_cubin_requires_is_on_its_card(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, '"TILE": ', '"num_ctas": 2, "TILE": ')
    (kernel,) = _built(suffix, folder).kernels.values()
    cubin = kernel.path.read_bytes()
    assert ((2, 1, 1), (2, 1, 1)) == (kernel.card.cluster, elf_entries(cubin)[kernel.symbol].cluster)
    with pytest.raises(SpecError, match="its cluster has 1x1x1 blocks; the cubin requires 2x1x1"):
        check_card(replace(kernel.card, cluster=(1, 1, 1)), cubin)


@pytest.mark.parametrize(("name", "part"), [("tile", "nvidia-cuda-tileiras"), ("numba", "nvidia-nvvm")])
@pytest.mark.parametrize(("installed", "words"), [("13.5.37", " 13.5.37"), (None, " of a toolkit")])
def test_a_version_has_the_parts_that_make_the_code(name, part, installed, words, monkeypatch):
    def version(distribution):
        if distribution == part and installed is None:
            raise PackageNotFoundError(distribution)
        return "13.5.37"

    monkeypatch.setattr(Library, "is_installed", lambda self: True)
    monkeypatch.setattr(Library, "installed_version", lambda self: "1.2.3")
    monkeypatch.setattr(sys.modules[Language.__module__], "version", version)
    found = language(name).require_installed()
    assert found.startswith("1.2.3 (")
    assert next(iter(language(name).parts)) + words in found


@pytest.mark.parametrize("architecture", [80, 100, 120])
def test_each_architecture_has_its_own_code(suffix, architecture):
    built = _built(suffix, architecture=architecture)
    assert built.sass not in ("", _built(suffix).sass)


def test_code_that_does_not_compile_is_told_with_its_file(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, "* factor", "* no_such_name")
    with pytest.raises(CompilationFailed, match=rf"scaled\.{suffix}\.py.*[\s\S]*no_such_name"):
        _built(suffix, folder)


@pytest.mark.parametrize("suffix", ["tile", "numba", "warp"], indirect=True)  # the CuTe DSL compares them itself
def test_a_launch_that_does_not_fit_the_function_is_refused(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, "n: wp.int32, factor" if suffix == "warp" else "n, factor", "factor")
    with pytest.raises(SpecError, match="the launch passes x, y, n, factor"):
        _built(suffix, folder)


@pytest.mark.parametrize("suffix", ["numba", "warp"], indirect=True)
def test_a_form_runs_without_a_gpu_where_its_language_can(suffix):
    case = discover(CATALOGUE).anywhere(f"scaled:{suffix}[n=1001]")
    assert passed(verify(open_backend("emulator"), case, (0,)))


@pytest.mark.parametrize("suffix", ["numba", "warp"], indirect=True)
def test_a_form_that_writes_behind_its_output_is_found_without_a_gpu(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, "if first + item < n", "if first + item < n + 1")
    with pytest.raises(VerificationFailed):
        verify(open_backend("emulator"), discover(folder).anywhere(f"scaled:{suffix}[n=1001]"), (0,))


def test_a_launch_of_too_many_threads_for_a_simulator_is_named(monkeypatch):
    monkeypatch.setattr(Library, "is_installed", lambda self: True)
    monkeypatch.setattr(type(language("numba")), "most_threads", 100)
    case = discover(CATALOGUE).anywhere("scaled:numba[n=1001]")
    assert "a launch has 512 threads; Numba-CUDA interprets at most 100" in (refusal(case) or "")


def test_a_type_that_warps_function_does_not_have_is_refused(tmp_path):
    if not language("warp").library.is_installed():
        pytest.skip("Warp is not installed")
    folder = _changed(tmp_path, "warp", "factor: wp.float32", "factor: wp.int32")
    with pytest.raises(SpecError, match="'factor' is one int32; the launch passes 'factor', one float32"):
        _built("warp", folder)


@pytest.mark.parametrize("suffix", ["cute"], indirect=True)
def test_dynamic_shared_memory_is_a_constant_of_the_launch(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, '{"threads": 128}', '{"threads": 128, "shared": 4096}')
    path = folder / "small" / "scaled.cute.py"
    text = path.read_text().replace(
        "threads: cutlass.Constexpr)", "threads: cutlass.Constexpr, shared: cutlass.Constexpr)"
    )
    path.write_text(text)
    (kernel,) = _built(suffix, folder).kernels.values()
    assert (4096, 4096) == (kernel.card.shared, kernel.resources.shared_bytes)


def test_numba_finds_the_name_that_numpy_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", ModuleType("numba"))
    monkeypatch.setitem(sys.modules, "numba.cuda", ModuleType("numba.cuda"))
    monkeypatch.setattr(np, "row_stack", None, raising=False)  # is put back afterwards, or taken away again
    monkeypatch.delattr(np, "row_stack")
    numba_loader._numba_cuda()
    assert vars(np)["row_stack"] is np.vstack
