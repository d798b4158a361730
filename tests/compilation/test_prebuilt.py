"""Machine code in cubins, fat binaries and shared libraries is found, for the device's architecture."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from prism_bench.compilation import compile_source, nvrtc_version, sass_hash
from prism_bench.compilation.cubin import symbol_of
from prism_bench.compilation.prebuilt import cubin_architecture
from prism_bench.compilation.program import is_prebuilt
from prism_bench.errors import BackendUnavailable, CompilationFailed

CODE = """
template <typename T, int N> __global__ void scale(T* y, T a) { y[blockIdx.x * N + threadIdx.x] *= a; }
extern "C" __global__ void plain(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = y[0];
    __syncthreads();
    y[1] = s[63];
}
"""
ENTRIES = ("scale<float, 128>", "scale<double, 64>", "plain")


def installed():
    try:
        return bool(nvrtc_version())
    except BackendUnavailable:
        return False


pytestmark = pytest.mark.skipif(not installed(), reason="NVRTC is not installed")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The same kernels for two architectures, compiled here, with what the compiler reported of them."""
    folder = tmp_path_factory.mktemp("prebuilt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRISM_BENCH_CACHE", str(folder / "cache"))
        (folder / "k.cu").write_text(CODE)
        yield folder, {arch: compile_source(folder / "k.cu", ENTRIES, arch) for arch in ("80", "90")}


def part(code, architecture, flags=0x11):
    """One part of a fat binary, as nvcc's own has it."""
    head = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(code), 0, 0, 8, 1, architecture, 0, 0, flags, 0, 0)
    return head + code


def container(*parts):
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture(scope="module")
def fatbin(built):
    folder, compiled = built
    path = folder / "k.fatbin"
    path.write_bytes(container(*(part(compiled[arch].cubin, int(arch)) for arch in ("80", "90"))))
    return path


@pytest.fixture(scope="module")
def library(built, fatbin):
    """A shared library of the host with a fat binary in it, as a PyTorch extension is."""
    folder, _ = built
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (folder / "e.cpp").write_text(
        f'asm(".section .nv_fatbin,\\"a\\"\\n.balign 8\\n.incbin \\"{fatbin}\\"\\n");\nint f() {{ return 1; }}\n'
    )
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(folder / "ext.so"), str(folder / "e.cpp")], check=True)
    return folder / "ext.so"


@pytest.mark.parametrize("kind", ["cubin", "fatbin", "library"])
def test_code_and_resources_are_those_of_the_compiler(built, kind, request):
    folder, compiled = built
    if kind == "cubin":
        shutil.copy(compiled["90"].path, folder / "k.cubin")
    path = folder / "k.cubin" if kind == "cubin" else request.getfixturevalue(kind)
    found = compile_source(path, ENTRIES, "90")
    assert compiled["90"].lowered == found.lowered
    assert sass_hash(compiled["90"].cubin) == sass_hash(found.cubin)
    for entry, symbol in found.lowered.items():
        told, read = compiled["90"].resources[symbol], found.resources[symbol]
        assert (told.registers, told.shared_bytes, told.stack_bytes) == (
            read.registers, read.shared_bytes, read.stack_bytes,
        ), entry  # fmt: skip


def test_an_older_architecture_of_the_same_generation_serves_a_newer_device(fatbin):
    assert 80 == cubin_architecture(compile_source(fatbin, ("plain",), "86").cubin)


@pytest.mark.parametrize(
    ("architecture", "entry", "complaint"),
    [
        ("120", "plain", "it has code for sm_80, sm_90, none for sm_120: add -gencode arch=compute_120,code=sm_120"),
        ("90", "gone", "no kernel 'gone'; it has void scale<"),
        ("90", "scale", "'scale' can be void scale<"),
    ],
)
def test_what_is_missing_is_one_sentence(fatbin, architecture, entry, complaint):
    with pytest.raises(CompilationFailed) as caught:
        compile_source(fatbin, (entry,), architecture)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cubin_for_another_architecture_is_refused(built):
    folder, compiled = built
    shutil.copy(compiled["80"].path, folder / "old.cubin")
    with pytest.raises(CompilationFailed, match=r"this cubin is for sm_80, and the device has sm_90"):
        compile_source(folder / "old.cubin", ("plain",), "90")


def test_compressed_code_without_a_program_to_unpack_it_names_the_cure(built, monkeypatch):
    folder, compiled = built
    path = folder / "packed.fatbin"
    path.write_bytes(container(part(b"\x28\xb5\x2f\xfd" + bytes(60), 90, flags=0x8011)))
    monkeypatch.setattr("prism_bench.compilation.prebuilt.tool", lambda name: None)
    with pytest.raises(BackendUnavailable, match="pip install nvidia-cuda-cuobjdump, or build with nvcc"):
        compile_source(path, ("plain",), "90")


@pytest.mark.parametrize(
    "content", [b"", b"no code at all", b"\x7fELF" + bytes(80), struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 999)]
)
def test_files_that_are_no_machine_code_are_refused(tmp_path, content):
    path = tmp_path / "odd.fatbin"
    path.write_bytes(content)
    with pytest.raises(CompilationFailed, match="odd.fatbin: "):
        compile_source(path, ("plain",), "90")


SYMBOLS = ("_Z5scaleIfLi8EEvPT_", "_ZN4fast4copyEPfi", "plain")


@pytest.mark.parametrize(
    ("entry", "symbol"),
    [("scale<float,8>", 0), ("scale", 0), ("scale<float, 8u>", 0), ("fast::copy", 1), ("::fast::copy", 1), ("plain", 2),
     ("_ZN4fast4copyEPfi", 1)],
)  # fmt: skip
def test_an_entry_is_found_by_name_instance_or_symbol(entry, symbol):
    assert SYMBOLS[symbol] == symbol_of(entry, SYMBOLS, "lib.so")


def test_which_files_are_prebuilt():
    assert [True, True, True, False] == [
        is_prebuilt(Path(name)) for name in ("a.so", "a.cubin", "a.cpython-311.so", "a.cu")
    ]
