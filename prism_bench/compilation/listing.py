"""Listing of machine code by NVIDIA's tools, kinds of instructions, and differences between two listings."""

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

from prism_bench.compilation.cubin import Resources, data_hash, sass_hash
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install

# Kinds of machine instructions, by the opcode before the first dot.
#
# The opcodes are those of the tables of "CUDA Binary Utilities", section 4, "Instruction Set Reference" (Turing, Ampere
# and Ada, Hopper, Blackwell; https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference). Kinds
# follow its categories, with memory split by its space and floating-point instructions by their precision. A generic
# load or store is global memory; asynchronous copies are next to the barriers that wait for them; an opcode that the
# tables do not have is `other`, unless a prefix below names its family.

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
MEMORY_BARRIER = "SYNCS"  # arrives at, or polls, a barrier in shared memory, which also shows the end of bulk copies
_PADDING = "NOP"  # behind the last instruction, up to the alignment of a function


def opcode_of(instruction: str) -> str:
    """Return the opcode of an instruction without its predicate: `LDG.E` of `@!P0 LDG.E R3, [R4]`."""
    words = instruction.split()
    return next((word for word in words if not word.startswith("@")), "").rstrip(";")


def kind_of(instruction: str) -> Kind:
    """Return the kind of an instruction."""
    opcode = opcode_of(instruction).partition(".")[0]
    for prefix, kind in _PREFIXES:
        if opcode.startswith(prefix):
            return kind
    return _KIND_OF.get(opcode, "other")


# Listing of machine code: the functions of a cubin in blocks, read from what nvdisasm or cuobjdump print.

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
        return {kind: counted[kind] for kind in _KINDS if counted[kind]}


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
        if found and opcode_of(found["text"]) != _PADDING:
            block.append((int(found["offset"], 16), found["text"]))
        ends = _LABEL.match(line) or (found and opcode_of(found["text"]).partition(".")[0] in _LEAVES)
        if ends and block:
            yield block
            block = []
    if block:
        yield block


# Difference of machine code: instructions by kind, registers, spills, shared memory, size, and the first other block.
#
# Counts are of instructions in the code, not of instructions that run.

SHOWN = 6  # lines of a block on each side
CONTEXT = 1  # lines before the first one that differs


@dataclass(frozen=True)
class CodeFacts:
    """One entry of compiled code: its resources, and its listing where there is a disassembler."""

    resources: Resources
    listing: FunctionListing | None = None


@dataclass(frozen=True)
class EntryFacts:
    """Numbers of one entry: its resources, and the bytes and the number of its instructions; None if not listed."""

    resources: Resources
    code_bytes: int | None = None
    instructions: int | None = None

    @property
    def spill_bytes(self) -> int:
        """Spilled bytes per thread, stores and loads."""
        return self.resources.spill_stores + self.resources.spill_loads


@dataclass(frozen=True)
class BlockDifference:
    """The first block that differs: its `number` from 0, and a few lines of it `before` and `after`."""

    number: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class EntryDifference:
    """One entry on both sides; None on the side that does not have it.

    `kinds` has for each kind of instruction that occurs the counts before and after; it is empty, and `first` None,
    where a side has no listing. `first` is None too where the blocks are the same.
    """

    entry: str
    before: EntryFacts | None
    after: EntryFacts | None
    kinds: Mapping[Kind, tuple[int, int]]
    first: BlockDifference | None

    @property
    def is_listed(self) -> bool:
        """Whether every side that has the entry has its listing."""
        return all(side.code_bytes is not None for side in (self.before, self.after) if side)

    @property
    def spills_grew(self) -> bool:
        """Whether the entry spills more bytes than before, or any where it is new."""
        was, now = (side.spill_bytes if side else 0 for side in (self.before, self.after))
        return now > was


def differences(before: Mapping[str, CodeFacts], after: Mapping[str, CodeFacts]) -> tuple[EntryDifference, ...]:
    """Return the entries whose code or resources differ, those of `after` first, and those that only one side has."""
    names = [*after, *(name for name in before if name not in after)]
    found = (entry_difference(name, before.get(name), after.get(name)) for name in names)
    return tuple(one for one in found if _differs(one))


def entry_difference(entry: str, before: CodeFacts | None, after: CodeFacts | None) -> EntryDifference:
    """Return the difference of one entry, which may be none at all."""
    was, now = (side.listing if side else None for side in (before, after))
    facts = _numbers(before), _numbers(after)
    if (before and not was) or (after and not now):
        return EntryDifference(entry, *facts, {}, None)
    counts: list[Mapping[Kind, int]] = [listing.kinds if listing else {} for listing in (was, now)]
    kinds: dict[Kind, tuple[int, int]] = {}
    for kind in _KINDS:
        if any(kind in one for one in counts):
            kinds[kind] = counts[0].get(kind, 0), counts[1].get(kind, 0)
    first = first_difference(was.blocks, now.blocks) if was and now else None
    return EntryDifference(entry, *facts, kinds, first)


def _numbers(side: CodeFacts | None) -> EntryFacts | None:
    if side is None or side.listing is None:
        return EntryFacts(side.resources) if side else None
    return EntryFacts(side.resources, side.listing.code_bytes, len(side.listing.instructions))


def first_difference(before: Sequence[CodeBlock], after: Sequence[CodeBlock]) -> BlockDifference | None:
    """Return the first block that differs between two functions; None where all are the same."""
    for number, (was, now) in enumerate(zip_longest(before, after, fillvalue=CodeBlock(()))):
        if was.comparable != now.comparable:
            start = max(0, _shared(was.comparable, now.comparable) - CONTEXT)
            return BlockDifference(number, _shown(was, start), _shown(now, start))
    return None


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many instructions are the same from the beginning on."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((number for number, (was, now) in pairs if was != now), min(len(before), len(after)))


