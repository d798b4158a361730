"""Sections of cubins are those that the general reader of ELF files finds; what is no such file, it refuses."""

import io
from pathlib import Path

import pytest
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from prism_bench.compilation import cubin as module
from prism_bench.compilation.cubin import sections

MUSEUM = Path(__file__).parent.parent / "extensions" / "judge" / "museum"
CUBINS = [path for path in sorted(MUSEUM.glob("*.cubin")) if path.read_bytes().startswith(b"\x7fELF")]


def general(cubin):
    return [(one.name, one.data_size, one.data()) for one in ELFFile(io.BytesIO(cubin)).iter_sections()]


def plain(cubin):
    return [(one.name, one.size, one.data()) for one in sections(cubin)]


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
def test_they_are_those_of_the_general_reader(path, monkeypatch):
    cubin = path.read_bytes()
    expected = general(cubin)
    monkeypatch.setattr(module, "_by_general_reader", lambda cubin: pytest.fail("the file is as usual"))
    assert plain(cubin) == expected
    assert len(expected) > 5


@pytest.mark.parametrize("place", [4, 5, 58, 62], ids=["class", "order", "header", "names"])
def test_an_unusual_file_is_left_to_the_general_reader(place):
    cubin = bytearray(CUBINS[0].read_bytes())
    cubin[place] = 0
    found = []
    for read in (general, plain):
        try:
            found.append(read(bytes(cubin)))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    assert found[1] == found[0]


@pytest.mark.parametrize("cubin", [b"", b"no machine code", b"\x7fELF\x02\x01"])
def test_what_is_no_elf_file_is_refused_as_before(cubin):
    with pytest.raises(ELFError):
        sections(cubin)


def test_a_file_that_was_cut_is_left_to_the_general_reader():
    cubin = CUBINS[0].read_bytes()
    for length in range(64, len(cubin), 997):
        with pytest.raises(Exception) as ours:
            plain(cubin[:length])
        with pytest.raises(type(ours.value)):
            general(cubin[:length])
