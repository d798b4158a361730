"""cuTile, Numba-CUDA and the CuTe DSL: cubins with launch cards, without a GPU; complaints with their place."""

import shutil
from pathlib import Path

import pytest

from prism_bench.case import Device
from prism_bench.catalogue import discover
from prism_bench.compilation.elf import elf_entries
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.languages import build, build_request, language

CATALOGUE = Path(__file__).parent / "more"
LANGUAGES = ("tile", "numba", "cute")
ARRAY = [8] * 7  # of Numba: two owners, elements, bytes of one, data, length, stride
SIZES = {"tile": [8, 4, 4, 8, 4, 4, 4, 4], "numba": [*ARRAY, *ARRAY, 4, 4], "cute": [8, 8, 4, 4]}


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
    with pytest.raises(BackendUnavailable, match=rf"pip install 'prism-bench\[{name}\]'"):
        language(name).require_installed()


def test_reading_the_catalogue_imports_no_compiler():
    found = discover(CATALOGUE)
    assert not found.problems
    assert {*LANGUAGES} <= {case.variant for case in found.cases(["scaled"], ("S0",))}


def test_a_cubin_has_a_card_that_agrees_with_it(suffix):
    (kernel,) = _built(suffix).kernels.values()
    assert SIZES[suffix] == [one.nbytes for one in kernel.card.parameters]
    assert kernel.symbol in elf_entries(kernel.path.read_bytes())


@pytest.mark.parametrize("architecture", [80, 100, 120])
def test_each_architecture_has_its_own_code(suffix, architecture):
    built = _built(suffix, architecture=architecture)
    assert built.sass not in ("", _built(suffix).sass)


def test_code_that_does_not_compile_is_told_with_its_file(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, "* factor", "* no_such_name")
    with pytest.raises(CompilationFailed, match=rf"scaled\.{suffix}\.py.*[\s\S]*no_such_name"):
        _built(suffix, folder)


@pytest.mark.parametrize("suffix", ["tile", "numba"], indirect=True)  # the CuTe DSL compares them itself
def test_a_launch_that_does_not_fit_the_function_is_refused(suffix, tmp_path):
    folder = _changed(tmp_path, suffix, "n, factor", "factor")
    with pytest.raises(SpecError, match="the launch passes x, y, n, factor"):
        _built(suffix, folder)
