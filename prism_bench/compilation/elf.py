"""A cubin's own parameter information, and whether a launch card agrees with it."""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.spec.launch import LaunchCard

_SIZED = 4  # a record of .nv.info whose value has its length before it; the others have two bytes
_REQUIRED_BLOCK, _PARAMETER = 0x10, 0x17  # EIATTR_REQNTID, EIATTR_KPARAM_INFO
_REQUIRED_CLUSTER = 0x3D  # EIATTR_CTA_PER_CLUSTER
_PARAMETER_OF_TILES = 0x45  # of code for which the driver makes tensor maps at a launch
_SIZE_SHIFT = 18  # of the word that has a parameter's size
_ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True)
class ElfEntry:
    """What the ELF file has of one entry: its parameters as (offset, bytes), in order.

    `block` and `cluster` are those that it requires.
    """

    parameters: tuple[tuple[int, int], ...]
    block: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None


def elf_entries(cubin: bytes) -> dict[str, ElfEntry]:
    """Return the entries of a cubin by symbol; a SpecError where it is no ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        sections = {section.name: section for section in file.iter_sections()}
        names = [name.removeprefix(".text.") for name in sections if name.startswith(".text.")]
        infos = {name: sections.get(f".nv.info.{name}") for name in names}
        return {name: _entry(section.data()) for name, section in infos.items() if section is not None}
    except (ELFError, struct.error, ValueError) as error:
        raise SpecError(f"the cubin is no ELF file for a GPU: {error}") from error


def check_card(card: LaunchCard, cubin: bytes) -> None:
    """Raise a SpecError, with both, where a launch card contradicts the ELF file."""
    entries = elf_entries(cubin)
    if card.entry not in entries:
        raise SpecError(f"launch card: the cubin has no entry '{card.entry}'; it has {', '.join(entries) or 'none'}")
    found = entries[card.entry]
    carded = card.extents
    if carded != found.parameters:
        raise SpecError(
            f"launch card of '{card.entry}': its parameters have {_text(carded)}; those of the cubin have "
            f"{_text(found.parameters)}"
        )
    required = (("block", card.block, "thread", found.block), ("cluster", card.cluster, "block", found.cluster))
    for what, carded_extents, noun, extents in required:
        if extents and any(carded_extents) and carded_extents != extents:
            carded_text, text = ("x".join(map(str, one)) for one in (carded_extents, extents))
            raise SpecError(
                f"launch card of '{card.entry}': its {what} has {carded_text} {noun}s; the cubin requires {text}"
            )


def _text(parameters: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{size} bytes at {offset}" for offset, size in parameters) or "no bytes"


def _entry(data: bytes) -> ElfEntry:
    parameters: dict[int, tuple[int, int]] = {}
    extents: dict[int, tuple[int, int, int]] = {}
    for attribute, value in info_records(data):
        if attribute == _PARAMETER:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            parameters[ordinal] = offset, word >> _SIZE_SHIFT
        elif attribute == _PARAMETER_OF_TILES:
            _, ordinal, offset, size, _ = struct.unpack("<IHHHH", value)
            parameters[ordinal] = offset, size
        elif attribute in (_REQUIRED_BLOCK, _REQUIRED_CLUSTER):
            x, y, z = struct.unpack("<III", value)
            extents[attribute] = x, y, z
    sizes = tuple(size for _, size in sorted(parameters.items()))
    return ElfEntry(sizes, extents.get(_REQUIRED_BLOCK), extents.get(_REQUIRED_CLUSTER))


def info_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield attribute and value of each sized record of a `.nv.info` section."""
    at = 0
    while at + 4 <= len(data):
        kind, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind == _SIZED:
            yield attribute, data[at : at + length]
            at += length
