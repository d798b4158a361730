"""Facts of machine code: a hash that changes only when instructions do, and resources."""

import hashlib
import io
import re
from collections.abc import Collection
from dataclasses import dataclass

from prism_bench.compilation.sections import sections

_ENTRY = re.compile(r"Compiling entry function '(?P<entry>[^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_TEXT = ".text."
_DATA, _ARGUMENTS = (".nv.constant", ".nv.global.init"), ".nv.constant0"
_BARRIERS = re.compile(r"used (\d+) barriers")


@dataclass(frozen=True)
class Resources:
    """What one entry function takes, as ptxas reports it; bytes per thread for stack and spills."""

    registers: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    barriers: int = 0


def sass_hash(cubin: bytes, leaving_out: Collection[str] = ()) -> str:
    """Return a hash of the instructions alone: names, build times and paths in the file do not change it.

    The functions with the mangled names `leaving_out` are not counted.
    """
    digest = hashlib.sha256()
    for section in sorted(sections(cubin), key=lambda section: section.name):
        if section.name.startswith(_TEXT) and section.name.removeprefix(_TEXT) not in leaving_out:
            digest.update(section.data())
    return digest.hexdigest()[:16]


def toolchain(cubin: bytes) -> bytes:
    """Return the note in which ptxas keeps its version and its options; empty where the file has none."""
    from elftools.elf.elffile import ELFFile

    note = ELFFile(io.BytesIO(cubin)).get_section_by_name(".note.nv.tkinfo")
    return note.data() if note else b""


def code_bytes(cubin: bytes, symbols: Collection[str]) -> int:
    """Return the size of the instructions of these entries, in bytes."""
    wanted = {f"{_TEXT}{symbol}" for symbol in symbols}
    return sum(section.size for section in sections(cubin) if section.name in wanted)


def data_hash(cubin: bytes) -> str:
    """Return a hash of the constants and initial values that come with the code, without the space for arguments."""
    digest = hashlib.sha256()
    for section in sorted(sections(cubin), key=lambda section: section.name):
        if section.name.startswith(_DATA) and not section.name.startswith(_ARGUMENTS):
            digest.update(section.name.encode() + section.data())
    return digest.hexdigest()[:16]


def resources(log: str) -> dict[str, Resources]:
    """Resources by mangled entry name, read from the log that `--ptxas-options=-v` gives."""
    found = {}
    parts = _ENTRY.split(log)
    for entry, text in zip(parts[1::2], parts[2::2], strict=True):
        stack = _STACK.search(text)
        stack_bytes, stores, loads = (int(number) for number in stack.groups()) if stack else (0, 0, 0)
        found[entry] = Resources(_number(_USED, text), stack_bytes, stores, loads, _number(_SHARED, text),
                                 _number(_BARRIERS, text))  # fmt: skip
    return found


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match.group(1)) if match else 0
