"""Fat binaries: the machine code for each architecture in a `.fatbin`, an object file or a shared library."""

import io
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_bench.compilation.tools import tool
from prism_bench.errors import BackendUnavailable, CompilationFailed

_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")  # magic, version, header's bytes, bytes that follow
_PART = struct.Struct("<HHIQIIHHI")  # kind, version, header's bytes, bytes, compressed bytes, options, minor, major, sm
_FLAGS_AT = 40
_PTX, _ELF = 1, 2
_COMPRESSED = 0xA000  # LZ4 or zstd
_CUDA = 190  # e_machine
_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_SECONDS = 60


@dataclass(frozen=True)
class FatPart:
    """Code for one architecture: `number` is that of its container among those of the file."""

    number: int
    architecture: int
    is_ptx: bool
    compressed: bool
    content: bytes


def cubin_architecture(cubin: bytes) -> int | None:
    """Return the architecture that a cubin is for, 90; None where the file is no cubin."""
    if cubin[:4] != b"\x7fELF" or len(cubin) < 64 or struct.unpack_from("<H", cubin, 18)[0] != _CUDA:
        return None
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return (flags >> 8) & 0xFF if cubin[8] >= 8 else flags & 0xFF


def containers_of(source: Path) -> list[bytes]:
    """Return the fat binaries in a file; a CompilationFailed where it holds none."""
    data = source.read_bytes()
    if data[:4] == b"\x7fELF":
        sections = list(_sections(source, data))
        if not sections:
            raise CompilationFailed(f"{source}: it has no section .nv_fatbin: no GPU code was linked into it")
    else:
        sections = [data]
    found = [one for section in sections for one in _containers(section)]
    if not found:
        raise CompilationFailed(f"{source}: it holds no fat binary of CUDA")
    return found


def _sections(source: Path, data: bytes) -> Iterator[bytes]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(data))
        yield from (section.data() for section in file.iter_sections() if section.name in _SECTIONS)
    except ELFError as error:
        raise CompilationFailed(f"{source}: damaged as an ELF file ({error})") from error


def _containers(data: bytes) -> Iterator[bytes]:
    at = 0
    magic = struct.pack("<I", _MAGIC)
    while (at := data.find(magic, at)) >= 0 and at + _CONTAINER.size <= len(data):
        _, _, header, size = _CONTAINER.unpack_from(data, at)
        yield data[at : at + header + size]
        at += header + size


def parts_of(container: bytes, number: int) -> Iterator[FatPart]:
    """Yield the code in one fat binary."""
    at = _CONTAINER.unpack_from(container)[2]
    while at + _FLAGS_AT + 8 <= len(container):
        kind, _, header, size, *_, sm = _PART.unpack_from(container, at)
        (flags,) = struct.unpack_from("<Q", container, at + _FLAGS_AT)
        if kind in (_PTX, _ELF):
            content = container[at + header : at + header + size]
            yield FatPart(number, sm, kind == _PTX, bool(flags & _COMPRESSED), content)
        at += header + size


def unpacked(part: FatPart, container: bytes, source: Path) -> bytes:
    """Return the machine code of a part; NVIDIA's cuobjdump unpacks it where it is compressed.

    Raises BackendUnavailable where there is no cuobjdump.
    """
    if not part.compressed:
        return part.content
    program = tool("cuobjdump")
    if program is None:
        raise BackendUnavailable(
            f"{source}: its code for sm_{part.architecture} is compressed, and no cuobjdump is installed to unpack it: "
            "pip install nvidia-cuda-cuobjdump, or build with nvcc --compress-mode=none"
        )
    with tempfile.TemporaryDirectory(prefix="prism-fatbin-") as folder:
        file = Path(folder) / "packed.fatbin"
        file.write_bytes(container)
        subprocess.run([program, "-xelf", f"sm_{part.architecture}", str(file)], cwd=folder, capture_output=True,
                       timeout=_SECONDS, check=False)  # fmt: skip
        found = [path.read_bytes() for path in sorted(Path(folder).glob("*.cubin"))]
    for code in found:
        if cubin_architecture(code) == part.architecture:
            return code
    raise CompilationFailed(f"{source}: {program} did not unpack its code for sm_{part.architecture}")
