"""Triton: cubins with launch cards for several architectures, without a GPU; a compiler's complaint with its line."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation.cubin import check_card, elf_entries
from prism_bench.compilation.languages import build, build_request, language
from prism_bench.compilation.languages.building import ask
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.spec.case import Device
from prism_bench.spec.launch import CardParameter
from prism_bench.workflows.compile_table import since_catalogue

CATALOGUE = Path(__file__).parent / "catalogue"


@pytest.fixture(autouse=True)
def triton(monkeypatch, tmp_path):
    """Skips, saying what to install, where there is no Triton; nothing is taken from the user's cache."""
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def _request(folder=CATALOGUE, architecture=90, n=4096):
    case = discover(folder).anywhere(f"scaled:triton[n={n}]")
    request = build_request(case, Device(compute_capability=architecture))
    assert request is not None
    return request


def _only(built):
    (kernel,) = built.kernels.values()
    return kernel


def test_a_cubin_has_a_card_that_agrees_with_it_and_is_kept():
    built = build(_request())
    kernel = _only(built)
    assert kernel.card is not None
    assert ["pointer", "pointer", "int32", "float32", "hidden", "hidden"] == [
        one.kind for one in kernel.card.parameters
    ]
    assert ["x", "y", "n", "factor", "", ""] == [one.value for one in kernel.card.parameters]
    assert ((64, 1, 1), "90") == (kernel.card.block, kernel.card.architecture)
    assert elf_entries(kernel.path.read_bytes())[kernel.symbol].parameters == (
        (0, 8), (8, 8), (16, 4), (20, 4), (24, 8), (32, 8),
    )  # fmt: skip
    assert 0 < kernel.resources.registers < 256
    assert 0 == kernel.resources.spill_stores
    assert built.compiler.startswith("Triton 3.")
    again = build(_request())
    assert (True, built.sass) == (_only(again).cached, again.sass)


@pytest.mark.parametrize("architecture", [80, 90, 100, 120])
def test_each_architecture_has_its_own_code(architecture):
    assert elf_entries(_only(build(_request(architecture=architecture))).path.read_bytes())


def test_a_value_of_one_is_a_constant_and_no_parameter():
    card = _only(build(_request(n=1))).card
    assert card is not None
    assert ["x", "y", "factor"] == [one.value for one in card.parameters if one.value]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"parameters": (CardParameter("pointer", "x"),)}, "8 bytes at 0; those of the cubin have 8 bytes at 0, 8 by"),
        ({"block": (128, 1, 1)}, "its block has 128x1x1 threads; the cubin requires 64x1x1"),
        ({"entry": "other"}, "the cubin has no entry 'other'; it has scaled"),
    ],
)
def test_a_card_that_contradicts_the_cubin_is_refused_with_both(change, text):
    kernel = _only(build(_request()))
    assert kernel.card is not None
    with pytest.raises(SpecError, match=text):
        check_card(replace(kernel.card, **change), kernel.path.read_bytes())


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("factor * tl.load", "factor * tl.nothing", r"scaled.triton.py:12: (?s:.*)no attribute 'nothing'"),
        ("import triton\n", "import triton\nimport triton.not_there\n", r"scaled.triton.py:4: ModuleNotFoundError"),
        ('"BLOCK": block, ', "", "the launch gives no constant BLOCK"),
        ("def scaled(x, y, n, ", "def scaled(x, n, ", "takes the arguments x, n, factor; the launch passes x, y, n, "),
    ],
)
def test_a_kernel_that_does_not_compile_is_refused_with_file_and_line(tmp_path, old, new, text):
    folder = Path(shutil.copytree(CATALOGUE, tmp_path / "catalogue"))
    file = folder / "small/scaled.triton.py"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises((CompilationFailed, SpecError), match=text):
        build(_request(folder))


def test_a_compiler_that_takes_too_long_is_ended_and_another_takes_its_place(monkeypatch):
    monkeypatch.setattr("prism_bench.compilation.languages.building.ask", partial(ask, limit=0.01))
    with pytest.raises(CompilationFailed, match=r"Triton took longer than 0 s"):
        build(_request())
    monkeypatch.undo()
    assert build(_request()).kernels


def test_another_kernel_of_the_same_file_is_no_change_and_its_own_one_is(tmp_path):
    old, new = (Path(shutil.copytree(CATALOGUE, tmp_path / name)) for name in ("old", "new"))
    file = new / "small/scaled.triton.py"
    file.write_text("# a remark\n" + file.read_text())
    same = since_catalogue(discover(old), discover(new), (), ("80", "90"))
    assert ([], [], []) == (same.changes, same.complaints, same.uncompared)
    file.write_text(file.read_text().replace("factor * tl.load", "factor + tl.load"))
    changed = since_catalogue(discover(old), discover(new), (), ("80", "90"))
    assert ({("scaled:triton", "80"), ("scaled:triton", "90")}, []) == (
        {(one.kernel, one.architecture) for one in changed.changes}, changed.complaints,
    )  # fmt: skip
    entries = [entry for one in changed.changes for entry in one.entries]
    assert entries
    assert all(entry.before and entry.after and entry.before.resources.registers > 0 for entry in entries)
