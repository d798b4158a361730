"""Machine code of a submission: whether it can be read in one way only, and what arithmetic it does."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from prism_bench.compilation import sass_hash as compilation_sass_hash
from prism_bench.compilation.cubin import elf_entries, entry_symbols, sass_hash, undefined_symbols
from prism_bench.compilation.listing import kind_of, opcode_of
from prism_bench.extensions.judge.jail_client import MachineCodeAnswer
from prism_bench.extensions.judge.submission import LARGEST_CUBIN
from prism_bench.extensions.judge.verdict import JudgedCode, Objection
from prism_bench.spec.kernel import ArithmeticPrecision
from prism_bench.units import count_text

# Census of the arithmetic in machine code by its precision, and what is below the least that a task allows.
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
    """Return how many instructions calculate in each precision, or round to one below float32.

    `flushed to zero` counts those among them that take subnormal numbers for 0. Tensor cores count by the type of their
    factors; 8-bit integers count as `fp8`, there and in sums of products (`IDP`). Loads of constants and widening
    conversions are no arithmetic.
    """
    found = Counter[str]()
    for instruction in instructions:
        precision = _precision(instruction)
        if precision:
            found[precision] += 1
            found[_FLUSHED] += "FTZ" in opcode_of(instruction).split(".")
    return {name: found[name] for name in (*PRECISIONS, _FLUSHED) if found[name]}


def below(census: Mapping[str, int], least: ArithmeticPrecision) -> tuple[ArithmeticPrecision, ...]:
    """Return the precisions of a census that are below `least`."""
    return tuple(one for one in PRECISIONS[: PRECISIONS.index(least)] if census.get(one))


def _precision(instruction: str) -> ArithmeticPrecision | None:
    opcode = opcode_of(instruction)
    head, *modifiers = opcode.split(".")
    if head in _TENSOR:
        return "tf32" if "TF32" in modifiers else _TENSOR[head]
    if head in _NARROWS:  # the type that it converts to is the first one
        first = next((one for one in modifiers if one in _OF_TYPE), "")
        return None if first in ("F32", "F64") else _OF_TYPE.get(first)
    if head in _BYTES:
        return "fp8"
    if head in ("MUFU", "I2F", "I2FP", *_IN_MEMORY) and any(map(_HALVES.fullmatch, modifiers)):
        return "half"
    kind = kind_of(instruction)
    if kind == "half":
        return None if opcode == _WIDENS or _CONSTANT.search(instruction) else "half"
    return _OF_KIND.get(kind)


# Whether machine code that somebody sent can be read at all, and in one way alone.

_SYMBOLS, _TEXTS = ".symtab", ".strtab"


def why_unreadable(cubin: bytes) -> str:
    """Return why the tables of a cubin cannot be read, or can be in several ways; nothing where they can."""
    try:
        _ = undefined_symbols(cubin), entry_symbols(cubin), sass_hash(cubin), elf_entries(cubin)
        return _ambiguity(cubin)
    except Exception as error:  # whatever a reader raises is about the bytes
        return f"{type(error).__name__}: {error}"


def _ambiguity(cubin: bytes) -> str:
    """Return what a driver, which may go by the kinds of sections, can read otherwise than readers by name."""
    from elftools.elf.elffile import ELFFile

    file: Any = ELFFile(io.BytesIO(cubin))
    sections = list(file.iter_sections())
    doubled = [name for name, count in Counter(one.name for one in sections).items() if count > 1]
    if doubled:
        return f"it has two sections of the name '{doubled[0]}'"
    tables = [one for one in sections if one["sh_type"] == "SHT_SYMTAB"]
    if [_SYMBOLS] != [one.name for one in tables]:
        return f"its tables of symbols are {', '.join(one.name for one in tables) or 'none'}, not {_SYMBOLS} alone"
    texts = sections[tables[0]["sh_link"]].name
    return "" if texts == _TEXTS else f"the names of its symbols are in '{texts}', not in {_TEXTS}"


# Form of machine code: what a cubin may hold to be launched on a task, whoever made it, and in which precision.

# Functions of the device runtime: work that outlives the launch, memory that does, output, and its own way to fail.
_REFUSED = {
    "cudaLaunchDevice": "launches kernels itself", "cudaLaunchDeviceV2": "launches kernels itself",
    "cudaGetParameterBuffer": "launches kernels itself", "cudaGetParameterBufferV2": "launches kernels itself",
    "__cudaCDP2LaunchDevice": "launches kernels itself", "__cudaCDP2LaunchDeviceV2": "launches kernels itself",
    "__cuda_syscall_cnpv2LaunchDevice": "launches kernels itself",
    "__cuda_syscall_cnpv2LaunchDeviceV2": "launches kernels itself",
    "malloc": "allocates memory that outlives the launch", "free": "allocates memory that outlives the launch",
    "vprintf": "prints from the device", "__assertfail": "ends the context by an assertion",
}  # fmt: skip
_MOST_NAMED, _LONGEST_NAME = 3, 120  # names are the sender's: as many and as long as that likes


def form_objections(cubin: bytes, launched: Sequence[str], *, compiled_here: bool = False) -> Iterator[Objection]:
    """Yield what is wrong with a cubin of which the symbols `launched` are launched.

    One that was `compiled_here` may have other kernels: a source often holds several forms, and none that the card
    leaves out can run. Machine code that was sent may not: nobody has seen a source of it.
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
    odd = [one for one in entries if not one.isprintable() or " " in one]
    if odd:  # a listing of instructions is read by lines and words
        yield Objection("form", f"the machine code has kernels of names that no compiler gives: {named(odd)}")
    others = sorted(set(entries) - set(launched))
    if others and not compiled_here:
        yield Objection("form", f"the machine code has kernels that the card does not launch: {named(others)}")
    refused = [one for one in outside if one.partition("@")[0] in _REFUSED]
    for name in (refused or list(outside))[:_MOST_NAMED]:
        what = _REFUSED.get(name.partition("@")[0], "calls a function that the machine code does not have")
        yield Objection("form", f"it {what} ({named([name])})")


def precision_objections(census: Mapping[str, int] | None, least: ArithmeticPrecision) -> Iterator[Objection]:
    """Yield what is below the least precision of a task in a census; None is one that could not be taken."""
    if census is None:
        yield Objection("precision", f"nothing lists its instructions; the task asks for {least}")
        return
    for low in below(census, least):
        yield Objection("precision", f"{census[low]} instructions work in {low}; the task asks for {least}")


def named(names: Sequence[str], others: str = "more kernel") -> str:
    """Return some of the names, which are the sender's, and how many `others` there are."""
    shown = [one if len(one) <= _LONGEST_NAME else f"{one[:_LONGEST_NAME]}..." for one in names[:_MOST_NAMED]]
    more = f" and {count_text(len(names) - _MOST_NAMED, others)}" if len(names) > _MOST_NAMED else ""
    return (", ".join(shown) or "none") + more


# What a verdict keeps of machine code.


def judged_code(architecture: str, made: MachineCodeAnswer, cubin: bytes) -> JudgedCode:
    """Return the facts of machine code for an architecture, as the jailed process reported them."""
    resources = {entry: made.resources[symbol] for entry, symbol in made.symbols.items()}
    registers = {entry: one.registers for entry, one in resources.items()}
    spilled = {entry: one.spill_stores + one.spill_loads for entry, one in resources.items()}
    return JudgedCode(
        architecture,
        compilation_sass_hash(cubin),
        len(cubin),
        registers,
        spilled,
        made.kinds or {},
        made.precisions or {},
    )
