"""Hashes of machine code of two machines: what is the same, and what differs by compiler, hash or entry."""

import io
from dataclasses import replace

import pytest
from elftools.elf.elffile import ELFFile
from lab.code_hashes import HashedEntry, cubin_folder, differences, main, read_hashes

from prism_bench.compilation.languages import build, build_request
from prism_bench.compilation.languages.language import language
from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.spec.case import Device
from prism_bench.workflows.compile_table import write_csv
from tests.built_in import CATALOGUE

ENTRY = HashedEntry("softmax:triton", "softmax<BLOCK=32>", "90", "Triton 3.6.0", "0123456789abcdef")


def test_the_same_hash_from_the_same_compiler_is_the_same():
    assert (1, []) == differences([ENTRY], [ENTRY])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sass": "fedcba9876543210"}, "0123456789abcdef there, fedcba9876543210 here"),
        ({"compiler": "Triton 3.9.0"}, "Triton 3.6.0 there, Triton 3.9.0 here"),
        ({"entry": "softmax<BLOCK=64>"}, "not there"),
        ({"architecture": "100"}, "not there"),
    ],
)
def test_what_differs_is_named(change, words):
    same, (line,) = differences([replace(ENTRY, **change)], [ENTRY])
    assert 0 == same
    assert line.startswith("softmax:triton softmax<BLOCK=")
    assert line.endswith(words)


def test_a_table_is_read_as_it_was_written(tmp_path):
    write_csv([ENTRY], tmp_path / "hashes.csv")
    assert [ENTRY] == read_hashes(tmp_path / "hashes.csv")


@pytest.mark.parametrize("text", ["kernel,entry\na,b\n", "\0"])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "hashes.csv"
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"hashes\.csv: not a table of hashes"):
        read_hashes(path)


def test_two_compilations_here_have_one_hash_and_a_changed_one_is_found(tmp_path, capsys, monkeypatch):
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    table = tmp_path / "hashes.csv"
    words = ["vector_add:triton", "--arch", "90"]
    assert 0 == main([*words, "--output", str(table)])
    assert 0 == main([*words, "--check", str(table)])
    rows = read_hashes(table)
    write_csv([replace(rows[0], sass="0" * 16), *rows[1:]], table)
    assert 1 == main([*words, "--check", str(table)])
    assert "0000000000000000 there" in capsys.readouterr().out


def test_the_cache_of_another_machine_is_compared_by_the_names_of_its_cubins(tmp_path, capsys, monkeypatch):
    """Its cubin of another source has another name, and is not there; a changed one is found by its hash."""
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    case = CATALOGUE.case("vector_add:triton[n=100000]")
    (kernel,) = build(build_request(case, Device(compute_capability=90))).kernels.values()
    for path in kernel.path.parent.glob("*.json"):
        path.unlink()  # a cubin is enough
    words = ["vector_add:triton", "--arch", "90", "--cubins", str(tmp_path)]
    assert 1 == main(words)
    output = capsys.readouterr().out
    assert output.startswith("1 of ")
    assert ": not there" in output
    code = bytearray(kernel.path.read_bytes())
    sections = ELFFile(io.BytesIO(code)).iter_sections()
    code[next(one["sh_offset"] for one in sections if one.name.startswith(".text."))] ^= 1
    kernel.path.write_bytes(code)
    assert 1 == main(words)
    assert " there, " in capsys.readouterr().out


def test_a_folder_without_cubins_is_refused(tmp_path):
    with pytest.raises(ResultsError, match="no cubins of a cache"):
        cubin_folder(tmp_path)


def test_nothing_to_compare_is_no_success(tmp_path, monkeypatch):
    for name in ("triton", "cute", "tile", "numba", "warp"):
        monkeypatch.setattr(type(language(name).library), "is_installed", lambda _: False)
    monkeypatch.setattr("lab.code_hashes.missing_compiler", lambda name: "not installed")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    write_csv([ENTRY], tmp_path / "hashes.csv")
    assert 1 == main(["vector_add:triton", "--check", str(tmp_path / "hashes.csv")])
