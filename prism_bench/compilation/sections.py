"""Sections of a cubin: names and contents, read without anything else that is in the file.

Every case of a run has its code hashed in each process. A general reader of ELF files spends tens of milliseconds on
the hundreds of sections of a program, between two cases that are timed.
"""

import io
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_MAGIC = b"\x7fELF\x02\x01"  # of 64 bits, the lower byte first
_FILE = struct.Struct("<16sHHIQQQIHHHHHH")  # the header of the file
_SECTION = struct.Struct("<IIQQQQIIQQ")  # the header of one section
_NO_BITS, _COMPRESSED = 8, 0x800


class _Unusual(Exception):
    """A file that the general reader has to read, or to refuse."""


@dataclass(frozen=True)
class CubinSection:
    """One section: its `name`, its `size` in bytes, and what is in it."""

    name: str
    size: int
    content: memoryview | None  # None for zeros that the file does not hold

    def data(self) -> bytes:
        """Return the bytes of the section."""
        return bytes(self.size) if self.content is None else bytes(self.content)


def sections(cubin: bytes) -> list[CubinSection]:
    """Return the sections in the order of the file; an ELFError of pyelftools where it is no ELF file."""
    try:
        return _sections(memoryview(cubin))
    except (_Unusual, struct.error, IndexError):
        return list(_by_general_reader(cubin))


def _sections(file: memoryview) -> list[CubinSection]:
    header = _FILE.unpack_from(file)
    first, size, count, of_names = header[6], header[11], header[12], header[13]
    if bytes(file[: len(_MAGIC)]) != _MAGIC or size != _SECTION.size or not 0 < of_names < count:
        raise _Unusual
    headers = [_SECTION.unpack_from(file, first + place * size) for place in range(count)]
    names = bytes(_content(file, headers[of_names]) or b"")
    return [CubinSection(_name(names, one[0]), one[5], _content(file, one)) for one in headers]


def _content(file: memoryview, header: tuple[int, ...]) -> memoryview | None:
    kind, flags, offset, size = header[1], header[2], header[4], header[5]
    if kind == _NO_BITS:
        return None
    if flags & _COMPRESSED or offset + size > len(file):
        raise _Unusual
    return file[offset : offset + size]


def _name(names: bytes, begin: int) -> str:
    end = names.find(b"\0", begin)
    if end < 0:
        raise _Unusual
    return names[begin:end].decode("utf-8", "replace")


def _by_general_reader(cubin: bytes) -> Iterable[CubinSection]:
    from elftools.elf.elffile import ELFFile

    for section in ELFFile(io.BytesIO(cubin)).iter_sections():
        yield CubinSection(section.name, section.data_size, memoryview(section.data()))
