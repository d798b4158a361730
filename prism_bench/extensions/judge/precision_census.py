"""Census of the arithmetic in machine code by its precision, and what is below the least that a task allows.

Opcodes and their modifiers are those of the tables that `compilation/instruction_kinds.py` names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from prism_bench.compilation.instruction_kinds import kind_of, opcode_of
from prism_bench.spec.kernel import ArithmeticPrecision

PRECISIONS: tuple[ArithmeticPrecision, ...] = get_args(ArithmeticPrecision)
FLUSHED = "flushed to zero"  # instructions that take subnormal numbers for 0
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
            found[FLUSHED] += "FTZ" in opcode_of(instruction).split(".")
    return {name: found[name] for name in (*PRECISIONS, FLUSHED) if found[name]}


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
