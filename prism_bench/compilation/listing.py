"""Listings of machine code by NVIDIA's tools, kinds of instructions, and differences between two builds."""

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Literal, get_args

from prism_bench.compilation.compilers import toolchain_folder
from prism_bench.compilation.cubin import Resources, data_hash, sass_hash
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install

# Kinds of machine instructions, by the opcode before the first dot.
#
# The opcodes are those of the tables of "CUDA Binary Utilities", section 4, "Instruction Set Reference" (Turing, Ampere
# and Ada, Hopper, Blackwell; https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference). Kinds
# follow its categories, with memory split by its space and floating-point instructions by their precision. A generic
# load or store is global memory; asynchronous copies are in one kind with the barriers that wait for them; an opcode
# that the tables lack is `other`, unless a prefix below names its family.

Kind = Literal[
    "global memory", "shared memory", "local memory", "constant memory", "fp32", "fp64", "half", "tensor", "integer",
    "conversion", "control", "barrier and async", "other",
]  # fmt: skip
_KINDS: tuple[Kind, ...] = get_args(Kind)

_OPCODES: dict[Kind, str] = {
    "global memory": "LD LDG LDGMC ST STG RED REDG ATOM ATOMG CCTL CCTLT QSPC TEX TLD TLD4 TMML TXD TXQ SUATOM SULD "
    "SURED SUST SUQUERY",
    "shared memory": "LDS LDSM STS STSM STAS ATOMS REDAS LDT LDTM STT STTM",
    "local memory": "LDL STL CCTLL",
    "constant memory": "LDC ULDC LDCU",
    "fp32": "FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FMNMX FMNMX3 FMUL FMUL2 FMUL32I FSEL FSET FSETP FSWZADD MUFU "
    "UFADD UFFMA UFMNMX UFMUL UFSEL UFSET UFSETP",
    "fp64": "DADD DFMA DMUL DSETP DMNMX DSET",
    "half": "HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 VHMNMX",
    "tensor": "HMMA DMMA IMMA BMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA WARPGROUP WARPGROUPSET MOVM",
    "integer": "BMSK BREV FLO IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP "
    "LOP3 LOP32I POPC SHF SHL SHR VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 SGXT REDUX CREDUX UBMSK "
    "UBREV UFLO UIABS UIADD3 UIMAD UIMNMX UISETP ULEA ULOP ULOP3 ULOP32I UPOPC USGXT USHF USHL USHR UVIADD "
    "UVIMNMX",
    "conversion": "F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP",
    "control": "BMOV BRA BREAK BRX BRXU BSSY BSYNC CALL ELECT EXIT JMP JMX JMXU KILL NANOSLEEP RET RPCMOV YIELD BPT",
    "barrier and async": "BAR WARPSYNC MEMBAR FENCE ERRBAR CGAERRBAR DEPBAR LDGDEPBAR LDGSTS ARRIVES SYNCS UBLKCP "
    "UBLKPF UBLKRED UCGABAR_ARV UCGABAR_WAIT ENDCOLLECTIVE ACQBULK PREEXIT ACQSHMINIT B2R R2B",
}
_KIND_OF: dict[str, Kind] = {opcode: kind for kind, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_PREFIXES: tuple[tuple[str, Kind], ...] = (("UTMA", "barrier and async"), ("UTC", "tensor"))
MEMORY_BARRIER = "SYNCS"  # arrives at, or polls, a barrier in shared memory, which also signals the end of bulk copies
_PADDING = "NOP"  # after the last instruction, up to the alignment of a function


def opcode_of(instruction: str) -> str:
    """Return the opcode of an instruction without its predicate: `LDG.E` of `@!P0 LDG.E R3, [R4]`."""
    parts = instruction.split()
    return next((part for part in parts if not part.startswith("@")), "").rstrip(";")


def kind_of(instruction: str) -> Kind:
    """Return the kind of an instruction."""
    opcode = opcode_of(instruction).partition(".")[0]
    for prefix, kind in _PREFIXES:
        if opcode.startswith(prefix):
            return kind
    return _KIND_OF.get(opcode, "other")


# Listings: the functions of a cubin in blocks, read from the output of nvdisasm or cuobjdump.

_FUNCTION = re.compile(r"^\s*(?:\.text\.(?P<section>\S+):|Function\s*:\s*(?P<name>\S+))\s*$")
_LABEL = re.compile(r"^\s*(\.L_\S+?|\.L\S*?):\s*$")
_INSTRUCTION = re.compile(r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<text>[^;/]+?)\s*;")
_TARGET = re.compile(r"`\(\.L\w*\)|(?<=BRA )0x[0-9a-f]+|(?<=BSSY )(B\d+, )0x[0-9a-f]+")
_USUAL_BYTES = 16  # of an instruction, since Volta
_LEAVES = ("BRA", "EXIT", "RET", "BRX", "JMP", "JMX")  # a block ends after them


@dataclass(frozen=True)
class CodeBlock:
    """Instructions that run one after another, without their addresses."""

    instructions: tuple[str, ...]

    @cached_property
    def comparable(self) -> tuple[str, ...]:
        """Return the instructions with `label` for targets of branches, which change with all code before them."""
        return tuple(_TARGET.sub("label", instruction) for instruction in self.instructions)


@dataclass(frozen=True)
class FunctionListing:
    """A function: its mangled `name`, its blocks in order, and the bytes of its instructions without padding."""

    name: str
    blocks: tuple[CodeBlock, ...]
    code_bytes: int

    @cached_property
    def instructions(self) -> tuple[str, ...]:
        """Return all instructions in order."""
        return tuple(instruction for block in self.blocks for instruction in block.instructions)

    @cached_property
    def kinds(self) -> Mapping[Kind, int]:
        """Return the number of instructions of each kind that occurs, in the order of `Kind`."""
        counted = Counter(map(kind_of, self.instructions))
        return {kind: counted[kind] for kind in _KINDS if counted[kind]}


def read_listing(text: str) -> dict[str, FunctionListing]:
    """Return the functions in the text of `nvdisasm -c` or `cuobjdump -sass` by mangled name."""
    functions: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            lines = functions.setdefault(match["section"] or match["name"], [])
        elif lines is not None:
            lines.append(line)
    listings: dict[str, FunctionListing] = {}
    for name, lines in functions.items():
        blocks = list(_blocks(lines))
        offsets = [offset for block in blocks for offset, _ in block]
        step = min((b - a for a, b in zip(offsets, offsets[1:], strict=False)), default=_USUAL_BYTES)
        code_blocks = tuple(CodeBlock(tuple(text for _, text in block)) for block in blocks)
        listings[name] = FunctionListing(name, code_blocks, len(offsets) * step)
    return listings


def _blocks(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield the instructions of each block with their offsets: a label begins a block, a branch ends it."""
    block: list[tuple[int, str]] = []
    for line in lines:
        match = _INSTRUCTION.match(line)
        if match and opcode_of(match["text"]) != _PADDING:
            block.append((int(match["offset"], 16), match["text"]))
        ends = _LABEL.match(line) or (match and opcode_of(match["text"]).partition(".")[0] in _LEAVES)
        if ends and block:
            yield block
            block = []
    if block:
        yield block


# Differences of machine code: instructions by kind, registers, spills, shared memory, size, and the first other block.
#
# Counts are of instructions in the code, not of instructions that run.

SHOWN = 6  # lines of a block on each side
CONTEXT = 1  # lines before the first line that differs


@dataclass(frozen=True)
class CodeFacts:
    """An entry of compiled code: its resources, and its listing if there is a disassembler."""

    resources: Resources
    listing: FunctionListing | None = None


@dataclass(frozen=True)
class EntryFacts:
    """Numbers of an entry: its resources, and the bytes and the number of its instructions; None if not listed."""

    resources: Resources
    code_bytes: int | None = None
    instructions: int | None = None

    @property
    def spill_bytes(self) -> int:
        """Return the spilled bytes per thread, stores and loads."""
        return self.resources.spill_stores + self.resources.spill_loads


@dataclass(frozen=True)
class BlockDifference:
    """The first block that differs: its `number` from 0, and a few lines of it `before` and `after`."""

    number: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class EntryDifference:
    """An entry on both sides; None on a side that does not have it.

    `kinds` has the counts before and after of each kind of instruction that occurs; it is empty, and `first` None, if a
    side has no listing. `first` is also None if the blocks are the same.
    """

    entry: str
    before: EntryFacts | None
    after: EntryFacts | None
    kinds: Mapping[Kind, tuple[int, int]]
    first: BlockDifference | None

    @property
    def is_listed(self) -> bool:
        """Return whether every side that has the entry has its listing."""
        return all(side.code_bytes is not None for side in (self.before, self.after) if side)

    @property
    def spills_grew(self) -> bool:
        """Return whether the entry spills more bytes than before; a new entry, whether it spills."""
        was, now = (side.spill_bytes if side else 0 for side in (self.before, self.after))
        return now > was


def differences(before: Mapping[str, CodeFacts], after: Mapping[str, CodeFacts]) -> tuple[EntryDifference, ...]:
    """Return the entries whose code or resources differ or that only one side has, those of `after` first."""
    names = [*after, *(name for name in before if name not in after)]
    entries = (entry_difference(name, before.get(name), after.get(name)) for name in names)
    return tuple(
        entry
        for entry in entries
        if entry.before is None
        or entry.after is None
        or not entry.is_listed
        or entry.before.resources != entry.after.resources
        or entry.first is not None
    )


def entry_difference(entry: str, before: CodeFacts | None, after: CodeFacts | None) -> EntryDifference:
    """Return the comparison of one entry, whether it differs or not."""
    was, now = (side.listing if side else None for side in (before, after))
    facts = _numbers(before), _numbers(after)
    if (before and not was) or (after and not now):
        return EntryDifference(entry, *facts, {}, None)
    counts: list[Mapping[Kind, int]] = [listing.kinds if listing else {} for listing in (was, now)]
    kinds: dict[Kind, tuple[int, int]] = {}
    for kind in _KINDS:
        if any(kind in side for side in counts):
            kinds[kind] = counts[0].get(kind, 0), counts[1].get(kind, 0)
    first = first_difference(was.blocks, now.blocks) if was and now else None
    return EntryDifference(entry, *facts, kinds, first)


def _numbers(side: CodeFacts | None) -> EntryFacts | None:
    if side is None or side.listing is None:
        return EntryFacts(side.resources) if side else None
    return EntryFacts(side.resources, side.listing.code_bytes, len(side.listing.instructions))


def first_difference(before: Sequence[CodeBlock], after: Sequence[CodeBlock]) -> BlockDifference | None:
    """Return the first block that differs between two functions; None if all are the same."""
    for number, (was, now) in enumerate(zip_longest(before, after, fillvalue=CodeBlock(()))):
        if was.comparable != now.comparable:
            pairs = zip_longest(was.comparable, now.comparable)
            same = next(index for index, (old, new) in enumerate(pairs) if old != new)
            shown = slice(max(0, same - CONTEXT), max(0, same - CONTEXT) + SHOWN)
            return BlockDifference(number, was.instructions[shown], now.instructions[shown])
    return None


# NVIDIA's tools for machine code, in wheels or in a toolkit: the resources of a cubin's entry, without a device.

_TOOL_SECONDS = 60
_RESERVED_SHARED = 1024  # bytes of a block that the system reserves, from compute capability 9.0 on
_WHEELS = {"triton": "backends/nvidia/bin", "nvidia": "*/bin"}
_USAGE = re.compile(r"Function (\S+):\s*\n\s*(REG:.*)")
_NUMBER = re.compile(r"(\w+)(?:\[\d+\])?:(\d+)")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)|^//-+ \.text\.(\S+)", re.MULTILINE)
_LOCAL = re.compile(r"\b(STL|LDL)((?:\.[A-Z0-9]+)*)\b")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "16": 2, "U8": 1, "S8": 1, "8": 1}


@cache
def tool(name: str) -> str | None:
    """Return the program `cuobjdump` or `nvdisasm`: of a toolchain, of a wheel, in PATH or of a toolkit, or None."""
    if chosen := toolchain_folder():
        for path in (*chosen.glob(f"bin/{name}"), *chosen.glob(f"nvidia/*/bin/{name}")):
            return str(path)
    for package, folder in _WHEELS.items():
        spec = find_spec(package)
        roots = (spec.submodule_search_locations or ()) if spec else ()
        for path in (path for root in roots for path in sorted(Path(root).glob(f"{folder}/{name}"))):
            if os.access(path, os.X_OK):
                return str(path)
    toolkits = [os.environ[variable] for variable in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(variable)]
    folders = os.pathsep.join(f"{root}/bin" for root in [*toolkits, "/usr/local/cuda"])
    return shutil.which(name) or shutil.which(name, path=folders)


def measured_resources(cubin: bytes, entry: str, dynamic_shared: int = 0) -> Resources:
    """Return an entry's resources by `cuobjdump`, and its bytes of local loads and stores by `nvdisasm`.

    Numbers that no installed tool can find are zero. `dynamic_shared` is added to the entry's static shared memory.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = dict(_USAGE.findall(_output("cuobjdump", "-res-usage", file.name))).get(entry, "")
        numbers = {name: int(number) for name, number in _NUMBER.findall(usage)}
        stack = numbers.get("STACK", 0)
        stores, loads = _local_bytes(_output("nvdisasm", "-c", file.name), entry) if stack else (0, 0)
    reserved = _RESERVED_SHARED if b".nv.shared.reserved.0" in cubin else 0
    shared = max(0, numbers.get("SHARED", 0) - reserved) + dynamic_shared
    return Resources(numbers.get("REG", 0), stack, stores, loads, shared, numbers.get("BAR", 0))


def _output(name: str, *arguments: str) -> str:
    program = tool(name)
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _local_bytes(listing: str, entry: str) -> tuple[int, int]:
    """Return the bytes that the instructions of an entry store to local memory and load from it, each counted once."""
    parts = _SECTION.split(listing)
    texts = [
        text
        for first, second, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        if (first or second).rstrip(",-") == entry
    ]
    sizes = {"STL": 0, "LDL": 0}
    for opcode, suffixes in _LOCAL.findall("\n".join(texts)):
        sizes[opcode] += next((_WIDTHS[suffix] for suffix in suffixes.split(".") if suffix in _WIDTHS), 4)
    return sizes["STL"], sizes["LDL"]


# Listings and differences of compiled files.

PROGRAM = "nvdisasm"


def missing() -> str:
    """Return an error text: nvdisasm is missing, so no instructions are listed, and how to install it."""
    return (
        f"no nvdisasm is installed: no listing of instructions; {pip_install('compile')}, or set CUDA_HOME to a toolkit"
    )


def listing_of(cubin: Path) -> dict[str, FunctionListing]:
    """Return the functions of a cubin by mangled name.

    Raise BackendUnavailable if no nvdisasm is installed, or if it cannot read the file: an older nvdisasm does not know
    newer architectures.
    """
    program = tool(PROGRAM)
    if program is None:
        raise BackendUnavailable(missing())
    try:
        done = subprocess.run([program, "-c", str(cubin)], capture_output=True, text=True, timeout=_TOOL_SECONDS)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise BackendUnavailable(f"{program} does not list {cubin.name}: {error}") from error
    functions = read_listing(done.stdout) if done.returncode == 0 else {}
    if not functions:
        reason = done.stderr.strip() or "it printed no function"
        raise BackendUnavailable(f"{program} does not list {cubin.name}: {reason}")
    return functions


@dataclass(frozen=True)
class CompiledEntry:
    """An entry of machine code: its file, its symbol, and its resources."""

    path: Path
    symbol: str
    resources: Resources


Entries = Mapping[str, CompiledEntry]
# The entries that differ, and a remark: why instructions are not listed, or how code with equal instructions differs.
CodeDifference = tuple[tuple[EntryDifference, ...], str | None]


def code_differences(before: Entries, after: Entries) -> CodeDifference:
    """Return the entries that differ between two builds, and a remark.

    The remark is why instructions are not listed, or how code with equal instructions differs; None without either.
    """
    was, reason = _facts(before)
    now, other = _facts(after)
    different = differences(was, now)
    return different, (reason or other) if different else _unlisted(before, after)


def _facts(entries: Entries) -> tuple[dict[str, CodeFacts], str | None]:
    """Return the facts of each entry, and why instructions are not listed, or None."""
    reason, listings = None, dict[Path, dict[str, FunctionListing]]()
    for path in dict.fromkeys(entry.path for entry in entries.values()):
        try:
            listings[path] = listing_of(path)
        except BackendUnavailable as error:
            reason = str(error)
    facts = {
        name: CodeFacts(entry.resources, listings.get(entry.path, {}).get(entry.symbol))
        for name, entry in entries.items()
    }
    return facts, reason


def _unlisted(before: Entries, after: Entries) -> str | None:
    """Return how two builds of the same instructions differ, or None."""
    sides = [
        [path.read_bytes() for path in dict.fromkeys(entry.path for entry in side.values())] for side in (before, after)
    ]
    was, now = ([sass_hash(cubin) for cubin in side] for side in sides)
    if was != now:
        return "the instructions are the same; their scheduling differs"
    was, now = ([data_hash(cubin) for cubin in side] for side in sides)
    return "the instructions are the same; their constants differ" if was != now else None
