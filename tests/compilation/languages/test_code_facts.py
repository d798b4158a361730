"""What a record keeps of machine code: compiler, source, size, the compiler's time."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.compilation import nvrtc_version
from prism_bench.compilation.cubin import check_card
from prism_bench.compilation.languages import BuildRequest, build, code_facts
from prism_bench.compilation.languages.building import source_identity
from prism_bench.compilation.languages.language import language
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec.launch import CardParameter, Instance, LaunchCard

SOURCE = Path(__file__).parent / "catalogue" / "small" / "scaled.cu"


@pytest.fixture
def request_for(tmp_path):
    """A kernel of CUDA C++ that a test may change."""
    path = Path(shutil.copy(SOURCE, tmp_path / "scaled.cu"))
    return BuildRequest("cuda", path, (Instance("scaled"),), "90")


def test_a_record_names_compiler_source_size_and_time(request_for):
    try:
        built = build(request_for)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    facts = code_facts(built, request_for)
    assert ("cuda", f"NVRTC {nvrtc_version()}", "sm_90") == (
        facts["language"],
        facts["compiler"],
        facts["architecture"],
    )
    assert facts["source"] == source_identity(request_for)
    assert facts["code_bytes"] > 0
    assert facts["code_bytes"] % 128 == 0
    assert facts["compile_seconds"] > 0


def test_code_from_the_cache_keeps_the_time_that_filled_it(request_for, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    try:
        first, second = build(request_for), build(request_for)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert [False, True] == [kernel.cached for built in (first, second) for kernel in built.kernels.values()]
    assert first.seconds == second.seconds > 0, "a trend counts an equal time of equal code as one measurement"


def test_settings_of_a_compiler_are_those_of_its_environment_that_may_change_code():
    read = {"TRITON_PTXAS_PATH": "/opt/ptxas", "DISABLE_PTXAS_OPT": "1"}
    other = {"TRITON_CACHE_DIR": "/tmp/kept", "TRITON_HOME": "/tmp", "NUMBA_OPT": "0", "HOME": "/root"}
    assert sorted(read.items()) == language("triton").settings(read | other)
    assert [("NUMBA_OPT", "0")] == language("numba").settings(read | other)


def test_a_card_that_contradicts_the_elf_is_refused_with_both(request_for):
    try:
        (kernel,) = build(request_for).kernels.values()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    card = LaunchCard(kernel.symbol, "90", (CardParameter("pointer", "x"), CardParameter("int32", "n")))
    mine, theirs = "8 bytes at 0, 4 bytes at 8", "8 bytes at 0, 8 bytes at 8, 4 bytes at 16, 4 bytes at 20"
    with pytest.raises(SpecError, match=f"its parameters have {mine}; those of the cubin have {theirs}"):
        check_card(card, kernel.path.read_bytes())


def test_the_source_is_what_the_compiler_gets(request_for):
    first = source_identity(request_for)
    path = request_for.source
    path.write_text(path.read_text() + "\n// a remark\n")
    assert first == source_identity(request_for)
    assert first != source_identity(replace(request_for, options=("-DFAST",)))
    assert first != source_identity(replace(request_for, instances=(Instance("other"),)))
    path.write_text(path.read_text() + "\n__device__ int more;\n")
    assert first != source_identity(request_for)


def test_headers_elsewhere_make_the_source_unknown(request_for):
    assert source_identity(replace(request_for, options=("-I/opt/headers",))) is None
