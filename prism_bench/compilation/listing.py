"""Listing of machine code: the functions of a cubin in blocks, read from what nvdisasm or cuobjdump print."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from prism_bench.compilation.instruction_kinds import KINDS, PADDING, Kind, kind_of, opcode_of

_FUNCTION = re.compile(r"^\s*(?:\.text\.(?P<section>\S+):|Function\s*:\s*(?P<name>\S+))\s*$")
_LABEL = re.compile(r"^\s*(\.L_\S+?|\.L\S*?):\s*$")
_INSTRUCTION = re.compile(r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<text>[^;/]+?)\s*;")
_TARGET = re.compile(r"`\(\.L\w*\)|(?<=BRA )0x[0-9a-f]+|(?<=BSSY )(B\d+, )0x[0-9a-f]+")
_USUAL_BYTES = 16  # of an instruction, since Volta
_LEAVES = ("BRA", "EXIT", "RET", "BRX", "JMP", "JMX")  # a block ends behind them


@dataclass(frozen=True)
class CodeBlock:
    """Instructions that run one after another, without their addresses and with `label` for every target."""

    instructions: tuple[str, ...]

    @cached_property
    def comparable(self) -> tuple[str, ...]:
        """The instructions without the targets of branches, which move with all code before them."""
        return tuple(_TARGET.sub("label", one) for one in self.instructions)


@dataclass(frozen=True)
class FunctionListing:
    """One function: its mangled `name`, its blocks in order, and the bytes of its instructions without padding."""

    name: str
    blocks: tuple[CodeBlock, ...]
    code_bytes: int

    @cached_property
    def instructions(self) -> tuple[str, ...]:
        """All instructions in order."""
        return tuple(one for block in self.blocks for one in block.instructions)

    @cached_property
    def kinds(self) -> Mapping[Kind, int]:
        """The number of instructions of each kind that occurs, in the order of `KINDS`."""
        counted = Counter(map(kind_of, self.instructions))
        return {kind: counted[kind] for kind in KINDS if counted[kind]}


def read_listing(text: str) -> dict[str, FunctionListing]:
    """Return by mangled name the functions in the text of `nvdisasm -c` or `cuobjdump -sass`; empty if it has none."""
    functions: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in text.splitlines():
        if found := _FUNCTION.match(line):
            lines = functions.setdefault(found["section"] or found["name"], [])
        elif lines is not None:
            lines.append(line)
    return {name: _function(name, lines) for name, lines in functions.items()}


def _function(name: str, lines: Iterable[str]) -> FunctionListing:
    offsets: list[int] = []
    blocks: list[CodeBlock] = []
    for block in _blocks(lines):
        offsets += [offset for offset, _ in block]
        blocks.append(CodeBlock(tuple(text for _, text in block)))
    step = min((b - a for a, b in zip(offsets, offsets[1:], strict=False)), default=_USUAL_BYTES)
    return FunctionListing(name, tuple(blocks), len(offsets) * step)


def _blocks(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield the instructions of each block with their offsets: a label begins one, a branch ends it."""
    block: list[tuple[int, str]] = []
    for line in lines:
        found = _INSTRUCTION.match(line)
        if found and opcode_of(found["text"]) != PADDING:
            block.append((int(found["offset"], 16), found["text"]))
        ends = _LABEL.match(line) or (found and opcode_of(found["text"]).partition(".")[0] in _LEAVES)
        if ends and block:
            yield block
            block = []
    if block:
        yield block
