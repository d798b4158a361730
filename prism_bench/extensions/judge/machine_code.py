"""Machine code of a submission: its form, whether all readers agree on it, and the precision of its arithmetic."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from prism_bench.compilation.cubin import elf_entries, entry_symbols, sass_hash, undefined_symbols
from prism_bench.compilation.listing import kind_of, opcode_of
from prism_bench.extensions.judge.jail_client import MachineCodeAnswer
from prism_bench.extensions.judge.submission import LARGEST_CUBIN
from prism_bench.extensions.judge.verdict import JudgedCode, Objection
from prism_bench.spec.kernel import ArithmeticPrecision
from prism_bench.units import count_text

# Census of the arithmetic by precision
#
# Opcodes and their modifiers are those of the tables that `compilation/listing.py` names.

PRECISIONS: tuple[ArithmeticPrecision, ...] = get_args(ArithmeticPrecision)
_FLUSHED = "flushed to zero"  # instructions that take subnormal numbers for 0
_OF_TYPE: Mapping[str, ArithmeticPrecision] = {
    "E4M3": "fp8", "E5M2": "fp8", "E2M1": "fp8", "E2M3": "fp8", "E3M2": "fp8", "S8": "fp8", "U8": "fp8",
    "F16": "half", "BF16": "half", "BF16_V2": "half", "TF32": "tf32", "F32": "fp32", "F64": "fp64",
}  # fmt: skip
_TENSOR: Mapping[str, ArithmeticPrecision] = {
    "HMMA": "half", "HGMMA": "half", "UTCHMMA": "half", "QMMA": "fp8", "QGMMA": "fp8", "OMMA": "fp8", "UTCQMMA": "fp8",
    "UTCOMMA": "fp8", "IMMA": "fp8", "IGMMA": "fp8", "UTCIMMA": "fp8", "DMMA": "fp64",
}  # fmt: skip
_OF_KIND: Mapping[str, ArithmeticPrecision] = {"fp32": "fp32", "fp64": "fp64"}
_NARROWS = ("F2F", "F2FP")
# Of functions, sums in memory and conversions of integers, those in halves: their kind is another one.
_IN_MEMORY = ("RED", "REDG", "REDAS", "ATOM", "ATOMG", "ATOMS", "SURED", "SUATOM", "UBLKRED", "UTMAREDG")
_HALVES = re.compile(r"B?F16(x\d|_V\d)?")
_BYTES = ("IDP", "IDP4A")  # sums of products of 8-bit integers
_CONSTANT = re.compile(r"-?RZ(\.H0_H0)?, -?RZ(\.H0_H0)?,")  # 0 * 0 + constant: how compilers load one
_WIDENS = "HADD2.F32"  # the conversion of a half to a float


def precision_census(instructions: Iterable[str]) -> dict[str, int]:
    """Return the number of instructions that calculate in each precision, or round to a precision below float32.

    `flushed to zero` counts the instructions among them that treat subnormal numbers as 0. Tensor cores count by the
    type of their factors; 8-bit integers count as `fp8`, there and in sums of products (`IDP`). Loads of constants and
    widening conversions are no arithmetic.
    """
    counts = Counter[str]()
    for instruction in instructions:
        precision = _precision(instruction)
        if precision:
            counts[precision] += 1
            counts[_FLUSHED] += "FTZ" in opcode_of(instruction).split(".")
    return {name: counts[name] for name in (*PRECISIONS, _FLUSHED) if counts[name]}


def below(census: Mapping[str, int], least: ArithmeticPrecision) -> tuple[ArithmeticPrecision, ...]:
    """Return the precisions of a census that are below `least`."""
    return tuple(name for name in PRECISIONS[: PRECISIONS.index(least)] if census.get(name))


def _precision(instruction: str) -> ArithmeticPrecision | None:
    opcode = opcode_of(instruction)
    head, *modifiers = opcode.split(".")
    if head in _TENSOR:
        return "tf32" if "TF32" in modifiers else _TENSOR[head]
    if head in _NARROWS:  # the first type is the result's
        result = next((name for name in modifiers if name in _OF_TYPE), "")
        return None if result in ("F32", "F64") else _OF_TYPE.get(result)
    if head in _BYTES:
        return "fp8"
    if head in ("MUFU", "I2F", "I2FP", *_IN_MEMORY) and any(map(_HALVES.fullmatch, modifiers)):
        return "half"
    kind = kind_of(instruction)
    if kind == "half":
        return None if opcode == _WIDENS or _CONSTANT.search(instruction) else "half"
    return _OF_KIND.get(kind)


# Readability: tables that every reader of the file reads in the same way

_SYMBOLS, _TEXTS = ".symtab", ".strtab"


def why_unreadable(cubin: bytes) -> str:
    """Return why the tables of a cubin cannot be read, or can be read in several ways; empty if they are fine."""
    try:
        _ = undefined_symbols(cubin), entry_symbols(cubin), sass_hash(cubin), elf_entries(cubin)
        return _ambiguity(cubin)
    except Exception as error:  # a reader may raise anything for a stranger's bytes
        return f"{type(error).__name__}: {error}"


def _ambiguity(cubin: bytes) -> str:
    """Return how a driver could parse this cubin differently from a reader that looks sections up by name."""
    from elftools.elf.elffile import ELFFile

    file: Any = ELFFile(io.BytesIO(cubin))
    sections = list(file.iter_sections())
    doubled = [name for name, count in Counter(section.name for section in sections).items() if count > 1]
    if doubled:
        return f"it has two sections of the name '{doubled[0]}'"
    tables = [section for section in sections if section["sh_type"] == "SHT_SYMTAB"]
    names = [table.name for table in tables]
    if [_SYMBOLS] != names:
        return f"its tables of symbols are {', '.join(names) or 'none'}, not {_SYMBOLS} alone"
    texts = sections[tables[0]["sh_link"]].name
    return "" if texts == _TEXTS else f"the names of its symbols are in '{texts}', not in {_TEXTS}"


# Objections to form and precision

# Functions of the device runtime: work or memory that outlives the launch, output, and assertions.
_REFUSED = {
    "cudaLaunchDevice": "launches kernels itself", "cudaLaunchDeviceV2": "launches kernels itself",
    "cudaGetParameterBuffer": "launches kernels itself", "cudaGetParameterBufferV2": "launches kernels itself",
    "__cudaCDP2LaunchDevice": "launches kernels itself", "__cudaCDP2LaunchDeviceV2": "launches kernels itself",
    "__cuda_syscall_cnpv2LaunchDevice": "launches kernels itself",
    "__cuda_syscall_cnpv2LaunchDeviceV2": "launches kernels itself",
    "malloc": "allocates memory that outlives the launch", "free": "allocates memory that outlives the launch",
    "vprintf": "prints from the device", "__assertfail": "ends the context by an assertion",
}  # fmt: skip
_MOST_NAMED, _LONGEST_NAME = 3, 120  # names, and characters: the sender chooses both


def form_objections(cubin: bytes, launched: Sequence[str], *, compiled_here: bool = False) -> Iterator[Objection]:
    """Yield the objections to a cubin of which the symbols `launched` are launched.

    A cubin that was `compiled_here` may have other kernels: a source often holds several forms, and only those of the
    card can run. A cubin that was sent may not: its source is unknown.
    """
    if len(cubin) > LARGEST_CUBIN:
        yield Objection("size", f"the machine code has {len(cubin):,} bytes; at most {LARGEST_CUBIN:,} are taken")
        return
    unreadable = why_unreadable(cubin)
    if unreadable:
        yield Objection("form", f"the machine code is no ELF file that can be read: {unreadable[:_LONGEST_NAME]}")
        return
    outside, entries = undefined_symbols(cubin), entry_symbols(cubin)
    if outside is None:
        yield Objection("form", "the machine code is no ELF file for a GPU")
        return
    missing = sorted(set(launched) - set(entries))
    if missing:
        yield Objection("form", f"the machine code has no kernel {named(missing[:1])}; it has {named(entries)}")
    odd = [name for name in entries if not name.isprintable() or " " in name]
    if odd:  # a listing of instructions is read by lines and words
        yield Objection("form", f"the machine code has kernels of names that no compiler gives: {named(odd)}")
    others = sorted(set(entries) - set(launched))
    if others and not compiled_here:
        yield Objection("form", f"the machine code has kernels that the card does not launch: {named(others)}")
    refused = [name for name in outside if name.partition("@")[0] in _REFUSED]
    for name in (refused or list(outside))[:_MOST_NAMED]:
        what = _REFUSED.get(name.partition("@")[0], "calls a function that the machine code does not have")
        yield Objection("form", f"it {what} ({named([name])})")


def precision_objections(census: Mapping[str, int] | None, least: ArithmeticPrecision) -> Iterator[Objection]:
    """Yield objections to arithmetic below the least precision of a task; a census of None could not be taken."""
    if census is None:
        yield Objection("precision", f"nothing lists its instructions; the task asks for {least}")
        return
    for low in below(census, least):
        yield Objection("precision", f"{census[low]} instructions work in {low}; the task asks for {least}")


def named(names: Sequence[str], others: str = "more kernel") -> str:
    """Return some of the names, shortened since the sender chose them, and the number of `others`."""
    shown = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names[:_MOST_NAMED]]
    more = f" and {count_text(len(names) - _MOST_NAMED, others)}" if len(names) > _MOST_NAMED else ""
    return (", ".join(shown) or "none") + more


def judged_code(architecture: str, made: MachineCodeAnswer, cubin: bytes) -> JudgedCode:
    """Return the facts of machine code for an architecture, as the jailed process reported them."""
    resources = {entry: made.resources[symbol] for entry, symbol in made.symbols.items()}
    registers = {entry: used.registers for entry, used in resources.items()}
    spilled = {entry: used.spill_stores + used.spill_loads for entry, used in resources.items()}
    return JudgedCode(
        architecture, sass_hash(cubin), len(cubin), registers, spilled, made.kinds or {}, made.precisions or {}
    )
