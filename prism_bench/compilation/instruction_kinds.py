"""Kinds of machine instructions, by the opcode before the first dot.

The opcodes are those of the tables of "CUDA Binary Utilities", section 4, "Instruction Set Reference" (Turing, Ampere
and Ada, Hopper, Blackwell; https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference). Kinds follow
its categories, with memory split by its space and floating-point instructions by their precision. A generic load or
store is global memory; asynchronous copies are next to the barriers that wait for them; an opcode that the tables do
not have is `other`, unless a prefix below names its family.
"""

from typing import Literal, get_args

Kind = Literal[
    "global memory", "shared memory", "local memory", "constant memory", "fp32", "fp64", "half", "tensor", "integer",
    "conversion", "control", "barrier and async", "other",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)

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
}  # fmt: skip
_KIND_OF: dict[str, Kind] = {opcode: kind for kind, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_PREFIXES: tuple[tuple[str, Kind], ...] = (("UTMA", "barrier and async"), ("UTC", "tensor"))
MEMORY_BARRIER = "SYNCS"  # arrives at, or polls, a barrier in shared memory, which also shows the end of bulk copies
PADDING = "NOP"  # behind the last instruction, up to the alignment of a function


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
