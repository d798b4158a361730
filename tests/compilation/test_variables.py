"""Variables of a module: what of its memory keeps its content, by symbols, and by sections where these are stripped."""

import io
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from prism_bench.compilation import compile_source
from prism_bench.compilation.cubin import variable_symbols
from prism_bench.errors import BackendUnavailable

SOURCE = """
__device__ int kept[5];
__device__ int begins = 3;
__global__ void counts(int* out) {
    __shared__ int part[32];
    part[threadIdx.x] = kept[threadIdx.x % 5]++ + begins++;
    __syncthreads();
    out[threadIdx.x] = part[31 - threadIdx.x];
}
"""


def compiled(folder: Path, source: str) -> bytes:
    (folder / "counts.cu").write_text(source)
    try:
        return compile_source(folder / "counts.cu", ("counts",), "90", cache=False).cubin
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def cubin(tmp_path: Path) -> bytes:
    return compiled(tmp_path, SOURCE)


def test_variables_have_their_names_and_bytes(cubin: bytes) -> None:
    assert {"kept": 20, "begins": 4} == variable_symbols(cubin)


def test_what_has_no_symbol_is_named_like_its_section(cubin: bytes) -> None:
    """A cubin is the sender's: without a name memory keeps its content, too."""
    stripped = without_symbols(cubin, ("kept", "begins"))
    found = variable_symbols(stripped)
    assert {".nv.global", ".nv.global.init"} == {name for name in found if name.startswith(".nv.global")} == set(found)
    assert 24 <= sum(found.values())
    assert {".nv.global"} == set(variable_symbols(without_symbols(cubin, ("kept",)))) - {"begins"}


def without_symbols(cubin: bytes, names: tuple[str, ...]) -> bytes:
    """Return the cubin with these symbols of no type."""
    table, content = ELFFile(io.BytesIO(cubin)).get_section_by_name(".symtab"), bytearray(cubin)
    for number, symbol in enumerate(table.iter_symbols()):
        if symbol.name in names:
            place = table["sh_offset"] + number * table["sh_entsize"] + 4  # st_info
            struct.pack_into("B", content, place, content[place] & 0xF0)
    return bytes(content)


def test_shared_memory_is_no_variable(tmp_path: Path) -> None:
    kernel = SOURCE[SOURCE.index("__global__") :].replace("kept[threadIdx.x % 5]++ + begins++", "out[threadIdx.x]")
    assert {} == variable_symbols(compiled(tmp_path, kernel))
