"""Sources to machine code by NVRTC, no GPU needed: errors with file and line, a cache that notices every change."""

import io
import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from prism_bench.compilation import compile_source, compilers, include_folders, nvrtc_version, sass_hash
from prism_bench.compilation.cubin import data_hash
from prism_bench.compilation.program import content_hash
from prism_bench.errors import BackendUnavailable, CompilationFailed
from prism_bench.io.installation import pip_install

SOURCES = Path(__file__).parent / "sources"


def installed():
    try:
        return bool(nvrtc_version())
    except BackendUnavailable:
        return False


needs_nvrtc = pytest.mark.skipif(not installed(), reason="NVRTC is not installed")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the sources, and a compile cache of its own."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(SOURCES, tmp_path / "sources"))


def compiled(folder, name="scale", entries=None, **options):
    return compile_source(folder / "plain" / f"{name}.cu", entries or (name,), "90", **options)


def rewrite(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_without_nvrtc_the_sentence_says_what_to_install_and_what_works(folder, monkeypatch):
    def missing():
        raise ImportError("No module named 'cupy'")

    monkeypatch.setattr(compilers, "_CupyBindings", missing)
    monkeypatch.setattr(compilers, "_CudaBindings", missing)
    compilers.load.cache_clear()
    try:
        with pytest.raises(BackendUnavailable) as caught:
            compiled(folder)
    finally:
        compilers.load.cache_clear()
    words = str(caught.value)
    assert f"NVRTC is not installed; {pip_install('compile')}" in words
    assert "work without it" in words
    assert "\n" not in words


@needs_nvrtc
def test_machine_code_is_whole(folder):
    cubin = compiled(folder).cubin
    header = ELFFile(io.BytesIO(cubin)).header
    ends = [header[f"e_{one}off"] + header[f"e_{one}num"] * header[f"e_{one}entsize"] for one in ("ph", "sh")]
    assert max(ends) == len(cubin)


@needs_nvrtc
def test_a_source_becomes_machine_code_with_its_entries_and_resources(folder):
    found = compiled(folder)
    assert b"\x7fELF" == found.cubin[:4]
    assert {"scale": "scale"} == found.lowered
    assert found.resources["scale"].registers > 0
    assert 0 == found.resources["scale"].spill_stores
    assert not found.cached


@needs_nvrtc
def test_hopper_is_compiled_for_with_the_instructions_of_its_own(folder):
    assert "for 'sm_90a'" in compiled(folder).log


@needs_nvrtc
def test_a_template_instance_is_an_entry_like_any_other(folder):
    found = compiled(folder, entries=("wide<3>", "wide<5>"))
    assert 2 == len(set(found.lowered.values()))
    assert set(found.lowered.values()) <= set(found.resources)


@needs_nvrtc
def test_a_source_that_does_not_compile_is_named_with_its_line(folder):
    with pytest.raises(CompilationFailed) as caught:
        compiled(folder, "broken")
    words = str(caught.value)
    assert f'{folder / "plain" / "broken.cu"}(2): error: identifier "undeclared_name" is undefined' in words
    assert 1 == caught.value.exit_code


@needs_nvrtc
def test_an_entry_that_the_source_does_not_define_is_named(folder):
    with pytest.raises(CompilationFailed, match="nowhere"):
        compiled(folder, entries=("nowhere",))


@needs_nvrtc
def test_a_failure_is_not_remembered(folder):
    with pytest.raises(CompilationFailed):
        compiled(folder, "broken")
    rewrite(folder / "plain" / "broken.cu", "undeclared_name", "1.0f")
    assert not compiled(folder, "broken").cached


@needs_nvrtc
def test_the_second_time_comes_from_the_cache_and_is_the_same(folder):
    first, second = compiled(folder), compiled(folder)
    assert second.cached
    assert (first.path, first.lowered, first.resources, first.seconds, first.log) == (
        second.path, second.lowered, second.resources, second.seconds, second.log,
    )  # fmt: skip
    assert first.cubin == second.cubin


@needs_nvrtc
def test_the_cache_can_be_left_out(folder):
    compiled(folder)
    again = compiled(folder, cache=False)
    assert not again.cached
    assert "scale" in again.resources


@needs_nvrtc
@pytest.mark.parametrize("header", ["factor.cuh", "inner.cuh"])
def test_a_changed_header_is_noticed_however_deep_it_is_included(folder, header):
    first = compiled(folder)
    path = folder / "include" / header
    path.write_text(path.read_text() + "// changed\n")
    assert not compiled(folder).cached
    assert first.path != compiled(folder).path


@needs_nvrtc
def test_entries_options_and_architecture_are_part_of_the_key(folder):
    paths = {
        compiled(folder).path,
        compiled(folder, entries=("scale", "wide<3>")).path,
        compiled(folder, options=("-DUNUSED",)).path,
        compile_source(folder / "plain" / "scale.cu", ("scale",), "80").path,
    }
    assert 4 == len(paths)


@needs_nvrtc
def test_another_checkout_of_the_same_files_is_compiled_already(folder, tmp_path):
    first = compiled(folder)
    again = compiled(Path(shutil.copytree(SOURCES, tmp_path / "elsewhere")))
    assert (first.path, True) == (again.path, again.cached)


def test_the_hash_of_the_content_follows_headers_and_no_folder(folder, tmp_path):
    first = content_hash(folder / "plain" / "scale.cu")
    assert first == content_hash(SOURCES / "plain" / "scale.cu")
    rewrite(folder / "include" / "inner.cuh", "2.0f", "3.0f")
    assert first != content_hash(folder / "plain" / "scale.cu")


@needs_nvrtc
def test_constants_have_a_hash_that_instructions_do_not_have(folder):
    path = folder / "plain" / "table.cu"
    path.write_text("__constant__ int TABLE[2] = {400, 1};\n"
                    'extern "C" __global__ void table(int* x) { *x = TABLE[threadIdx.x]; }\n')  # fmt: skip
    first = compiled(folder, "table").cubin
    rewrite(path, "400", "500")
    second = compiled(folder, "table").cubin
    assert (True, False) == (sass_hash(first) == sass_hash(second), data_hash(first) == data_hash(second))
    assert data_hash(second) == data_hash(compiled(folder, "table").cubin)


@needs_nvrtc
def test_the_hash_of_some_entries_forgets_the_others(folder):
    path = folder / "plain" / "two.cu"
    path.write_text('extern "C" __global__ void one(int* x) { *x = 1; }\n'
                    'extern "C" __global__ void two(int* x) { *x = 2; }\n')  # fmt: skip
    first = compiled(folder, "two", ("one",))
    rewrite(path, "*x = 2", "*x = 3")
    second = compiled(folder, "two", ("one",))
    assert sass_hash(first.cubin) != sass_hash(second.cubin)
    assert sass_hash(first.cubin, leaving_out=["two"]) == sass_hash(second.cubin, leaving_out=["two"])


@needs_nvrtc
def test_the_hash_of_the_instructions_forgets_comments_and_names(folder):
    first = sass_hash(compiled(folder).cubin)
    rewrite(folder / "plain" / "scale.cu", "const int i =", "// where we are\n    const int i =")
    assert first == sass_hash(compiled(folder).cubin)
    rewrite(folder / "plain" / "scale.cu", "scale(const", "renamed(const")
    assert first == sass_hash(compiled(folder, entries=("renamed",)).cubin)


@needs_nvrtc
def test_the_hash_of_the_instructions_changes_with_the_code(folder):
    first = sass_hash(compiled(folder).cubin)
    rewrite(folder / "include" / "inner.cuh", "2.0f", "3.0f")
    assert first != sass_hash(compiled(folder).cubin)


@needs_nvrtc
def test_spills_and_shared_memory_of_a_greedy_kernel_are_read(folder):
    found = compiled(folder, "spills").resources["spills"]
    assert found.spill_stores > 0
    assert found.spill_loads > 0
    assert found.stack_bytes > 0
    assert 64 == found.registers
    assert 1024 == found.shared_bytes


@needs_nvrtc
def test_a_damaged_cache_is_compiled_again(folder):
    first = compiled(folder)
    first.path.with_suffix(".json").write_text("{")
    again = compiled(folder)
    assert not again.cached
    assert first.resources == again.resources


@needs_nvrtc
def test_a_file_beside_an_included_one_is_noticed_too(folder):
    other = folder / "other"
    other.mkdir()
    (other / "near.cuh").write_text("constexpr float NEAR = 2.0f;\n")
    (other / "far.cuh").write_text('#include "near.cuh"\n')
    scale = folder / "plain" / "scale.cu"
    scale.write_text('#include "../other/far.cuh"\n' + scale.read_text())
    compiled(folder)
    (other / "near.cuh").write_text("constexpr float NEAR = 3.0f;\n")
    assert not compiled(folder).cached


def test_the_folders_of_headers_are_there():
    assert all(Path(folder).is_dir() for folder in include_folders())