def _shown(block: CodeBlock, start: int) -> tuple[str, ...]:
    return block.instructions[start : start + SHOWN]


def _differs(one: EntryDifference) -> bool:
    if one.before is None or one.after is None or not one.is_listed:
        return True
    return one.before.resources != one.after.resources or one.first is not None


# NVIDIA's tools for machine code, in wheels or in a toolkit: what a cubin's entry takes, without a device.

_TOOLS_SECONDS = 60
_RESERVED_SHARED = 1024  # bytes of a block that are the system's own, from compute capability 9.0 on
_WHEELS = {"triton": "backends/nvidia/bin", "nvidia": "*/bin"}
_USAGE = re.compile(r"Function (\S+):\s*\n\s*(REG:.*)")
_NUMBER = re.compile(r"(\w+)(?:\[\d+\])?:(\d+)")
_TOOLS_FUNCTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)|^//-+ \.text\.(\S+)", re.MULTILINE)
_LOCAL = re.compile(r"\b(STL|LDL)((?:\.[A-Z0-9]+)*)\b")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "16": 2, "U8": 1, "S8": 1, "8": 1}


@cache
def tool(name: str) -> str | None:
    """Return the program `cuobjdump` or `nvdisasm`: of a wheel, in PATH or of a toolkit; None without one."""
    for package, folder in _WHEELS.items():
        spec = find_spec(package)
        roots = (spec.submodule_search_locations or ()) if spec else ()
        for path in (one for root in roots for one in sorted(Path(root).glob(f"{folder}/{name}"))):
            if os.access(path, os.X_OK):
                return str(path)
    toolkits = [os.environ[one] for one in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(one)]
    places = os.pathsep.join(f"{root}/bin" for root in [*toolkits, "/usr/local/cuda"])
    return shutil.which(name) or shutil.which(name, path=places)


def measured_resources(cubin: bytes, entry: str, dynamic_shared: int = 0) -> Resources:
    """Return what an entry takes by `cuobjdump`, and its bytes of local loads and stores by `nvdisasm`.

    What no tool here can find out is zero. `dynamic_shared` is added to the entry's own shared memory.
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
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=_TOOLS_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _local_bytes(listing: str, entry: str) -> tuple[int, int]:
    """Return the bytes that the instructions of an entry store to local memory and load from it, each counted once."""
    parts = _TOOLS_FUNCTION.split(listing)
    texts = [
        text
        for first, second, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        if (first or second).rstrip(",-") == entry
    ]
    found = {"STL": 0, "LDL": 0}
    for kind, suffixes in _LOCAL.findall("\n".join(texts)):
        found[kind] += next((_WIDTHS[one] for one in suffixes.split(".") if one in _WIDTHS), 4)
    return found["STL"], found["LDL"]


# Machine code as a listing, by nvdisasm.

PROGRAM = "nvdisasm"
_SECONDS = 60


def missing() -> str:
    """Return why no instructions are listed where nvdisasm is missing, and what installs it."""
    return (
        f"no nvdisasm is installed: no listing of instructions; {pip_install('compile')}, or set CUDA_HOME to a toolkit"
    )


def listing_of(cubin: Path) -> dict[str, FunctionListing]:
    """Return the functions of a cubin by mangled name.

    Raise BackendUnavailable where no nvdisasm is installed, or it cannot read the file: an older one does not know a
    newer architecture.
    """
    program = tool(PROGRAM)
    if program is None:
        raise BackendUnavailable(missing())
    try:
        done = subprocess.run([program, "-c", str(cubin)], capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise BackendUnavailable(f"{program} does not list {cubin.name}: {error}") from error
    found = read_listing(done.stdout) if done.returncode == 0 else {}
    if not found:
        reason = done.stderr.strip() or "it printed no function"
        raise BackendUnavailable(f"{program} does not list {cubin.name}: {reason}")
    return found


@dataclass(frozen=True)
class CompiledEntry:
    """One entry of machine code: its file, the symbol in it, and what it takes."""

    path: Path
    symbol: str
    resources: Resources


Entries = Mapping[str, CompiledEntry]
# Entries, and why instructions are not listed, or in what code differs whose instructions are the same.
CodeDifference = tuple[tuple[EntryDifference, ...], str | None]


def code_differences(before: Entries, after: Entries) -> CodeDifference:
    """Return the entries that differ between two builds.

    The second value is why instructions are not listed, or in what code differs whose instructions are the same.
    """
    was, reason = _facts(before)
    now, other = _facts(after)
    found = differences(was, now)
    return found, (reason or other) if found else _unlisted(before, after)


def _facts(entries: Entries) -> tuple[dict[str, CodeFacts], str | None]:
    """Return what is known of each entry, and why instructions are not listed (None: they are)."""
    reason, listings = None, dict[Path, dict[str, FunctionListing]]()
    for path in dict.fromkeys(one.path for one in entries.values()):
        try:
            listings[path] = listing_of(path)
        except BackendUnavailable as error:
            reason = str(error)
    facts = {
        name: CodeFacts(one.resources, listings.get(one.path, {}).get(one.symbol)) for name, one in entries.items()
    }
    return facts, reason


def _unlisted(before: Entries, after: Entries) -> str | None:
    """Return in what two builds of the same instructions differ; None where they do not."""
    sides = [
        [path.read_bytes() for path in dict.fromkeys(one.path for one in side.values())] for side in (before, after)
    ]
    was, now = ([sass_hash(cubin) for cubin in side] for side in sides)
    if was != now:
        return "the instructions are the same; their scheduling differs"
    was, now = ([data_hash(cubin) for cubin in side] for side in sides)
    return "the instructions are the same; their constants differ" if was != now else None
